"""How many trials may start their containers at the same time: a burst of them swamps the host (public case 44).

Those that run already are not counted: their number is `--n-concurrent`'s to say.
"""

from __future__ import annotations

import asyncio
import os

from bench.settings import Settings


def most(settings: Settings) -> int:
    """How many may start at once: as set, else one for each processor, and at least two."""
    return settings.docker_starts or max(2, os.cpu_count() or 1)


class Starts:
    """A gate that a trial holds from its environment's start to its agent's, by Harbor's events.

    Harbor awaits its hooks, and starts the clock of the environment's start after this one: waiting costs a trial
    nothing but wall time (HARBOR.md section 4, order of a trial).
    """

    def __init__(self, most: int) -> None:
        self._gate = asyncio.Semaphore(most)
        self._starting: set[str] = set()

    async def on_event(self, event: str, trial: str) -> None:
        """Wait, or let the next one in. An event that says nothing about starting changes nothing."""
        if event == "environment-start":
            await self._gate.acquire()
            self._starting.add(trial)
        elif event in ("agent-start", "cancel", "end") and trial in self._starting:
            self._starting.remove(trial)
            self._gate.release()
