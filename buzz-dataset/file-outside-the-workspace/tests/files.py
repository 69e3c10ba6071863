"""Are level and path in the file? Standard library only."""

from collections.abc import Callable


def checks(read: Callable[[str], str | None]) -> dict[str, bool]:
    lines = [line.strip() for line in (read("level.txt") or "").strip().splitlines()]
    return {
        "the first line of level.txt is the highest tide of the office's table": lines[:1] == ["431"],
        "the second line of level.txt is the full path of that table": lines[1:] == ["/srv/harbour office/tides.csv"],
    }
