"""A wall clock that jumps while a trial runs is seen; one that NTP slews is not taken for it."""

from __future__ import annotations

import pytest

from bench.trial.wallclock import JUMP_S, WallClock


class Clocks:
    """Two clocks that a test moves."""

    def __init__(self) -> None:
        self.wall_s, self.steady_s = 1_800_000_000.0, 5.0
        self.clock = WallClock(lambda: self.wall_s, lambda: self.steady_s)

    def after(self, steady_s: float, wall_s: float) -> float:
        self.steady_s += steady_s
        self.wall_s += wall_s
        return self.clock.jumped_s


def test_time_that_passes_is_no_jump_however_long() -> None:
    assert Clocks().after(7 * 86_400, 7 * 86_400) == 0.0


def test_an_hour_of_slewing_is_no_jump() -> None:
    assert Clocks().after(3_600, 3_600 * 1.0005) == 0.0


@pytest.mark.parametrize("jump_s", [-3_600.0, -JUMP_S, JUMP_S, 3_600.0])
def test_a_step_either_way_is_told_in_seconds_and_stays_told(jump_s: float) -> None:
    clocks = Clocks()
    assert clocks.after(10, 10 + jump_s) == jump_s
    assert clocks.after(100, 100) == jump_s


def test_a_machine_that_slept_has_a_wall_clock_ahead() -> None:
    assert Clocks().after(60, 8 * 3_600) == 8 * 3_600 - 60


def test_the_real_clocks_have_not_jumped_just_now() -> None:
    assert WallClock().jumped_s == 0.0
