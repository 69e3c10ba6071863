"""`inv validate`: is a dataset fit to measure with? All its faults at once, and with `--run` its verdicts.

What is wrong with a task's files is said here, from what Buzzbench, Harbor's model and Harbor's own lint find. That a
good script is rewarded and nothing else is, only a run can say: `bench/validate/run.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.condition import Condition
from bench.errors import InvalidInput, Problem, raise_problems
from bench.faults import Faults, shown
from bench.manifest import load
from bench.planning import checks as plan_checks
from bench.planning import dataset as datasets
from bench.planning import harbortask
from bench.planning.dataset import Dataset, Task
from bench.planning.plan import REHEARSAL_MANIFEST
from bench.scoring.judge import JUDGE
from bench.settings import ROOT

WRONG_SCRIPTS = 2
"""How many wrong scripts a Buzz task has at least: one alone may fail for another reason than it was written for."""

FAULTS = frozenset(
    {
        "artifact-log-overlap",
        "invalid-task-files",
        "overlapping-artifacts",
        "unknown-config-field",
        "unused-harborignore",
    }
)
NOTES = frozenset(
    {
        "agent-image-test-leak",
        "compose-additional-capabilities",
        "compose-external-bind-mount",
        "compose-privileged",
        "compose-symlink-bind-mount",
        "compose-writable-bind-mount",
        "unpinned-python-dependency",
        "verifier-network-download",
        "verifier-runtime-install",
    }
)
"""Rules of `harbor lint` that are faults here, and those that are worth a note. The others are matters of taste, or, as
invalid-task-config, said better by `bench/planning/harbortask.py`."""


@dataclass(frozen=True)
class Findings:
    """What is wrong with a dataset's files, and what is worth a thought."""

    dataset: Dataset
    faults: tuple[Problem, ...]
    notes: tuple[Problem, ...]


def inspect(path: Path, *, buzz_root: Path = ROOT / "buzz-dataset", manifest: Path | None = None) -> Findings:
    """Everything that the files tell. Raises InvalidInput where there are no tasks, or where the manifest is wrong."""
    dataset = datasets.read(path, buzz_root)
    condition = load(manifest or ROOT / REHEARSAL_MANIFEST)
    faults, notes = Faults(), Faults()
    for task in dataset.tasks:
        faults += task.problems
        notes += task.notes
        if task.problems:
            continue
        faults += harbortask.problems([task])
        for finding in _lint(task):
            if finding.rule in FAULTS:
                faults.append(_as_problem(finding))
            elif finding.rule in NOTES:
                notes.append(_as_problem(finding))
    sound = [task for task in dataset.tasks if not task.problems]
    faults += plan_checks.deadline_problems(sound, condition, {})
    faults += plan_checks.member_problems(sound, condition)
    faults += _script_faults(sound, condition, must=dataset.buzz)
    return Findings(dataset, tuple(dict.fromkeys(faults)), tuple(dict.fromkeys(notes)))


def scripts(task: Task) -> list[str]:
    """The names of a task's scripts, good first."""
    names = [path.stem for path in (task.directory / "rehearsal").glob("*.yaml")]
    return sorted(names, key=lambda name: (name != "good", name))


def _script_faults(tasks: Sequence[Task], condition: Condition, *, must: bool) -> Iterator[Problem]:
    """Scripts with faults; of Buzz tasks also too few of them, and the missing judgement of the evidence."""
    for task in tasks:
        there = scripts(task)
        wrong = [name for name in there if name.startswith("wrong-")]
        where = shown(task.directory)
        if must and "good" not in there:
            yield Problem(where, "has no rehearsal/good.yaml")
        if must and len(wrong) < WRONG_SCRIPTS:
            what = f"has {len(wrong)} rehearsal/wrong-*.yaml; {WRONG_SCRIPTS} at least show what is not rewarded"
            yield Problem(where, what)
        if must and not _has_judge(task):
            yield Problem(where, "has no tests/judge.py, so that the host could not judge its evidence again")
        for name in there:
            if name != "good" and name not in wrong:
                yield Problem(where, f"rehearsal/{name}.yaml is neither good.yaml nor wrong-*.yaml", "rename it")
            yield from plan_checks.script_problems([task], name, condition)


def _has_judge(task: Task) -> bool:
    """Whether the host can judge the evidence: of the task, or of each of its steps."""
    if (task.directory / JUDGE).is_file():
        return True
    return bool(task.steps) and all((task.directory / "steps" / s.name / JUDGE).is_file() for s in task.steps)


def _lint(task: Task) -> list[Any]:
    from harbor.lint import lint_task

    return [*lint_task(task.directory)]


def _as_problem(finding: Any) -> Problem:
    where = shown(Path(finding.path))
    what, _, fix = finding.message.rstrip(".").partition("; ")
    return Problem(f"{where}:{finding.line}" if finding.line else where, what[:1].lower() + what[1:], fix)


def check(path: Path, *, manifest: Path | None) -> Findings:
    """The findings of a dataset that is about to be run. Raises InvalidInput with all faults."""
    findings = inspect(path, manifest=manifest)
    raise_problems(findings.faults)
    return findings


def validate(path: Path, *, manifest: Path | None, as_json: bool) -> int:
    """The task without `--run`: print what the files tell; 2 where there is a fault."""
    findings = inspect(path, manifest=manifest)
    if as_json:
        print(json.dumps(to_json(findings), indent=2))
    else:
        print("\n".join(lines(findings)))
    return InvalidInput.exit_code if findings.faults else 0


def to_json(findings: Findings) -> dict[str, Any]:
    """`{"path", "tasks": [names], "faults": [lines], "notes": [lines]}`."""
    return {
        "path": str(findings.dataset.path),
        "tasks": [task.name for task in findings.dataset.tasks],
        "faults": [str(fault) for fault in findings.faults],
        "notes": [str(note) for note in findings.notes],
    }


def lines(findings: Findings, wrong_verdicts: int | None = None) -> list[str]:
    """What people read: a line for each finding, faults first, and how many there are; of a run its verdicts, too."""
    counted = [_count(len(findings.dataset.tasks), "task"), _count(len(findings.faults), "fault")]
    if findings.notes:
        counted.append(_count(len(findings.notes), "note"))
    if wrong_verdicts is not None:
        counted.append(_count(wrong_verdicts, "wrong verdict"))
    return [
        *(f"fault  {fault}" for fault in findings.faults),
        *(f"note   {note}" for note in findings.notes),
        f"{shown(findings.dataset.path)}: {', '.join(counted)}",
    ]


def _count(number: int, what: str) -> str:
    return f"{number or 'no'} {what}{'' if number == 1 else 's'}"
