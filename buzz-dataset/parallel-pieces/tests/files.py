"""Is the sum of both yards in the file? Standard library only."""

from collections.abc import Callable


def checks(read: Callable[[str], str | None]) -> dict[str, bool]:
    return {"total.txt holds the number of containers in both yards": (read("total.txt") or "").strip() == "61"}
