"""Is the first version as briefed, and does the last one meet the rules? Standard library only."""

from collections.abc import Callable

FACTS = [
    "Crane 2 stands still on Thursday.",
    "Its chain is replaced between 07:00 and 15:00.",
    "Use crane 4 meanwhile.",
]
FORM = "Form HM-417, to be kept until Friday"


def checks(read: Callable[[str], str | None]) -> dict[str, bool]:
    versions: list[list[str]] = []
    while (text := read(f"notice-{len(versions) + 1}.txt")) is not None:
        versions.append([line.strip() for line in text.splitlines() if line.strip()])
    return {
        "the first version holds the facts and not yet the form": bool(versions)
        and contains(versions[0], FACTS)
        and not any("HM-417" in line for line in versions[0]),
        "a later version holds the facts and ends with the form": len(versions) > 1
        and contains(versions[-1], FACTS)
        and versions[-1][-1].strip("\"'") == FORM,
    }


def contains(lines: list[str], facts: list[str]) -> bool:
    return all(fact in lines for fact in facts)
