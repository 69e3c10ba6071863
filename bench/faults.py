"""Problems gathered on the way, so that all are told at once, and paths as people know them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from bench.errors import InvalidInput, Problem


class Faults(list[Problem]):
    """The problems found so far."""

    def catch[T](self, make: Callable[[], T]) -> T | None:
        """What `make` gives, or None where it has problems, which are kept."""
        try:
            return make()
        except InvalidInput as error:
            self.extend(error.problems)
            return None

    def number(
        self, option: str, given: int | str | None, *, least: int = 1, most: int = 999_999, otherwise: str = ""
    ) -> int | None:
        """A whole number within the bounds; None where none was given, or where what was given is none.

        `otherwise` is what else could have been given.
        """
        if given is None:
            return None
        if not re.fullmatch(r"[0-9]{1,15}", str(given)) or not least <= int(given) <= most:
            self.append(Problem(option, f"{given} is not a whole number from {least} to {most}", otherwise))
            return None
        return int(given)


def no_effect(option: str, why: str, given: Mapping[str, object]) -> Iterator[Problem]:
    """The one mistake of options beside `option`, which leaves them without effect; those that are given count."""
    idle = [name for name, value in given.items() if value]
    if idle:
        listed = " and ".join(filter(None, [", ".join(idle[:-1]), idle[-1]]))
        have = "has" if len(idle) == 1 else "have"
        yield Problem(option, f"{why}, so that {listed} {have} no effect", f"leave out {listed}")


def shown(path: Path) -> str:
    """A path for a message: relative where it lies under the current directory."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
