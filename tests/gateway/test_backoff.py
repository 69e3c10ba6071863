"""One back-off for all calls to an endpoint: it grows with each round of trouble, not with each call."""

from __future__ import annotations

import pytest

from bench.gateway.backoff import LONGEST_STEP_S, Backoff, Patience


class Clock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def backoff(clock: Clock) -> Backoff:
    return Backoff(Patience(first_wait_s=1.0), clock)


def test_each_round_of_trouble_waits_twice_as_long(backoff: Backoff, clock: Clock) -> None:
    waits = []
    for _ in range(9):
        backoff.trouble(backoff.step, None)
        waits.append(backoff.left_s)
        clock.now += backoff.left_s
    assert waits == [1, 2, 4, 8, 16, 32, LONGEST_STEP_S, LONGEST_STEP_S, LONGEST_STEP_S]
    assert backoff.wait_s() == 0


def test_calls_that_were_under_way_together_are_one_round(backoff: Backoff) -> None:
    step = backoff.step
    for _ in range(16):
        backoff.trouble(step, None)
    assert backoff.left_s == 1


def test_an_answer_ends_the_trouble_unless_it_is_of_before(backoff: Backoff, clock: Clock) -> None:
    before = backoff.step
    backoff.trouble(before, None)
    clock.now += 1
    backoff.fine(before)
    backoff.trouble(backoff.step, None)
    assert backoff.left_s == 2, "the answer belonged to a call that went out before the trouble"
    clock.now += 2
    backoff.fine(backoff.step)
    backoff.trouble(backoff.step, None)
    assert backoff.left_s == 1


def test_trouble_of_long_ago_is_forgotten(backoff: Backoff, clock: Clock) -> None:
    for _ in range(3):
        backoff.trouble(backoff.step, None)
        clock.now += backoff.left_s
    assert (backoff.streak, backoff.troubled_s) == (3, 7)
    clock.now += LONGEST_STEP_S + 1
    backoff.trouble(backoff.step, None)
    assert (backoff.streak, backoff.troubled_s, backoff.left_s) == (1, 0, 1)


def test_what_the_upstream_asks_for_holds_for_all_and_is_never_shortened(backoff: Backoff) -> None:
    step = backoff.step
    backoff.trouble(step, 30.0)
    backoff.trouble(step, 5.0)
    backoff.trouble(backoff.step, None)
    assert backoff.left_s == 30


def test_calls_that_waited_together_go_out_one_after_the_other(backoff: Backoff) -> None:
    backoff.trouble(backoff.step, 8.0)
    waits = {backoff.wait_s() for _ in range(100)}
    assert len(waits) > 1
    assert 8 <= min(waits) <= max(waits) <= 10
