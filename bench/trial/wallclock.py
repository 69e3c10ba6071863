"""Whether the wall clock jumped while a trial ran: set by a person or by NTP, or ahead after a sleep of the machine.

What is measured goes by the steady clock. The wall clock says when, in records and signed events, and there what two
processes wrote down before and after a jump can't be compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable

JUMP_S = 2.0
"""From here on it is no slewing: NTP's moves a clock by 0.5 ms a second at most, which is less in an hour."""


class WallClock:
    """The wall clock since this was made. Both clocks give seconds; `steady` never goes back."""

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic) -> None:
        self._wall, self._steady = wall, steady
        self._gap = wall() - steady()

    @property
    def jumped_s(self) -> float:
        """By how much it jumped, ahead or (below 0) back; 0.0 where it didn't."""
        moved = self._wall() - self._steady() - self._gap
        return round(moved, 3) if abs(moved) >= JUMP_S else 0.0
