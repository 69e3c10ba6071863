"""The form of a check, and running many: causes before symptoms."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bench.errors import BuzzbenchError, Problem, Problems
from bench.settings import ROOT, Settings

if TYPE_CHECKING:
    from bench.stack import StackStatus

type State = Literal["ok", "warn", "fail", "skip"]


@dataclass(frozen=True)
class Context:
    """What the checks are about. `manifest`, `endpoint_config` and `dataset` are those that a run would take."""

    settings: Settings
    manifest: Path
    endpoint_config: Path
    dataset: Path
    n_concurrent: int = 4
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    root: Path = ROOT

    @cached_property
    def stack(self) -> StackStatus:
        """What of the stack runs, asked once."""
        from bench.stack import kinds

        return kinds.status(self.settings)


@dataclass(frozen=True)
class Found:
    """What a check found. `fix` is what to do about it, empty where all is well."""

    state: State
    detail: str
    fix: str = ""


@dataclass(frozen=True)
class Check:
    """A named check.

    `needs` are the names of checks before it that must not have failed. A failure of one that isn't `required` is shown
    as a warning: only an option that a person may never take depends on it.
    """

    name: str
    look: Callable[[Context], Found]
    needs: tuple[str, ...] = ()
    required: bool = True


@dataclass(frozen=True)
class Result:
    """A check's name and what it found."""

    name: str
    state: State
    detail: str
    fix: str = ""


def run(checks: Iterable[Check], context: Context) -> list[Result]:
    """The checks' results, in their order. A check that breaks has failed, and breaks no other."""
    results = []
    causes: dict[str, tuple[str, ...]] = {}
    for check in checks:
        # The first of a chain is the cause; those between are symptoms too.
        behind = tuple(dict.fromkeys(cause for need in check.needs for cause in causes[need]))
        found = Found("skip", f"it needs {' and '.join(behind)}") if behind else _look(check, context)
        causes[check.name] = behind or ((check.name,) if found.state in ("fail", "skip") else ())
        shown: State = "warn" if found.state == "fail" and not check.required else found.state
        results.append(Result(check.name, shown, found.detail, found.fix))
    return results


def _look(check: Check, context: Context) -> Found:
    try:
        return check.look(context)
    except Problems as error:
        return of_problems(error.problems)
    except BuzzbenchError as error:
        return Found("fail", str(error))
    except Exception as error:
        return Found("fail", f"the check broke: {type(error).__name__}: {error}", "report it, with this line")


def of_problems(problems: Iterable[Problem]) -> Found:
    """A failure that problems are: the first one's fix, and how many there are."""
    first, *more = problems
    where = f"{first.where}: " if first.where else ""
    others = f" (and {len(more)} more)" if more else ""
    return Found("fail", f"{where}{first.what}{others}", first.fix)
