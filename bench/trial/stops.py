"""Why a job must not begin another trial: whoever learns it announces it here, and the run that listens acts on it.

A trial under way comes to its end; the ones that haven't begun stay to be resumed. Without a listener (a pasted
`harbor run` command) an announcement changes nothing: each trial then meets the cause itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

type Kind = Literal["stopped", "budget", "waiting"]

EXIT_CODES: dict[Kind, int] = {"stopped": 1, "budget": 4, "waiting": 75}
"""What the command ends with (bench.errors)."""


@dataclass(frozen=True)
class Stop:
    """`stopped`: nobody should go on (a key refused, no money); `budget`: the job's own cap; `waiting`: an upstream's
    limit resets later. `reason` is one line."""

    kind: Kind
    reason: str


_listener: Callable[[Stop], None] | None = None


def listen(listener: Callable[[Stop], None]) -> None:
    """Have announcements of this process told to `listener`, in the event loop of whoever announces."""
    global _listener
    _listener = listener


def announce(stop: Stop) -> None:
    """Say that the job must not go on. May be said several times; the first counts."""
    if _listener is not None:
        _listener(stop)
