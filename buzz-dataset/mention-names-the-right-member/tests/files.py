"""Is the right pilot's name in the file? Standard library only."""

from collections.abc import Callable


def checks(read: Callable[[str], str | None]) -> dict[str, bool]:
    return {"pilot.txt holds the name of the pilot on duty": (read("pilot.txt") or "").strip() == "worker-2"}
