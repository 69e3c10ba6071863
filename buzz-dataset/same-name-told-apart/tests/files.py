"""Is the most worn link in the file? Standard library only."""

from collections.abc import Callable


def checks(read: Callable[[str], str | None]) -> dict[str, bool]:
    return {"link.txt holds the number of the link that is worn most": (read("link.txt") or "").strip() == "27"}
