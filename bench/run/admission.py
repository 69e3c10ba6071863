"""Which of a job's trials may begin. Once it is stopped, none does, and those under way come to their end.

Harbor begins all trials at once and lets them wait for a place; there is no call to stop that. So the tasks that still
wait are cancelled: Harbor's task group passes over them, and `Job.run` raises CancelledError once the others have ended
(tests/conformance/test_harbor.py).
"""

from __future__ import annotations

import asyncio
from typing import Any

from bench.trial.stops import Stop

WAITING_TASK = "TrialQueue._run_trial"
"""The coroutine in which Harbor 0.26 lets a trial wait and run."""


class Admission:
    """One job's. `stop_` is why it was stopped, None while it isn't."""

    def __init__(self) -> None:
        self.stopped: Stop | None = None
        self._begun: set[asyncio.Task[Any]] = set()

    def begin(self) -> None:
        """The trial of the current task begins: a stop doesn't touch it any more."""
        task = asyncio.current_task()
        assert task
        self._begun.add(task)

    def stop(self, stop: Stop) -> None:
        """Begin no further trial. The first reason counts."""
        if self.stopped is None:
            self.stopped = stop
            for task in _trials() - self._begun:
                task.cancel()


def _trials() -> set[asyncio.Task[Any]]:
    return {task for task in asyncio.all_tasks() if getattr(task.get_coro(), "__qualname__", "") == WAITING_TASK}
