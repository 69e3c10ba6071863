"""Loops are bounded, and the reason is visible (public cases 27 and 28)."""

from __future__ import annotations

import pytest

from bench.harness.bounds import Bounds, Conduct, TeamEnded


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def conduct(**bounds: int) -> Conduct:
    return Conduct(Clock(), Bounds(**bounds))


def turn(watched: Conduct, agent: str, *, chars: int | None = None, works: bool = False) -> None:
    watched.begin_turn(agent)
    watched.call(agent)
    if works:
        watched.work(agent)
    if chars is not None:
        watched.message(agent, chars)
    watched.end_turn(agent)


def test_an_agent_that_is_woken_too_often_ends_the_work() -> None:
    watched = conduct(turns_per_agent=2)
    turn(watched, "a", works=True)
    turn(watched, "a", works=True)
    with pytest.raises(TeamEnded, match="loop: a was woken more than 2 times"):
        watched.begin_turn("a")


def test_a_turn_of_too_many_calls_ends_the_work() -> None:
    watched = conduct(calls_per_turn=2)
    watched.begin_turn("a")
    watched.call("a")
    watched.call("a")
    with pytest.raises(TeamEnded, match="a made more than 2 model calls in one turn"):
        watched.call("a")


def test_a_team_that_talks_too_much_ends_the_work() -> None:
    watched = conduct(messages_per_trial=1)
    turn(watched, "a", chars=500)
    watched.begin_turn("b")
    with pytest.raises(TeamEnded, match="the team sent more than 1 messages"):
        watched.message("b", 500)


def test_an_exchange_of_courtesies_is_a_loop() -> None:
    watched = conduct(ack_turns=3)
    turn(watched, "a", chars=2)
    turn(watched, "b", chars=2)
    with pytest.raises(TeamEnded, match="3 turns in a row did nothing but exchange messages of at most 120"):
        turn(watched, "a", chars=2)


@pytest.mark.parametrize("between", [{"works": True}, {"chars": 500}])
def test_work_or_a_long_message_between_makes_it_none(between: dict[str, int]) -> None:
    watched = conduct(ack_turns=3)
    for _ in range(4):
        turn(watched, "a", chars=2)
        turn(watched, "b", chars=2)
        turn(watched, "a", **between)  # type: ignore[arg-type]


def test_a_turn_that_publishes_nothing_is_silent_until_the_agent_makes_up_for_it() -> None:
    watched = conduct()
    turn(watched, "a")
    turn(watched, "b", works=True)
    assert watched.silent_turns == 2
    watched.begin_turn("a")
    watched.publish("a")
    assert watched.silent_turns == 1


def test_quiet_counts_from_the_last_turns_end() -> None:
    clock = Clock()
    watched = Conduct(clock)
    assert watched.quiet_s == 0
    watched.begin_turn("a")
    watched.begin_turn("b")
    watched.end_turn("b")
    clock.now_s = 10
    assert watched.quiet_s == 0
    watched.end_turn("a")
    clock.now_s = 13
    assert watched.quiet_s == 3
    watched.begin_turn("a")
    assert watched.quiet_s == 0
