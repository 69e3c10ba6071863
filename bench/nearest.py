"""The names nearest to one that was not found, for messages."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

CLOSE, FAR = 0.6, 0.4
"""difflib's ratios from which on a name is like a mistyped one, and like a part of one."""


def did_you_mean(given: str, known: Iterable[str], *, cutoff: float = CLOSE) -> str:
    """`did you mean <name>`, or an empty text where nothing is near."""
    near = get_close_matches(given, list(known), n=1, cutoff=cutoff)
    return f"did you mean {near[0]}" if near else ""


def nearest(part: str, known: Iterable[str], count: int = 3) -> list[str]:
    """The known names that hold the part, else those most like it, best first, at most `count`."""
    names = list(dict.fromkeys(known))
    holding = [name for name in names if part and part in name]
    return holding[:count] or get_close_matches(part, names, n=count, cutoff=FAR)
