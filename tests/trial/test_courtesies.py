"""Real agents that only thank each other are a loop, however busy they look (public case 28)."""

from __future__ import annotations

from typing import Any

from bench.harness.bounds import Bounds
from bench.prices import Tokens
from bench.trial.calls import Call
from bench.trial.courtesies import in_a_row

PEOPLE = {"aa": "orch", "bb": "worker"}
KEYS = {name: key for key, name in PEOPLE.items()}


class Team:
    """Turns one after the other, ten seconds each."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.seen_at: dict[str, float] = {}
        self.calls: list[Call] = []
        self.now = 0.0

    def turn(self, agent: str, *said: str, tools: int | None = None, ends: bool = True) -> None:
        """A turn in which the agent sends messages, with as many tool calls as that takes, or with others."""
        used = len(said) if tools is None else tools
        self.calls.append(Call(agent, self.now, self.now + 1, "ok", 200, Tokens(1, 0, 0, 1), used))
        for text in said:
            self.events.append({"id": f"e{len(self.events)}", "pubkey": KEYS[agent], "kind": 9, "content": text})
            self.seen_at[self.events[-1]["id"]] = self.now + 2
        if ends and used:
            self.calls.append(Call(agent, self.now + 3, self.now + 4, "ok", 200, Tokens(1, 0, 0, 1), 0))
        self.now += 10

    @property
    def courtesies(self) -> int:
        return in_a_row(self.events, self.seen_at, PEOPLE, self.calls, Bounds())


def thanking(times: int) -> Team:
    team = Team()
    for number in range(times):
        team.turn("orch" if number % 2 else "worker", "thank you!")
    return team


def test_turns_that_only_send_a_short_message_are_counted() -> None:
    assert thanking(12).courtesies == 12


def test_a_turn_that_does_something_besides_begins_anew() -> None:
    team = thanking(3)
    team.turn("orch", "looked at it", tools=2)
    assert team.courtesies == 0
    team.turn("worker", "thank you!")
    assert team.courtesies == 1


def test_a_long_message_is_no_courtesy() -> None:
    team = thanking(3)
    team.turn("orch", "x" * 121)
    assert team.courtesies == 0


def test_work_that_sends_nothing_is_work_and_a_turn_without_anything_is_passed_over() -> None:
    team = thanking(3)
    team.turn("orch")
    assert team.courtesies == 3
    team.turn("orch", tools=1)
    assert team.courtesies == 0


def test_a_turn_under_way_is_not_counted_yet() -> None:
    team = thanking(3)
    team.turn("orch", "thank you!", ends=False)
    assert team.courtesies == 3


def test_a_call_of_which_nobody_knows_what_it_set_off_may_have_been_work() -> None:
    team = thanking(3)
    team.calls[-2] = Call("worker", 20.0, 21.0, "ok", 200, Tokens(1, 0, 0, 1), None)
    assert team.courtesies == 0


def test_other_peoples_messages_are_nothing_to_it() -> None:
    team = thanking(2)
    team.events.append({"id": "u", "pubkey": "user", "kind": 9, "content": "ok"})
    team.seen_at["u"] = team.now
    assert team.courtesies == 2
