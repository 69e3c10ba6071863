"""`inv validate --run`: whether a dataset's verdicts are right, found by playing each task to ends that are known.

A good script and a task's own solution are rewarded 1; each wrong script, and doing nothing, 0 (public case 60). The
jobs are planned and run as those of `inv bench`; nothing here runs anything itself. They are no results: they lie apart
from those, and what showed nothing wrong goes.
"""

from __future__ import annotations

import contextlib
import glob
import json
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from bench.errors import Problem, Problems, raise_problems
from bench.faults import shown
from bench.planning.dataset import Task
from bench.planning.jobs import STAMP
from bench.planning.options import Options
from bench.planning.plan import make
from bench.planning.planned import Plan
from bench.records.job import JobRecord, TrialRecord
from bench.validate import Findings, check, lines, scripts, to_json

NOTHING, SOLUTION = "nop", "oracle"
TITLES = {"good": "good script", NOTHING: "doing nothing", SOLUTION: "own solution"}


@dataclass(frozen=True)
class Try:
    """Tasks that are played to one known end. `end` is a script's name, or one of Harbor's agents."""

    end: str
    plan: Plan

    @property
    def expected(self) -> float:
        return 1.0 if self.end in ("good", SOLUTION) else 0.0

    @property
    def title(self) -> str:
        return TITLES.get(self.end, self.end)


@dataclass(frozen=True)
class Verdict:
    """What one trial was rewarded, beside what is right. `trial` is None where it left nothing."""

    task: str
    end: str
    expected: float
    reward: float | None
    trial: str | None = None
    reason: str = ""
    directory: str | None = None
    """Of the trial, which is kept where the verdict is wrong."""

    @property
    def right(self) -> bool:
        return self.reward == self.expected

    def __str__(self) -> str:
        title = TITLES.get(self.end, f"the script {self.end}")
        if self.reward is None:
            return f"{self.task}: {title} got no verdict: {self.reason}"
        why = f" ({self.reason})" if self.reason else ""
        return f"{self.task}: {title} is rewarded {self.reward:g}, and {self.expected:g} is right{why}"


@dataclass(frozen=True)
class Tries:
    """All that a validation plays, planned before anything starts."""

    findings: Findings
    tries: tuple[Try, ...] = field(default=())


def plan(path: Path, *, manifest: Path | None, environment: str, n_concurrent: int, jobs_dir: Path) -> Tries:
    """What will be played. Raises InvalidInput or MachineLacks with all that stands in the way, faults too."""
    findings = check(path, manifest=manifest)
    tasks = findings.dataset.tasks
    stamp = datetime.now(UTC).strftime(STAMP)
    by_script: dict[str, list[Task]] = {}
    for task in tasks:
        for name in scripts(task):
            by_script.setdefault(name, []).append(task)
    wanted: list[tuple[str, Sequence[Task], dict[str, Any]]] = [
        (name, having, {"rehearsal": True, "script": name, "manifest": manifest}) for name, having in by_script.items()
    ]
    wanted.append((NOTHING, tasks, {"agent": NOTHING}))
    if solved := [task for task in tasks if task.has_solution]:
        wanted.append((SOLUTION, solved, {"agent": SOLUTION}))
    tries, problems = [], list[Problem]()
    for end, those, options in wanted:
        given = Options(
            path=path,
            include=tuple(glob.escape(task.directory.name) for task in those),
            attempts=1,
            environment=environment,
            n_concurrent=n_concurrent,
            jobs_dir=jobs_dir,
            job_name=f"validate-{stamp}-{end}",
            **options,
        )
        try:
            tries.append(Try(end, make(given)))
        except Problems as error:
            problems += error.problems
    raise_problems(problems)
    return Tries(findings, tuple(tries))


def run(planned: Tries, *, as_json: bool) -> int:
    """Play them all and print a line for each task: 0 where every verdict is right, else 1, or what stopped it."""
    from bench.run.command import run as run_plan

    verdicts: list[Verdict] = []
    for one in planned.tries:
        print(f"{one.title}:", file=sys.stderr)
        reports, failure = run_plan(one.plan)
        if failure and failure.exit_code != 1:
            raise failure
        found = judge(one, reports)
        if all(verdict.right for verdict in found):
            _remove(reports)
            found = [replace(verdict, directory=None) for verdict in found]
        verdicts += found
    wrong = [verdict for verdict in verdicts if not verdict.right]
    if as_json:
        rows = [vars(verdict) | {"right": verdict.right} for verdict in verdicts]
        print(json.dumps(to_json(planned.findings) | {"verdicts": rows}, indent=2))
    else:
        said: list[str] = []
        for verdict in wrong:
            said += [str(verdict), *([f"  {verdict.directory}"] if verdict.directory else [])]
        print("\n".join([*table(planned, verdicts), *said, *lines(planned.findings, len(wrong))]))
    return 1 if wrong else 0


def _remove(reports: Iterable[JobRecord]) -> None:
    """What jobs left that showed nothing wrong; the place for them, too, where nothing else is in it."""
    for report in reports:
        shutil.rmtree(report.directory)
        with contextlib.suppress(OSError):
            report.directory.parent.rmdir()


def judge(one: Try, reports: Iterable[JobRecord]) -> list[Verdict]:
    """The verdict on each task of a try."""
    found = {trial.task: (report.directory, trial) for report in reports for trial in report.trials}
    return [_verdict(one, task, found.get(task.name)) for job in one.plan.jobs for task in job.tasks]


def _verdict(one: Try, task: Task, found: tuple[Path, TrialRecord] | None) -> Verdict:
    if found is None:
        return Verdict(task.name, one.end, one.expected, None, reason="its trial left nothing")
    job, trial = found
    outcome = trial.outcome
    reward = outcome.reward if outcome.outcome != "unscored" else None
    return Verdict(task.name, one.end, one.expected, reward, trial.trial, outcome.reason, shown(job / trial.trial))


def table(planned: Tries, verdicts: Sequence[Verdict]) -> list[str]:
    """A line for each task: the rewards of its good script, wrong scripts, of nothing and of its solution."""
    columns = {"good": "good", "wrong": "wrong-*", "nothing": NOTHING, "solution": SOLUTION}
    rows = [("task", *columns)]
    for task in planned.findings.dataset.tasks:
        own = [verdict for verdict in verdicts if verdict.task == task.name]
        rows.append((task.name, *(_cell([v for v in own if fnmatchcase(v.end, of)]) for of in columns.values())))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _cell(verdicts: Sequence[Verdict]) -> str:
    """The rewards, a wrong one marked: `1`, `0 0`, `0 1!`, `?!` for no verdict, `–` where there is nothing to play."""
    shown = ("?" if verdict.reward is None else f"{verdict.reward:g}" for verdict in verdicts)
    return " ".join(text + ("" if v.right else "!") for text, v in zip(shown, verdicts, strict=True)) or "–"
