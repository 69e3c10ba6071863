"""Which tasks a command is about: of a local path, resolved here; of a registry dataset, by globs for Harbor."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.errors import Problem
from bench.faults import Faults
from bench.nearest import did_you_mean
from bench.planning import dataset as datasets
from bench.planning.dataset import LAYERS, Dataset, Task

if TYPE_CHECKING:
    from bench.planning.options import Options


DEFAULT_DATASET = "terminal-bench/terminal-bench-2-1"
"""SEED.md row C1."""

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
    tasks, problems = datasets.select(dataset, options.include, options.exclude, layer)
    # Every Buzz task is checked, selected or not (SEED.md row C3); elsewhere others' faults are not ours.
    for task in dataset.tasks if dataset.buzz else tasks:
        faults += task.problems
    # A task without a known layer matches no --layer: what is wrong with it has been said above.
    if not (layer and any(task.problems for task in dataset.tasks)):
        faults += problems
    return Selection(dataset, tasks[:n_tasks], n_tasks=n_tasks)


def _layer_outside(where: str) -> Problem:
    return Problem("--layer", f"only tasks under buzz-dataset/ have layers, and {where} is not there")


def as_harbor_matches(glob: str, dataset: str) -> str:
    """A glob as Harbor matches it: against `org/name` in a Hub dataset, where a bare one would match nothing."""
    return f"*/{glob}" if "/" in dataset and "/" not in glob else glob
