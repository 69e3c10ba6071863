"""Which tasks a command is about: of a local path, resolved here; of a registry dataset, by globs for Harbor."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from bench.errors import Problem
from bench.faults import Faults
from bench.nearest import did_you_mean, nearest
from bench.planning import dataset as datasets
from bench.planning.dataset import LAYERS, Dataset, Task

if TYPE_CHECKING:
    from bench.planning.options import Options


DEFAULT_DATASET = "terminal-bench/terminal-bench-2-1"
"""SEED.md row C1."""

NAMES_SHOWN = 5

DATASET_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?(@[\w.:-]+)?")


@dataclass(frozen=True)
class Selection:
    """What runs: tasks of a local path, or a registry dataset with globs as Harbor matches them."""

    dataset: Dataset | None
    tasks: tuple[Task, ...] = ()
    registry: str | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    n_tasks: int | None = None
    """The most tasks to take, after the globs, in order of their names; None for all."""


def choose(options: Options, faults: Faults) -> Selection | None:
    """The selection, or None where it can't be told; what is wrong is added to `faults`."""
    n_tasks = faults.number("--n-tasks", options.n_tasks)
    if options.dataset and options.path:
        faults.append(Problem("--dataset and --path", "exclude each other", "give one of the two"))
        return None
    if options.path:
        return _select_local(options, options.path, n_tasks, faults)
    name = options.dataset or DEFAULT_DATASET
    if not DATASET_NAME.fullmatch(name) or Path(name).is_dir():
        fix = f"a directory is given by --path {name}" if Path(name).is_dir() else ""
        faults.append(Problem("--dataset", f"{name!r} is no dataset's name, such as {DEFAULT_DATASET}", fix))
    if options.layer:
        faults.append(_layer_outside(name))
    if options.rehearsal:
        fix = "rehearse local ones: --path buzz-dataset"
        faults.append(Problem("--rehearsal", f"the tasks of {name} have no scripts", fix))
    return Selection(
        None,
        registry=name,
        include=tuple(as_harbor_matches(glob, name) for glob in options.include),
        exclude=tuple(as_harbor_matches(glob, name) for glob in options.exclude),
        n_tasks=n_tasks,
    )


def _select_local(options: Options, path: Path, n_tasks: int | None, faults: Faults) -> Selection | None:
    dataset = faults.catch(lambda: datasets.read(path, options.root / "buzz-dataset"))
    if dataset is None:
        return None
    layer = options.layer
    if layer and not dataset.buzz:
        faults.append(_layer_outside(str(path)))
        layer = None
    elif layer and layer not in LAYERS:
        fix = did_you_mean(layer, LAYERS)
        faults.append(Problem("--layer", f"unknown layer {layer!r}; it is {' or '.join(LAYERS)}", fix))
        layer = None
    tasks, problems = select(dataset, options.include, options.exclude, layer)
    # Every Buzz task is checked, selected or not (SEED.md row C3); elsewhere others' faults are not ours.
    for task in dataset.tasks if dataset.buzz else tasks:
        faults += task.problems
    # A task without a known layer matches no --layer: what is wrong with it has been said above.
    if not (layer and any(task.problems for task in dataset.tasks)):
        faults += problems
    return Selection(dataset, tasks[:n_tasks], n_tasks=n_tasks)


def select(
    dataset: Dataset, include: Sequence[str] = (), exclude: Sequence[str] = (), layer: str | None = None
) -> tuple[tuple[Task, ...], tuple[Problem, ...]]:
    """The tasks that globs and layer choose, and what is wrong with the choice.

    A glob matches, case-sensitively, a task's name or its directory's (SEED.md row C2); one that matches nothing is
    an error, of an exclusion as well.
    """
    problems = [
        unmatched(option, glob, [task.directory.name for task in dataset.tasks])
        for option, globs in (("--include-task", include), ("--exclude-task", exclude))
        for glob in globs
        if not any(_matches(task, glob) for task in dataset.tasks)
    ]
    chosen = tuple(
        task
        for task in dataset.tasks
        if (not include or any(_matches(task, glob) for glob in include))
        and not any(_matches(task, glob) for glob in exclude)
        and (layer is None or task.layer == layer)
    )
    if not chosen and not problems:
        given = [f"--include-task {g}" for g in include] + [f"--exclude-task {g}" for g in exclude]
        given += [f"--layer {layer}"] if layer else []
        problems.append(Problem(" ".join(given), f"selects none of the {len(dataset.tasks)} tasks"))
    return chosen, tuple(problems)


def _matches(task: Task, glob: str) -> bool:
    return fnmatchcase(task.name, glob) or fnmatchcase(task.directory.name, glob)


def unmatched(option: str, glob: str, names: Sequence[str]) -> Problem:
    """A glob that matches none of the names, with the nearest of them, else with the first."""
    if "," in glob:
        each = " ".join(f"{option} {part}" for part in glob.split(",") if part)
        return Problem(f"{option} {glob}", "matches no task", f"give one glob each time: {each}")
    wanted = glob.removeprefix("*/").replace("*", "").replace("?", "")
    if near := nearest(wanted, names):
        return Problem(f"{option} {glob}", "matches no task", f"the nearest are {', '.join(near)}")
    first = names[:NAMES_SHOWN]
    more = ", …" if len(names) > NAMES_SHOWN else ""
    return Problem(f"{option} {glob}", "matches no task", f"there are {', '.join(first)}{more}")


def _layer_outside(where: str) -> Problem:
    return Problem("--layer", f"only tasks under buzz-dataset/ have layers, and {where} is not there")


def as_harbor_matches(glob: str, dataset: str) -> str:
    """A glob as Harbor matches it: against `org/name` in a Hub dataset, where a bare one would match nothing."""
    return f"*/{glob}" if "/" in dataset and "/" not in glob else glob
