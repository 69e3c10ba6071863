"""The judges of tasks about channels and their members: who is in it, from when to when, and what is said meanwhile."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .kit import Talk, judged
from .talks import night_watch, shift

WATCH = "channel-has-exactly-these"
SHIFT = "removed-member-gets-no-more"
CODE = "the new code is KX-4471"


# --- a channel has exactly these members -------------------------------------------------------------------------


def test_a_channel_with_exactly_the_watch_in_it_passes() -> None:
    talk = Talk(WATCH)
    night_watch(talk)
    talk.done()
    assert judged(talk) == set()


def test_another_channel_chatter_and_an_added_watch_pass_too() -> None:
    talk = Talk(WATCH)
    talk.make_channel("orch", "scratch", "worker-1")
    talk.say("orch", "making the channel", "user")
    watch = talk.make_channel("orch", "#night-watch")
    talk.say("orch", "first message", channel=watch)
    talk.add("orch", "worker-2", watch)
    talk.say("orch", "there?", "worker-2", channel=watch)
    talk.say("worker-2", "one moment", channel=watch)
    talk.say("worker-2", "yes", "orch", channel=watch)
    assert judged(talk) == set()


def somebody_else_for_a_moment(talk: Talk) -> None:
    watch = talk.make_channel("orch", "night-watch", "worker-1", "worker-2")
    talk.remove("orch", "worker-1", watch)
    call = talk.say("orch", "there?", "worker-2", channel=watch)
    talk.say("worker-2", "yes", reply=call, channel=watch)


def the_user_as_well(talk: Talk) -> None:
    watch = talk.make_channel("orch", "night-watch", "worker-2", "user")
    call = talk.say("orch", "there?", "worker-2", channel=watch)
    talk.say("worker-2", "yes", reply=call, channel=watch)


def nobody_invited(talk: Talk) -> None:
    watch = talk.make_channel("orch", "night-watch")
    talk.say("orch", "there?", "worker-2", channel=watch)
    talk.say("worker-2", "yes", "orch")


def made_by_the_watch(talk: Talk) -> None:
    watch = talk.make_channel("worker-2", "night-watch", "orch")
    call = talk.say("orch", "there?", "worker-2", channel=watch)
    talk.say("worker-2", "yes", reply=call, channel=watch)


def another_name(talk: Talk) -> None:
    watch = talk.make_channel("orch", "nightwatch", "worker-2")
    call = talk.say("orch", "there?", "worker-2", channel=watch)
    talk.say("worker-2", "yes", reply=call, channel=watch)


def made_twice(talk: Talk) -> None:
    talk.make_channel("orch", "night-watch", "worker-2")
    night_watch(talk)


def answered_elsewhere(talk: Talk) -> None:
    watch = talk.make_channel("orch", "night-watch", "worker-2")
    talk.say("orch", "there?", "worker-2", channel=watch)
    talk.say("worker-2", "yes", "orch")


def said_there_before_it_was_asked(talk: Talk) -> None:
    watch = talk.make_channel("orch", "night-watch", "worker-2")
    talk.say("worker-2", "here", "orch", channel=watch)
    talk.say("orch", "there?", "worker-2", channel=watch)


@pytest.mark.parametrize(
    ("goes_wrong", "intended"),
    [
        (somebody_else_for_a_moment, {"nobody else was added to it at any time"}),
        (
            the_user_as_well,
            {"nobody else was added to it at any time", "its members are the lead and the one on watch"},
        ),
        (
            nobody_invited,
            {
                "its members are the lead and the one on watch",
                "the one on watch answers in that channel after the call",
            },
        ),
        (answered_elsewhere, {"the one on watch answers in that channel after the call"}),
        (said_there_before_it_was_asked, {"the one on watch answers in that channel after the call"}),
    ],
)
def test_a_channel_that_only_looks_right_fails(goes_wrong: Callable[[Talk], None], intended: set[str]) -> None:
    talk = Talk(WATCH)
    goes_wrong(talk)
    talk.done()
    assert judged(talk) == intended


@pytest.mark.parametrize("goes_wrong", [made_by_the_watch, another_name, made_twice])
def test_another_channel_is_not_the_one_asked_for(goes_wrong: Callable[[Talk], None]) -> None:
    talk = Talk(WATCH)
    goes_wrong(talk)
    talk.done()
    assert "the lead makes one channel of that name" in judged(talk)


# --- a removed member gets no more -------------------------------------------------------------------------------


def test_the_code_told_after_the_removal_passes() -> None:
    talk = Talk(SHIFT)
    shift(talk)
    talk.done()
    assert judged(talk) == set()


def test_good_byes_and_a_code_told_twice_pass_too() -> None:
    talk = Talk(SHIFT)
    berth = talk.make_channel("orch", "berth-6")
    for worker in ("worker-1", "worker-2"):
        talk.add("orch", worker, berth)
    talk.say("orch", "the shift changes", "worker-1", "worker-2", channel=berth)
    talk.say("worker-1", "good night", "orch", channel=berth)
    talk.remove("orch", "worker-1", berth)
    talk.say("orch", "you are out, good night", "worker-1")
    talk.say("orch", CODE, "worker-2", channel=berth)
    talk.say("worker-2", "KX-4471, right?", "orch", channel=berth)
    talk.say("orch", "KX-4471, yes", "worker-2", channel=berth)
    talk.say("worker-2", "noted", "orch", channel=berth)
    assert judged(talk) == set()


def changed(talk: Talk) -> str:
    berth = talk.make_channel("orch", "berth-6", "worker-1", "worker-2")
    talk.say("orch", "the shift changes", "worker-1", "worker-2", channel=berth)
    return berth


def told_before(talk: Talk) -> None:
    berth = changed(talk)
    talk.say("orch", CODE, "worker-2", channel=berth)
    talk.remove("orch", "worker-1", berth)
    talk.say("orch", CODE, "worker-2", channel=berth)
    talk.say("worker-2", "noted", "orch", channel=berth)


def told_in_the_old_channel_too(talk: Talk) -> None:
    berth = changed(talk)
    talk.remove("orch", "worker-1", berth)
    talk.say("orch", CODE, "worker-2", channel=berth)
    talk.say("worker-2", CODE, "orch")
    talk.say("worker-2", "noted", "orch", channel=berth)


def let_in_again(talk: Talk) -> None:
    berth = changed(talk)
    talk.remove("orch", "worker-1", berth)
    talk.say("orch", CODE, "worker-2", channel=berth)
    talk.say("worker-2", "noted", "orch", channel=berth)
    talk.add("worker-2", "worker-1", berth)


def left_by_itself(talk: Talk) -> None:
    berth = changed(talk)
    talk.remove("worker-1", "worker-1", berth)
    talk.say("orch", CODE, "worker-2", channel=berth)
    talk.say("worker-2", "noted", "orch", channel=berth)


def never_in_it(talk: Talk) -> None:
    berth = talk.make_channel("orch", "berth-6", "worker-2")
    talk.say("orch", "the shift changes", "worker-1", "worker-2", channel=berth)
    talk.say("orch", CODE, "worker-2", channel=berth)
    talk.say("worker-2", "noted", "orch", channel=berth)


def confirmed_elsewhere(talk: Talk) -> None:
    berth = changed(talk)
    talk.remove("orch", "worker-1", berth)
    talk.say("orch", CODE, "worker-2", channel=berth)
    talk.say("worker-2", "noted", "orch")


@pytest.mark.parametrize(
    ("goes_wrong", "intended"),
    [
        (told_before, {"the code is said nowhere else, and not before"}),
        (told_in_the_old_channel_too, {"the code is said nowhere else, and not before"}),
        (let_in_again, {"the one who leaves is no member in the end"}),
        (confirmed_elsewhere, {"the one who comes confirms it there"}),
        (
            left_by_itself,
            {
                "the lead takes the one who leaves out after that",
                "the lead tells the code there to the one who comes, after that",
                "the code is said nowhere else, and not before",
                "the one who comes confirms it there",
            },
        ),
    ],
)
def test_a_code_that_the_wrong_one_could_read_fails(goes_wrong: Callable[[Talk], None], intended: set[str]) -> None:
    talk = Talk(SHIFT)
    goes_wrong(talk)
    talk.done()
    assert judged(talk) == intended


def test_who_was_never_in_the_channel_was_not_taken_out_of_it() -> None:
    talk = Talk(SHIFT)
    never_in_it(talk)
    assert judged(talk) >= {
        "the lead makes one channel of that name with both workers in it",
        "the lead takes the one who leaves out after that",
    }
