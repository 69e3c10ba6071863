"""The judges of the regression tasks: a chat used right passes in any sensible form, one that looks right does not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .kit import DATASET, Talk, failing, host_checks, judged

MENTION = "mention-names-the-right-member"
THREAD = "thread-reply-stays-in-thread"
WHOLE = "multiline-message-kept-whole"


# --- the right member is mentioned -------------------------------------------------------------------------------


def test_calling_only_the_pilot_on_duty_passes() -> None:
    talk = Talk(MENTION)
    call = talk.say("orch", "please come", "worker-2")
    talk.say("worker-2", "READY", "orch", reply=call)
    talk.done()
    assert judged(talk) == set()


def test_chatter_a_second_call_and_no_done_message_pass_too() -> None:
    talk = Talk(MENTION)
    talk.say("orch", "worker-2 is on duty today, worker-1 is not", "user")
    talk.say("orch", "please come", "worker-2")
    talk.say("worker-2", "which file?", "orch")
    talk.say("orch", "pilot.txt", "worker-2")
    talk.say("worker-2", "READY", "orch")
    assert judged(talk) == set()


def test_a_name_in_the_text_is_no_mention() -> None:
    talk = Talk(MENTION)
    talk.say("orch", "@worker-2 please come")
    talk.say("worker-2", "READY", "orch")
    assert judged(talk) == {
        "the lead mentions the pilot on duty",
        "the pilot on duty reports to the lead after the call",
    }


@pytest.mark.parametrize("waker", ["orch", "worker-2"])
def test_waking_the_other_pilot_fails_whoever_does_it(waker: str) -> None:
    talk = Talk(MENTION)
    talk.say("orch", "please come", "worker-2")
    talk.say(waker, "are you awake?", "worker-1")
    talk.say("worker-2", "READY", "orch")
    assert judged(talk) == {"nobody mentions the other pilot"}


def test_a_report_that_comes_before_the_call_or_from_another_member_is_none() -> None:
    early, other = Talk(MENTION), Talk(MENTION)
    early.say("worker-2", "READY", "orch")
    early.say("orch", "please come", "worker-2")
    other.say("orch", "please come", "worker-2")
    other.say("worker-1", "worker-2 is READY", "orch")
    missing = {"the pilot on duty reports to the lead after the call"}
    assert judged(early) == missing
    assert judged(other) == missing


def test_a_call_in_another_channel_is_no_call() -> None:
    talk = Talk(MENTION)
    talk.say("orch", "please come", "worker-2", channel="6e0d5c07-0000-4000-8000-000000000000")
    talk.say("worker-2", "READY", "orch")
    assert "the lead mentions the pilot on duty" in judged(talk)


# --- the reply stays in its thread -------------------------------------------------------------------------------


def test_two_questions_and_answers_in_one_thread_pass() -> None:
    talk = Talk(THREAD)
    question = talk.say("orch", "how many?", "worker-1")
    answer = talk.say("worker-1", "7", "orch", reply=question)
    follow_up = talk.say("orch", "which one last?", "worker-1", reply=answer)
    talk.say("worker-1", "Halcyon", "orch", reply=follow_up)
    talk.done()
    assert judged(talk) == set()


def test_replies_to_the_first_message_of_the_thread_and_chatter_pass_too() -> None:
    talk = Talk(THREAD)
    talk.say("orch", "I will ask worker-1", "user", reply=talk.posted)
    question = talk.say("orch", "how many?", "worker-1")
    talk.say("worker-1", "one moment", reply=question)
    talk.say("worker-1", "7", reply=question)
    talk.say("orch", "thank you", reply=question)
    talk.say("orch", "which one last?", "worker-1", reply=question)
    talk.say("worker-1", "Halcyon", reply=question)
    talk.done()
    assert judged(talk) == set()


def follow_up_opens_a_second_thread(talk: Talk) -> None:
    question = talk.say("orch", "how many?", "worker-1")
    talk.say("worker-1", "7", "orch", reply=question)
    second = talk.say("orch", "which one last?", "worker-1")
    talk.say("worker-1", "Halcyon", "orch", reply=second)


def answer_stands_beside_the_thread(talk: Talk) -> None:
    question = talk.say("orch", "how many?", "worker-1")
    answer = talk.say("worker-1", "7", "orch")
    talk.say("orch", "which one last?", "worker-1", reply=question)
    talk.say("worker-1", "Halcyon", "orch", reply=answer)


def answer_hangs_on_the_task(talk: Talk) -> None:
    question = talk.say("orch", "how many?", "worker-1")
    talk.say("worker-1", "7", "orch", reply=talk.posted)
    follow_up = talk.say("orch", "which one last?", "worker-1", reply=question)
    talk.say("worker-1", "Halcyon", "orch", reply=follow_up)


def answered_twice_inside_and_outside(talk: Talk) -> None:
    question = talk.say("orch", "how many?", "worker-1")
    answer = talk.say("worker-1", "7", "orch", reply=question)
    talk.say("worker-1", "7", "orch")
    follow_up = talk.say("orch", "which one last?", "worker-1", reply=answer)
    talk.say("worker-1", "Halcyon", "orch", reply=follow_up)


def question_is_itself_a_reply(talk: Talk) -> None:
    question = talk.say("orch", "how many?", "worker-1", reply=talk.posted)
    answer = talk.say("worker-1", "7", "orch", reply=question)
    follow_up = talk.say("orch", "which one last?", "worker-1", reply=answer)
    talk.say("worker-1", "Halcyon", "orch", reply=follow_up)


def both_answers_before_the_follow_up(talk: Talk) -> None:
    question = talk.say("orch", "how many?", "worker-1")
    answer = talk.say("worker-1", "7", "orch", reply=question)
    talk.say("worker-1", "Halcyon, by the way", "orch", reply=answer)
    talk.say("orch", "which one last?", "worker-1", reply=answer)


@pytest.mark.parametrize(
    ("goes_wrong", "intended"),
    [
        (follow_up_opens_a_second_thread, "the lead asks again in that thread"),
        (answer_stands_beside_the_thread, "the worker says nothing outside the thread"),
        (answer_hangs_on_the_task, "the worker says nothing outside the thread"),
        (answered_twice_inside_and_outside, "the worker says nothing outside the thread"),
        (question_is_itself_a_reply, "the lead opens a thread with a question that mentions the worker"),
        (both_answers_before_the_follow_up, "the worker answers again in that thread"),
    ],
)
def test_a_thread_that_only_looks_right_fails(goes_wrong: Callable[[Talk], None], intended: str) -> None:
    talk = Talk(THREAD)
    goes_wrong(talk)
    talk.done()
    assert intended in judged(talk)


def test_the_right_root_with_a_parent_from_another_thread_is_outside() -> None:
    talk = Talk(THREAD)
    question = talk.say("orch", "how many?", "worker-1")
    tags = [["h", talk.channel], ["e", question["id"], "", "root"], ["e", talk.posted["id"], "", "reply"]]
    talk.events.append(talk.keys["worker-1"].sign(9, "7", tags))
    assert "the worker answers in the thread of the question" in judged(talk)


# --- the message is kept whole -----------------------------------------------------------------------------------


def notice() -> str:
    return (DATASET / WHOLE / "environment" / "notice.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("text", [notice(), notice().rstrip("\n")], ids=["with line break", "without"])
def test_the_whole_notice_with_its_last_line_break_or_without_passes(text: str) -> None:
    talk = Talk(WHOLE)
    posted = talk.say("orch", text, "worker-1")
    talk.say("worker-1", "received", reply=posted)
    talk.done()
    assert judged(talk) == set()


def test_a_first_try_that_was_not_whole_does_no_harm() -> None:
    talk = Talk(WHOLE)
    talk.say("orch", notice()[:200], "worker-1")
    talk.say("orch", notice(), "worker-1")
    talk.say("worker-1", "received", "orch")
    assert judged(talk) == set()


@pytest.mark.parametrize(
    "change",
    [
        lambda text: " ".join(text.split()),
        lambda text: text.replace("```python\n", "").replace("```\n", ""),
        lambda text: text.replace("    metres", "  metres"),
        lambda text: text.replace("ü", "u\u0308"),
        lambda text: text.replace("“improve”", '"improve"'),
        lambda text: text.replace("🐝", ""),
        lambda text: text.replace("\n\n", "\n"),
        lambda text: "Here it is:\n" + text,
        lambda text: text + "\ud800",
    ],
    ids=["flattened", "no fence", "indent", "decomposed", "quotes", "emoji", "blank lines", "prefix", "surrogate"],
)
def test_a_notice_with_a_change_fails(change: Callable[[str], str]) -> None:
    talk = Talk(WHOLE)
    talk.say("orch", notice(), "worker-1")
    talk.say("worker-1", "received", "orch")
    evidence = talk.evidence()
    evidence["messages"][1]["text"] = change(notice())
    checks = host_checks(talk.task, evidence)
    assert "the lead posts the notice as one message with every character kept" in failing(checks)


def test_two_messages_that_make_up_the_notice_fail() -> None:
    talk = Talk(WHOLE)
    cut = notice().index("```python")
    talk.say("orch", notice()[:cut], "worker-1")
    talk.say("orch", notice()[cut:], "worker-1")
    talk.say("worker-1", "received", "orch")
    assert "the lead posts the notice as one message with every character kept" in judged(talk)


@pytest.mark.parametrize("mentions", [(), ("worker-1", "worker-2")], ids=["nobody", "everybody"])
def test_a_notice_that_notifies_nobody_or_too_many_fails(mentions: tuple[str, ...]) -> None:
    talk = Talk(WHOLE)
    posted = talk.say("orch", notice(), *mentions)
    talk.say("worker-1", "received", "orch", reply=posted)
    assert "that message notifies its reader and no other member" in judged(talk)


def test_a_confirmation_by_someone_else_or_before_the_notice_is_none() -> None:
    talk = Talk(WHOLE)
    talk.say("worker-1", "received", "orch")
    posted = talk.say("orch", notice(), "worker-1")
    talk.say("worker-2", "received", "orch", reply=posted)
    assert judged(talk) == {"the reader confirms it to the lead"}
