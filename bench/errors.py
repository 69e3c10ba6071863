"""The one tree of exceptions that people see.

    BuzzbenchError (1)        something that ran has failed
    ├── InvalidInput (2)      what a person gave is wrong; nothing was started or written
    ├── MachineLacks (3)      the machine lacks something; the message holds the fix
    ├── JobEnded (1, 4, 75)   the job's process ended it early: 4 for its budget, 75 to wait (a rate limit)
    └── Interrupted (128 + n)  stopped by signal n; resumable

Each carries its exit code. `str(error)` is what is printed: one line a problem, each saying what is wrong, where,
and what to do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Problem:
    """One thing wrong, as a person reads it: `where: what; fix`.

    `lacks` marks a problem of the machine (exit 3) among problems of the input (exit 2).
    """

    where: str
    what: str
    fix: str = ""
    lacks: bool = False

    def __str__(self) -> str:
        head = f"{self.where}: {self.what}" if self.where else self.what
        return f"{head}; {self.fix}" if self.fix else head


class BuzzbenchError(Exception):
    """Something that ran has failed. `exit_code` is the command's."""

    exit_code = 1

    def __init__(self, what: str, *, fix: str = "", where: str = "") -> None:
        super().__init__(str(Problem(where, what, fix)))


class Problems(BuzzbenchError):
    """Several problems at once."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        assert self.problems
        Exception.__init__(self, "\n".join(str(p) for p in self.problems))


class InvalidInput(Problems):
    """What a person gave is wrong. All problems at once, those of the machine among them."""

    exit_code = 2

    @classmethod
    def of(cls, where: str, what: str, fix: str = "") -> InvalidInput:
        return cls([Problem(where, what, fix)])


class MachineLacks(Problems):
    """The machine lacks something that the plan needs."""

    exit_code = 3

    @classmethod
    def of(cls, where: str, what: str, fix: str = "") -> MachineLacks:
        return cls([Problem(where, what, fix, lacks=True)])


class JobEnded(BuzzbenchError):
    """The job's process ended it early, and said with which exit code: `bench.trial.stops`, or that of what failed."""

    def __init__(self, what: str, exit_code: int) -> None:
        super().__init__(what)
        self.exit_code = exit_code


class Interrupted(BuzzbenchError):
    """A signal stopped the job: 130 for SIGINT, 143 for SIGTERM, 129 for SIGHUP, 131 for SIGQUIT."""

    def __init__(self, signal_number: int, what: str) -> None:
        super().__init__(what)
        self.exit_code = 128 + signal_number


def raise_problems(problems: Iterable[Problem]) -> None:
    """Raise for the problems found: exit 2 if any is of the input, 3 if all are of the machine; return if none."""
    found = tuple(dict.fromkeys(problems))
    if not found:
        return
    if all(p.lacks for p in found):
        raise MachineLacks(found)
    raise InvalidInput(found)
