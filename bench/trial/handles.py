"""A trial's handle: where it takes place and who plays, told to whoever keeps it once the team is in place (row R3).

Harbor's process has no connection to PostgreSQL: its parent listens, and stores it there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Handle:
    """Public things only; `agents` are public keys by name."""

    trial: str
    task: str
    channel: str
    condition_sha256: str
    user_public: str
    agents: Mapping[str, str]


_listener: Callable[[Handle], None] | None = None


def listen(listener: Callable[[Handle], None]) -> None:
    """Have the handles of this process's trials told to `listener`, in the trials' event loop."""
    global _listener
    _listener = listener


def announce(handle: Handle) -> None:
    """Say that a trial's team is in place. Nobody listens in a pasted `harbor run` command."""
    if _listener is not None:
        _listener(handle)
