"""How long the steps of a trial took, in seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Timings:
    """Seconds by step, in the order in which the steps ended. A step that happens again adds up."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Measure what happens inside. A step that failed did not happen: it gets no time."""
        began = self._clock()
        yield
        self.seconds[name] = round(self.seconds.get(name, 0.0) + self._clock() - began, 6)
