"""Are both answers in the file? Standard library only."""

from collections.abc import Callable


def checks(read: Callable[[str], str | None]) -> dict[str, bool]:
    lines = [line.strip() for line in (read("answers.txt") or "").strip().splitlines()]
    return {
        "the first line of answers.txt is the number of ships that came in": lines[:1] == ["7"],
        "the second line of answers.txt is the ship that came in last": lines[1:] == ["Halcyon"],
    }
