"""An agent's turns as the gateway saw them, and what was signed outside of them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from bench.prices import Tokens
from bench.trial.calls import Call
from bench.trial.turns import GRACE_S, Turn, silent, turns, unexplained

PEOPLE = {"aa": "orch", "bb": "worker-1"}


def call(began: float, ended: float, tool_calls: int | None = 0, agent: str = "orch", outcome: str = "ok") -> Call:
    return Call(agent, began, ended, outcome, 200, Tokens(1, 0, 0, 1), tool_calls)


def event(identity: str, by: str = "aa", kind: int = 9, at: int = 0) -> dict[str, Any]:
    return {"id": identity, "pubkey": by, "kind": kind, "created_at": at, "tags": [], "content": ""}


def found(events: dict[float, dict[str, Any]], *calls: Call) -> list[str]:
    return unexplained(events.values(), {e["id"]: at for at, e in events.items()}, PEOPLE, calls)


def test_a_turn_goes_from_its_first_call_to_the_answer_that_calls_no_tool() -> None:
    assert turns([call(10, 11, 2), call(30, 31, 1), call(40, 42), call(60, 61)]) == [Turn(10, 42), Turn(60, 61)]


def test_a_turn_that_nobody_saw_ending_goes_on() -> None:
    assert turns([call(10, 11, 1)]) == [Turn(10, math.inf)]
    assert turns([call(10, 11, None)]) == [Turn(10, math.inf)]
    assert turns([call(10, 11, outcome="error")]) == [Turn(10, math.inf)]
    assert turns([call(10, 11, outcome="refused")]) == []


def test_a_message_sent_by_a_tool_is_explained_however_long_the_tool_runs() -> None:
    assert found({600.0: event("x")}, call(10, 11, 1), call(700, 701)) == []


def test_a_message_just_after_the_turn_may_have_been_on_its_way() -> None:
    assert found({11 + GRACE_S - 0.1: event("x")}, call(10, 11)) == []
    assert found({11 + GRACE_S + 0.1: event("x")}, call(10, 11)) == ["x"]


def test_what_is_signed_between_turns_is_unexplained() -> None:
    assert found({30.0: event("x"), 50.5: event("y")}, call(10, 11), call(50, 51)) == ["x"]


def test_a_script_in_the_background_is_explained_while_its_agent_is_at_work() -> None:
    assert found({55.0: event("x")}, call(10, 11), call(50, 51, 1), call(60, 61)) == []


def test_an_agent_that_was_never_asked_signs_nothing() -> None:
    assert found({30.0: event("x", by="bb")}, call(10, 100)) == ["x"]


def test_reactions_presence_and_other_peoples_messages_need_no_turn() -> None:
    assert found({30.0: event("x", kind=7), 31.0: event("y", by="cc"), 32.0: event("z", kind=44200)}) == []


@pytest.mark.parametrize("kind", [9, 40003, 9000, 9001, 9007, 9005])
def test_whatever_only_a_tool_sends_needs_a_turn(kind: int) -> None:
    """Else a neighbour's key could make and clear channels, or delete what was said, without a word of it."""
    assert found({30.0: event("x", kind=kind)}, call(10, 11)) == ["x"]
    assert found({10.5: event("x", kind=kind)}, call(10, 11)) == []


def test_an_event_that_nobody_saw_live_counts_from_its_own_second() -> None:
    calls = [call(10.2, 11)]
    assert unexplained([event("x", at=10)], {}, PEOPLE, calls) == []
    assert unexplained([event("x", at=9)], {}, PEOPLE, calls) == ["x"]


def test_turns_without_a_message_are_silent_unless_a_later_one_makes_them_good() -> None:
    calls = [call(10, 11), call(20, 21)]
    assert silent([], {}, "aa", calls) == 2
    assert silent([event("x")], {"x": 20.5}, "aa", calls) == 0
    assert silent([event("x")], {"x": 10.5}, "aa", calls) == 1
    assert silent([], {}, "aa", [call(10, 11, 1)]) == 0
