"""Is the ship that lay longest the one in the file? Standard library only."""

from collections.abc import Callable


def checks(read: Callable[[str], str | None]) -> dict[str, bool]:
    return {"longest.txt holds the ship and its hours": (read("longest.txt") or "").split() == ["Meridian", "63"]}
