"""Does the rota hold the lines of the brief? Standard library only."""

from collections.abc import Callable

LINES = ["Crane 1 is greased on Monday.", "Crane 2 is greased on Tuesday.", "Crane 3 is greased on Friday."]


def checks(read: Callable[[str], str | None]) -> dict[str, bool]:
    lines = [line.strip() for line in (read("rota.txt") or "").splitlines() if line.strip()]
    return {"the rota holds the lines of the brief, in order": lines == LINES}
