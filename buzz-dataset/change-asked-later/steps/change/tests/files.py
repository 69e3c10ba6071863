"""Is the one line of the rota changed, and no other? Standard library only."""

from collections.abc import Callable

LINES = ["Crane 1 is greased on Monday.", "Crane 2 is greased on Wednesday.", "Crane 3 is greased on Friday."]


def checks(read: Callable[[str], str | None]) -> dict[str, bool]:
    lines = [line.strip() for line in (read("rota.txt") or "").splitlines() if line.strip()]
    return {"crane 2 is greased on Wednesday, and the other lines are as they were": lines == LINES}
