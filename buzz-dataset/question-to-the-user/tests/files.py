"""Is the berth that the user named in the file? Standard library only."""

from collections.abc import Callable


def checks(read: Callable[[str], str | None]) -> dict[str, bool]:
    place = (read("place.txt") or "").split()
    return {"place.txt holds the ship and the berth that the user named": place == ["Meridian", "9"]}
