"""What one key may ask of the relay in a time: off by default, as Buzz's own variables say where they are set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from bench.relay.limits import VARIABLES, Limits, refusal
from bench.stack.postgres import Postgres
from tests.relay.running import RunningRelay


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


def test_without_variables_nothing_is_limited() -> None:
    limits = Limits.of({"PATH": "/bin"})
    assert [limits.wait_s("a", "message", agent=False) for _ in range(1000)] == [0] * 1000


def test_each_key_has_its_own_window_and_is_told_when_it_ends() -> None:
    clock = Clock()
    limits = Limits({("call", False): 2}, clock)
    assert [limits.wait_s("a", "call", agent=False) for _ in range(3)] == [0, 0, 60]
    assert limits.wait_s("b", "call", agent=False) == 0
    clock.now += 58.5
    assert limits.wait_s("a", "call", agent=False) == 2
    clock.now += 1.5
    assert limits.wait_s("a", "call", agent=False) == 0


def test_frames_are_counted_over_five_seconds_and_agents_have_limits_of_their_own() -> None:
    given = {
        "BUZZ_RATE_LIMIT_HUMAN_WS_EVENTS_PER_SEC": "1",
        "BUZZ_RATE_LIMIT_HUMAN_MESSAGES_PER_MIN": "1",
        "BUZZ_RATE_LIMIT_AGENT_STANDARD_MESSAGES_PER_MIN": "2",
    }
    limits = Limits.of(given)
    limits.clock = Clock()
    assert [limits.wait_s("a", "frame", agent=True) for _ in range(6)] == [0, 0, 0, 0, 0, 5]
    assert [limits.wait_s("a", "message", agent=False) for _ in range(2)] == [0, 60]
    assert [limits.wait_s("b", "message", agent=True) for _ in range(3)] == [0, 0, 60]


@pytest.mark.parametrize("given", ["", "0", "-1", "1.5", "many"])
def test_a_limit_that_is_no_number_is_refused_by_its_name(given: str) -> None:
    with pytest.raises(ValueError, match=r"BUZZ_RATE_LIMIT_HUMAN_API_CALLS_PER_MIN is .*no whole number above zero"):
        Limits.of({"BUZZ_RATE_LIMIT_HUMAN_API_CALLS_PER_MIN": given})


def test_windows_that_are_over_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.relay.limits.MOST_WINDOWS", 3)
    clock = Clock()
    limits = Limits({("call", False): 2}, clock)
    for number in range(4):
        limits.wait_s(str(number), "call", agent=False)
    clock.now += 61
    limits.wait_s("late", "call", agent=False)
    assert len(limits._windows) == 1


@pytest.fixture
def limited(postgres_server: Postgres, database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningRelay]:
    """A relay that takes three of each from a key."""
    for name in {*VARIABLES.values()} - {"HUMAN_WS_EVENTS_PER_SEC"}:
        monkeypatch.setenv(f"BUZZ_RATE_LIMIT_{name}", "3")
    relay = RunningRelay(database).start()
    yield relay
    relay.stop()


async def test_an_event_that_is_too_much_is_a_notice_and_no_answer(limited: RunningRelay) -> None:
    async with limited.socket(limited.owner) as wire:
        for number in range(5):
            await wire.send("EVENT", limited.owner.sign(0, f'{{"display_name":"{number}"}}', []))
        answers = [await wire.receive() for _ in range(5)]
    assert [answer[0] for answer in answers].count("OK") == 3
    assert [answer[1] for answer in answers if answer[0] == "NOTICE"] == [refusal(60)] * 2


async def test_a_call_that_is_too_much_is_answered_with_429(limited: RunningRelay) -> None:
    answers = [await limited.post("/query", [{"kinds": [0]}], limited.owner) for _ in range(4)]
    assert [status for status, _ in answers] == [200, 200, 200, 429]
    assert answers[3][1] == {"error": refusal(60)}
