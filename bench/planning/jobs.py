"""The jobs of a plan: how the selected tasks are grouped, how often each is tried, and what the jobs are called."""

from __future__ import annotations

import errno
import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING

from bench.errors import Problem
from bench.faults import Faults, shown
from bench.planning.dataset import LAYERS, Task

if TYPE_CHECKING:
    from bench.condition import Condition
    from bench.planning.options import Options
    from bench.planning.selection import Selection

DEFAULT_ATTEMPTS = 5
"""Of everything outside `buzz-dataset/` (SEED.md row C5)."""

LAYER_ATTEMPTS = {"regression": 1, "workflow": 3}
PROBE_BYTES = 65_536
"""Less than any job writes."""
OF_THE_MACHINE = (errno.ENOSPC, errno.EDQUOT)
JOB_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
MOST_AT_ONCE = 1000
"""Trials of one driver host. With more, its jobs are split between hosts (DESIGN decision 13)."""
STAMP = "%Y%m%dT%H%M%SZ"


@dataclass(frozen=True)
class JobPlan:
    """One Harbor job: the selected tasks of a local path, or a registry dataset with globs for Harbor.

    `path` is what Harbor is given: the task itself, or the folder that the tasks are in. `n_tasks` is the most that
    Harbor may take of a registry dataset; of a local path `tasks` says it all.
    """

    name: str
    directory: Path
    attempts: int
    n_concurrent: int
    path: Path | None = None
    tasks: tuple[Task, ...] = ()
    dataset: str | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    n_tasks: int | None = None
    layer: str | None = None

    @property
    def trials(self) -> int | None:
        """How many trials the job has; None where only Harbor can tell (a registry dataset)."""
        return None if self.dataset else len(self.tasks) * self.attempts


def make(
    options: Options, selection: Selection | None, condition: Condition | None, faults: Faults
) -> tuple[JobPlan, ...]:
    """The jobs: one, or one for each layer where both have tasks and no number of attempts is given (row C5)."""
    attempts = faults.number("--attempts/-k", options.attempts)
    n_concurrent = faults.number("--n-concurrent/-n", options.n_concurrent, most=MOST_AT_ONCE) or 1
    if options.job_name and not JOB_NAME.fullmatch(options.job_name):
        what = f"{options.job_name!r} is no job name: letters, digits, dots, dashes and underscores, at most 128"
        faults.append(Problem("--job-name", what))
        return ()
    if options.jobs_dir.exists() and not options.jobs_dir.is_dir():
        faults.append(Problem(shown(options.jobs_dir), "jobs are written into a directory, and this is a file"))
        return ()
    if not options.dry_run and (refused := _refused(options.jobs_dir)):
        faults.append(refused)
    if selection is None:
        return ()
    tasks = selection.tasks
    layers = [layer for layer in LAYERS if any(task.layer == layer for task in tasks)]
    if attempts is None and len(layers) > 1:
        groups = {layer: tuple(task for task in tasks if task.layer == layer) for layer in layers}
    else:
        groups = {"": tasks}
    template = JobPlan(
        name="",
        directory=options.jobs_dir,
        attempts=attempts or DEFAULT_ATTEMPTS,
        n_concurrent=n_concurrent,
        path=selection.dataset.path if selection.dataset else None,
        dataset=selection.registry,
        include=selection.include,
        exclude=selection.exclude,
        n_tasks=selection.n_tasks if selection.registry else None,
    )
    names = _job_names(options, condition, [layer and f"-{layer}" for layer in groups])
    return tuple(
        replace(
            template,
            name=name,
            directory=(options.jobs_dir / name).absolute(),
            tasks=group,
            layer=layer or (layers[0] if len(layers) == 1 else None),
            attempts=attempts or _default_attempts(group),
        )
        for (layer, group), name in zip(groups.items(), names, strict=True)
    )


def _refused(directory: Path) -> Problem | None:
    """Why no job can be written in the directory, or where it would be made; None where one can.

    It is tried, with a file that has no name: full disks, read-only mounts and /proc are not told otherwise.
    """
    there = next(path for path in (directory.absolute(), *directory.absolute().parents) if os.path.lexists(path))
    try:
        with tempfile.TemporaryFile(dir=there) as file:
            file.write(bytes(PROBE_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        lacks = error.errno in OF_THE_MACHINE
        fix = "make room, or give another --jobs-dir" if lacks else "give another --jobs-dir"
        return Problem(shown(directory), f"no jobs can be written here: {error.strerror}", fix, lacks=lacks)
    return None


def _default_attempts(tasks: Sequence[Task]) -> int:
    layer = tasks[0].layer if tasks else None
    return LAYER_ATTEMPTS[layer] if layer else DEFAULT_ATTEMPTS


def _job_names(options: Options, condition: Condition | None, suffixes: Sequence[str]) -> list[str]:
    """The jobs' names: the given one, whose job may go on, or the condition and the time (SEED.md row C8)."""
    if options.job_name:
        return [options.job_name + suffix for suffix in suffixes]
    word = re.sub(r"[^A-Za-z0-9._-]+", "-", condition.name if condition else "team")[:80]
    base = f"lb-{word}-{options.now.astimezone(UTC).strftime(STAMP)}"
    number = 1
    # A name is for a second: the next job of the same second gets a number (public case 56).
    while True:
        numbered = base if number == 1 else f"{base}-{number}"
        names = [numbered + suffix for suffix in suffixes]
        if not any(os.path.lexists(options.jobs_dir / name) for name in names):
            return names
        number += 1
