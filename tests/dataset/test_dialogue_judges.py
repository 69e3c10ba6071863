"""The judges of tasks about a dialogue: with the user, who must be waited for, and in two threads that stay apart."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .kit import Talk, judged
from .talks import berth, two_threads

USER = "question-to-the-user"
THREADS = "two-threads-kept-apart"


# --- a question to the user --------------------------------------------------------------------------------------


def test_a_question_that_is_waited_for_passes() -> None:
    talk = Talk(USER)
    berth(talk)
    talk.done()
    assert judged(talk) == set()


def test_a_question_in_the_tasks_thread_and_talk_beside_it_pass_too() -> None:
    talk = Talk(USER)
    talk.say("orch", "reading the list", "user")
    question = talk.say("orch", "2, 5, 9 or 12?", "user", reply=talk.posted)
    talk.say("user", "The Meridian gets berth 9.", reply=question)
    talk.say("orch", "thank you", "user")
    talk.say("orch", "Please write `Meridian 9`.", "worker-1")
    talk.say("worker-1", "done", "orch")
    assert judged(talk) == set()


def never_asked(talk: Talk) -> None:
    talk.say("orch", "berth 9", "worker-1")
    talk.say("worker-1", "written", "orch")


def asked_without_a_mention(talk: Talk) -> None:
    talk.say("orch", "@user which berth?")
    talk.say("user", "The Meridian gets berth 9.", "orch")
    talk.say("orch", "berth 9", "worker-1")
    talk.say("worker-1", "written", "orch")


def asked_at_the_end(talk: Talk) -> None:
    talk.say("orch", "DONE: which berth was it?", "user")
    talk.say("orch", "berth 9", "worker-1")
    talk.say("worker-1", "written", "orch")


def not_waited_for(talk: Talk) -> None:
    question = talk.say("orch", "which berth?", "user")
    talk.say("orch", "berth 9, I think", "worker-1")
    talk.say("user", "The Meridian gets berth 9.", reply=question)
    talk.say("orch", "berth 9 it is", "worker-1")
    talk.say("worker-1", "written", "orch")


def another_berth_given(talk: Talk) -> None:
    question = talk.say("orch", "which berth?", "user")
    talk.say("user", "The Meridian gets berth 9.", reply=question)
    talk.say("orch", "berth 12", "worker-1")
    talk.say("worker-1", "written", "orch")


def the_worker_asks(talk: Talk) -> None:
    talk.say("orch", "ask the user and write it down", "worker-1")
    question = talk.say("worker-1", "which berth?", "user")
    talk.say("user", "The Meridian gets berth 9.", reply=question)
    talk.say("worker-1", "written", "orch")


ASKED = "the lead asks the user and is answered"
WAITED = "the lead gives nobody work before the answer"
GIVEN = "the lead then gives the worker the berth that the user named"
REPORTED = "the worker reports to the lead after that"


@pytest.mark.parametrize(
    ("goes_wrong", "intended"),
    [
        (never_asked, {ASKED, WAITED, GIVEN, REPORTED}),
        (asked_without_a_mention, {ASKED, WAITED, GIVEN, REPORTED}),
        (asked_at_the_end, {ASKED, WAITED, GIVEN, REPORTED}),
        (not_waited_for, {WAITED}),
        (another_berth_given, {GIVEN, REPORTED}),
        (the_worker_asks, {ASKED, WAITED, GIVEN, REPORTED}),
    ],
)
def test_a_question_that_only_looks_asked_fails(goes_wrong: Callable[[Talk], None], intended: set[str]) -> None:
    talk = Talk(USER)
    goes_wrong(talk)
    talk.done()
    assert judged(talk) == intended


# --- two threads kept apart --------------------------------------------------------------------------------------


def test_two_threads_answered_and_checked_pass() -> None:
    talk = Talk(THREADS)
    two_threads(talk)
    talk.done()
    assert judged(talk) == set()


def test_one_thread_after_the_other_and_other_openings_pass_too() -> None:
    talk = Talk(THREADS)
    talk.say("orch", "hello, two questions follow", "worker-1", "worker-2")
    for number, asked, checks in (("463", "worker-2", "worker-1"), ("14", "worker-1", "worker-2")):
        root = talk.say("orch", "a question", asked)
        talk.say(asked, "looking", reply=root)
        talk.say(asked, f"it is {number}", reply=root)
        talk.say("orch", "thank you", reply=root)
        check = talk.say("orch", "and you?", checks, reply=root)
        talk.say(checks, f"also {number}", reply=check)
    assert judged(talk) == set()


def all_in_one_thread(talk: Talk) -> None:
    root = talk.say("orch", "how many, and how high?", "worker-1", "worker-2")
    for number, asked, checks in (("14", "worker-1", "worker-2"), ("463", "worker-2", "worker-1")):
        talk.say(asked, number, reply=root)
        check = talk.say("orch", "and you?", checks, reply=root)
        talk.say(checks, number, reply=check)


def check_in_the_other_thread(talk: Talk) -> None:
    cranes = talk.say("orch", "how many?", "worker-1")
    tide = talk.say("orch", "how high?", "worker-2")
    talk.say("worker-1", "14", reply=cranes)
    talk.say("worker-2", "463", reply=tide)
    talk.say("worker-2", "14 too", reply=talk.say("orch", "check the cranes", "worker-2", reply=cranes))
    talk.say("worker-1", "also", reply=talk.say("orch", "check the tide", "worker-1", reply=cranes))


def check_answered_in_the_other_thread(talk: Talk) -> None:
    cranes = talk.say("orch", "how many?", "worker-1")
    tide = talk.say("orch", "how high?", "worker-2")
    talk.say("worker-1", "14", reply=cranes)
    talk.say("worker-2", "463", reply=tide)
    talk.say("orch", "check the cranes", "worker-2", reply=cranes)
    talk.say("worker-2", "14 too", reply=tide)
    talk.say("worker-1", "463 too", reply=talk.say("orch", "check the tide", "worker-1", reply=tide))


def check_answered_outside(talk: Talk) -> None:
    two_threads(talk)
    talk.say("worker-2", "14, as I said", "orch")


def lead_tells_both_numbers(talk: Talk) -> None:
    two_threads(talk)
    root = next(event for event in talk.events if event["content"] == "how many cranes?")
    talk.say("orch", "so 14, and 463 for the tide", reply=root)


def checked_before_the_answer(talk: Talk) -> None:
    cranes = talk.say("orch", "how many?", "worker-1")
    tide = talk.say("orch", "how high?", "worker-2")
    talk.say("worker-2", "14", reply=talk.say("orch", "check", "worker-2", reply=cranes))
    talk.say("worker-1", "14", reply=cranes)
    talk.say("worker-2", "463", reply=tide)
    talk.say("worker-1", "463", reply=talk.say("orch", "check", "worker-1", reply=tide))


CRANES_ASKED = "the lead then asks worker-2 for a check in the thread on the cranes"
CRANES_CHECKED = "worker-2 answers the check in the thread on the cranes"
TIDE_ASKED = "the lead then asks worker-1 for a check in the thread on the tide"
TIDE_CHECKED = "worker-1 answers the check in the thread on the tide"
CRANES_ONLY = "the other number is not said in the thread on the cranes"
TIDE_ONLY = "the other number is not said in the thread on the tide"


@pytest.mark.parametrize(
    ("goes_wrong", "intended"),
    [
        (all_in_one_thread, {"the lead opens a thread for each question", CRANES_ONLY, TIDE_ONLY}),
        (check_in_the_other_thread, {TIDE_ASKED, TIDE_CHECKED}),
        (check_answered_in_the_other_thread, {CRANES_CHECKED, TIDE_ONLY}),
        (check_answered_outside, {"the workers say nothing outside the two threads"}),
        (lead_tells_both_numbers, {CRANES_ONLY}),
        (checked_before_the_answer, {CRANES_ASKED, CRANES_CHECKED}),
    ],
)
def test_threads_that_only_look_apart_fail(goes_wrong: Callable[[Talk], None], intended: set[str]) -> None:
    talk = Talk(THREADS)
    goes_wrong(talk)
    talk.done()
    assert judged(talk) == intended


def test_a_number_in_a_reply_to_the_task_is_outside_both_threads() -> None:
    talk = Talk(THREADS)
    talk.say("orch", "how many?", "worker-1")
    talk.say("worker-1", "14", reply=talk.posted)
    assert judged(talk) >= {
        "worker-1 answers in the thread on the cranes",
        "the workers say nothing outside the two threads",
    }
