"""Signs of life of a team, with a clock that the test moves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.prices import Tokens
from bench.trial.calls import Call
from bench.trial.signs import MOST_FAILURES, PROBE_S, Signs


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def signs() -> tuple[Signs, Clock]:
    clock = Clock()
    made = Signs(clock, 45.0)
    made.heard()
    return made, clock


def call(status: int, agent: str = "orch", reason: str = "") -> Call:
    return Call(agent, 0, 1, "ok" if status == 200 else "error", status, Tokens(0, 0, 0, 0), reason=reason)


def test_a_team_is_quiet_when_nobody_was_heard_of_for_long_enough() -> None:
    made, clock = signs()
    clock.now += 44.9
    quiet = [made.quiet]
    clock.now += 0.2
    quiet.append(made.quiet)
    made.heard()
    assert [*quiet, made.quiet] == [False, True, False]


def test_a_team_at_work_is_never_looked_at_and_a_quiet_one_ever_more_seldom() -> None:
    made, clock = signs()
    for _ in range(100):
        clock.now += 3
        made.heard()
        assert not made.wants_a_look
    looked = []
    for second in range(200):
        if made.wants_a_look:
            looked.append(second)
        clock.now += 1
    assert looked == [PROBE_S, PROBE_S * 3, PROBE_S * 7, PROBE_S * 15]


def test_what_the_gateway_tries_again_is_a_sign_of_life_and_no_failure() -> None:
    made, clock = signs()
    clock.now += 44
    assert made.take([replace(call(529), again=True)] * MOST_FAILURES * 2) is None
    clock.now += 44
    assert not made.quiet
    assert made.take([call(529)] * (MOST_FAILURES - 1)) is None
    assert made.take([call(529)]) is not None


def test_calls_that_the_gateway_refuses_are_no_sign_of_life() -> None:
    """An agent over its cap has its turns tried again for ever, and nothing comes of them."""
    made, clock = signs()
    clock.now += 44
    assert made.take([replace(call(402), outcome="refused")]) is None
    clock.now += 2
    assert made.quiet


def test_a_model_that_recovers_is_forgiven() -> None:
    made, _ = signs()
    for _ in range(10):
        assert made.take([call(500)] * (MOST_FAILURES - 1)) is None
        assert made.take([call(200)]) is None


def test_failures_of_several_agents_do_not_add_up() -> None:
    made, _ = signs()
    assert made.take([call(500, "orch"), call(500, "worker-1")] * (MOST_FAILURES - 1)) is None


@pytest.mark.parametrize(("status", "kind", "number"), [(500, "upstream_failed", 6), (429, "upstream_failed", 6)])
def test_a_model_that_fails_again_and_again_is_a_fault(status: int, kind: str, number: int) -> None:
    made, _ = signs()
    assert made.take([call(status)] * (number - 1)) is None
    end = made.take([call(status, reason="overloaded")])
    assert end
    assert end.fault
    assert end.fault.kind == kind
    assert end.reason == f"orch: {number} model calls in a row failed, the last with {status} (overloaded)"


def test_a_request_that_the_model_takes_for_wrong_is_not_made_ten_times() -> None:
    made, _ = signs()
    assert made.take([call(400)]) is None
    end = made.take([call(404)])
    assert end
    assert end.fault
    assert end.fault.kind == "upstream_rejected"
