"""The names nearest to one that was not found, for messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from pathlib import Path

from bench.faults import shown

CLOSE, FAR = 0.6, 0.4
"""difflib's ratios from which on a name is like a mistyped one, and like a part of one."""

CLOSE_FILE = 0.7
"""The same of a file: a folder may hold anything, and so something that is like it by chance."""


def did_you_mean(given: str, known: Iterable[str], *, cutoff: float = CLOSE) -> str:
    """`did you mean <name>`, or an empty text where nothing is near."""
    near = get_close_matches(given, list(known), n=1, cutoff=cutoff)
    return f"did you mean {near[0]}" if near else ""


def nearest(part: str, known: Iterable[str], count: int = 3) -> list[str]:
    """The known names that hold the part, else those most like it, best first, at most `count`."""
    names = list(dict.fromkeys(known))
    holding = [name for name in names if part and part in name]
    return holding[:count] or get_close_matches(part, names, n=count, cutoff=FAR)


def similar_path(path: Path, *folders: Path, among: Callable[[Path], bool] = Path.is_file) -> str:
    """`did you mean <path>`: of what there is beside a path that isn't there, or in one of the folders.

    Suffixes are no part of the likeness: `no.yaml` is not like `invoke.yaml`. A name without one means one that has.
    """
    for folder in (path.parent, *folders):
        try:
            entries = sorted(entry for entry in folder.iterdir() if entry.name.isprintable() and among(entry))
        except OSError:
            continue
        names = {entry.stem: entry for entry in entries if path.suffix in ("", entry.suffix)}
        if near := get_close_matches(path.stem, names, n=1, cutoff=CLOSE_FILE):
            return f"did you mean {shown(names[near[0]])}"
    return ""
