"""A request that wasn't recorded is told by the nearest that was, and by the first place where they part."""

from __future__ import annotations

from typing import Any

import pytest

from bench.gateway.cassette import Address, Call, Timing
from bench.gateway.difference import first, nearest


def request(*texts: str, **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text} for text in texts], **more}


def call(number: int, *texts: str) -> Call:
    return Call(Address("t", 1, "orch", number), request(*texts), None, Timing(number))


@pytest.mark.parametrize(
    ("recorded", "now", "told"),
    [
        (
            request("REPORT 1"),
            request("REPORT 2"),
            "messages[0].content: recorded 'REPORT 1', now 'REPORT 2'",
        ),
        (request("a"), request("a", "b"), "messages[1]: recorded nothing, now "),
        (request("a", "b"), request("a"), "messages[1]: recorded "),
        (request("a", model="m"), request("a", model="n"), "model: recorded 'm', now 'n'"),
        (request("a", max_tokens=5), request("a", max_tokens=6), "max_tokens: recorded '5', now '6'"),
        (request("a"), request("a", tools=[]), "tools: recorded nothing, now '[]'"),
        (request("a", x=True), request("a", x=1), "x: recorded 'true', now '1'"),
    ],
)
def test_the_first_difference_is_told_with_its_place(recorded: Any, now: Any, told: str) -> None:
    assert str(first(recorded, now)).startswith(f"it differs first at {told}")


def test_equal_requests_have_none() -> None:
    assert first(request("a"), request("a")) is None


def test_of_a_long_text_the_part_around_the_difference_is_shown() -> None:
    found = first(request("x" * 500 + "one" + "y" * 500), request("x" * 500 + "two" + "y" * 500))
    assert found is not None
    assert found.recorded == f"'…{'x' * 60}one{'y' * 57}…'"


def test_a_setting_is_told_before_the_conversation() -> None:
    found = first(request("a", max_tokens=5), request("b", max_tokens=6))
    assert found is not None
    assert found.where == "max_tokens"


def test_the_nearest_shares_most_of_its_conversation() -> None:
    calls = [call(1, "task"), call(2, "task", "result 1"), call(3, "task", "result 1", "report of worker-1")]
    assert nearest(request("task", "result 1", "report of worker-2"), calls) is calls[2]
    assert nearest(request("task", "result 9"), calls) is calls[1]
    assert nearest(request("other"), []) is None
