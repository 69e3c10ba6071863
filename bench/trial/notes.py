"""Lines for people while a job runs, such as a cap that is nearly reached: the run that listens shows them.

Without a listener (a pasted `harbor run` command) nobody hears them; nothing depends on it.
"""

from __future__ import annotations

from collections.abc import Callable

_listener: Callable[[str], None] | None = None


def listen(listener: Callable[[str], None]) -> None:
    """Have the notes of this process told to `listener`, in the event loop of whoever says them."""
    global _listener
    _listener = listener


def say(text: str) -> None:
    """Say one line."""
    if _listener is not None:
        _listener(text)
