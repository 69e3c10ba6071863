"""When calls may go out again to an upstream in trouble: one back-off for all calls of a job to one endpoint."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

LONGEST_STEP_S = 60.0
"""Where the upstream doesn't say when to come back, no step of the back-off is longer."""

SPREAD = 0.25
"""Calls that waited for the same moment go out over this share of their wait, not all at once."""


@dataclass(frozen=True)
class Patience:
    """How a job meets an upstream in trouble.

    A call is tried again `retries` times. The first wait is `first_wait_s`; each further one is twice as long. A job
    whose upstream asks for more than `longest_wait_s` doesn't wait for it: it stops, to be resumed later (exit 75).
    """

    retries: int = 8
    first_wait_s: float = 1.0
    longest_wait_s: float = 300.0


USUAL = Patience()


class Backoff:
    """One endpoint's. Times in seconds; `clock` never goes back."""

    def __init__(self, patience: Patience, clock: Callable[[], float] = time.monotonic) -> None:
        self._patience, self._clock = patience, clock
        self._until = 0.0
        self._began = 0.0
        self.step = 0
        """A call notes it when it goes out: what many calls that were under way together meet is one step."""
        self.streak = 0
        """How many steps in a row were trouble."""

    @property
    def left_s(self) -> float:
        """How long no call may go out, 0 where one may."""
        return max(0.0, self._until - self._clock())

    def wait_s(self) -> float:
        """How long one call should wait: what is left and its own share of the spread."""
        left = self.left_s
        return left * random.uniform(1.0, 1.0 + SPREAD)  # noqa: S311  (a pause, no secret)

    def trouble(self, step: int, retry_after_s: float | None) -> None:
        """A call that went out at `step` met trouble."""
        wait_s, now = retry_after_s or 0.0, self._clock()
        if step == self.step:
            if now - self._until > LONGEST_STEP_S:
                # Nobody has asked for so long: what was before says nothing any more.
                self.streak = 0
            self._began = self._began if self.streak else now
            self.step += 1
            self.streak += 1
            if not wait_s:
                wait_s = min(LONGEST_STEP_S, self._patience.first_wait_s * 2 ** (self.streak - 1))
        self._until = max(self._until, now + wait_s)

    def fine(self, step: int) -> None:
        """A call that went out at `step` was answered: the trouble before it is over."""
        if step == self.step:
            self.streak = 0

    @property
    def troubled_s(self) -> float:
        """How long there was nothing but trouble."""
        return self._clock() - self._began if self.streak else 0.0
