"""What has to happen when a trial is over: Harbor tells no agent that it ends before its last step, or before any."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

_closing: set[asyncio.Task[None]] = set()
"""Held here, for an event loop holds its tasks only weakly."""


def with_trial(close: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Call `close` when the task ends in which the trial runs, which is the one that calls this."""
    trial = asyncio.current_task()
    assert trial is not None

    def begin(_: asyncio.Task[Any]) -> None:
        task = trial.get_loop().create_task(close())
        _closing.add(task)
        task.add_done_callback(_closing.discard)

    trial.add_done_callback(begin)
