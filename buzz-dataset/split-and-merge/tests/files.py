"""Are both parts and the merged report right? Standard library only."""

from collections.abc import Callable


def checks(read: Callable[[str], str | None]) -> dict[str, bool]:
    report = [line.split() for line in (read("report.txt") or "").strip().splitlines()]
    return {
        "north.total holds the sum of the north quay": (read("north.total") or "").strip() == "818",
        "south.total holds the sum of the south quay": (read("south.total") or "").strip() == "455",
        "report.txt holds both sums and their total": report == [["north", "818"], ["south", "455"], ["total", "1273"]],
    }
