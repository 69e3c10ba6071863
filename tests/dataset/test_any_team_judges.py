"""The judges of tasks for any team: whoever of it speaks, and whatever else is said."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .kit import Talk, judged

TOTALS = "totals-told-to-the-user"
THREAD = "answer-in-the-users-thread"
TOLD = "the user is told the tonnes of both months together"
REPLIED, RIGHT = (
    "somebody replies in the thread of the user's message",
    "a reply there names the ship that lay longest and its hours",
)


def by_the_lead(talk: Talk) -> None:
    talk.say("orch", "Both months: 2210 tonnes.", "user")


def by_a_worker(talk: Talk) -> None:
    talk.say("worker-1", "2,210 tonnes", "user")


def at_the_end(talk: Talk) -> None:
    talk.say("orch", "DONE: april 1075, may 1135, both 2210", "user")


@pytest.mark.parametrize("said", [by_the_lead, by_a_worker, at_the_end])
def test_the_sum_may_be_told_by_anybody_and_at_the_end(said: Callable[[Talk], None]) -> None:
    talk = Talk(TOTALS)
    said(talk)
    assert judged(talk) == set()


def without_a_mention(talk: Talk) -> None:
    talk.say("orch", "@user 2210 tonnes")


def one_month(talk: Talk) -> None:
    talk.say("orch", "1135 tonnes", "user")


def longer_numbers(talk: Talk) -> None:
    talk.say("orch", "22104 tonnes, or 2210.5", "user")


def in_another_channel(talk: Talk) -> None:
    aside = talk.make_channel("orch", "aside", "worker-1")
    talk.say("orch", "2210 tonnes", "user", channel=aside)


@pytest.mark.parametrize("said", [without_a_mention, one_month, longer_numbers, in_another_channel])
def test_a_sum_that_does_not_reach_the_user_fails(said: Callable[[Talk], None]) -> None:
    talk = Talk(TOTALS)
    said(talk)
    assert judged(talk) == {TOLD}


@pytest.mark.parametrize("author", ["orch", "worker-1"])
def test_an_answer_in_the_users_thread_passes_whoever_gives_it(author: str) -> None:
    talk = Talk(THREAD)
    talk.say("orch", "looking")
    talk.say(author, "MERIDIAN, 63 hours", reply=talk.posted)
    assert judged(talk) == set()


def test_an_answer_below_another_reply_is_in_the_users_thread_too() -> None:
    talk = Talk(THREAD)
    first = talk.say("orch", "looking", reply=talk.posted)
    talk.say("orch", "the Meridian, for 63 hours", reply=first)
    assert judged(talk) == set()


def test_an_answer_outside_the_users_thread_fails() -> None:
    talk = Talk(THREAD)
    aside = talk.say("orch", "which?", "worker-1")
    talk.say("worker-1", "the Meridian, 63 hours", "orch", reply=aside)
    talk.say("orch", "the Meridian, 63 hours", "user")
    assert judged(talk) == {REPLIED, RIGHT}


@pytest.mark.parametrize("text", ["the Halcyon, 58 hours", "the Meridian", "63 hours", "the Meridian, 163 hours"])
def test_another_ship_or_half_an_answer_fails(text: str) -> None:
    talk = Talk(THREAD)
    talk.say("orch", text, reply=talk.posted)
    assert judged(talk) == {RIGHT}
