"""The globs of a registry dataset, held to its tasks before any of them runs: only Harbor can list those.

Harbor says nothing of a glob that excludes nothing, nor of one among several that includes nothing (HARBOR.md 1).
"""

from __future__ import annotations

from fnmatch import fnmatch
from typing import TYPE_CHECKING

from bench.errors import raise_problems

if TYPE_CHECKING:
    from harbor.models.job.config import DatasetConfig, JobConfig


async def check(config: JobConfig) -> list[str]:
    """What is said of each registry dataset that globs choose from: `3 of 89 tasks of org/set`.

    Raises InvalidInput for every glob that matches none of its tasks, with the nearest.
    """
    return [await _check(dataset) for dataset in config.datasets if dataset.path is None and _globs(dataset)]


async def _check(dataset: DatasetConfig) -> str:
    from bench.planning.selection import unmatched

    whole = dataset.model_copy(update={"task_names": None, "exclude_task_names": None, "n_tasks": None})
    names = [task.get_task_id().get_name() for task in await whole.get_task_configs()]
    raise_problems(
        unmatched(option, glob, names)
        for option, glob in _globs(dataset)
        # As Harbor does it.
        if not any(fnmatch(name, glob) for name in names)
    )
    chosen = len(await dataset.model_copy().get_task_configs())
    return f"{chosen} of {len(names)} tasks of {dataset.name}"


def _globs(dataset: DatasetConfig) -> list[tuple[str, str]]:
    return [("--include-task", glob) for glob in dataset.task_names or ()] + [
        ("--exclude-task", glob) for glob in dataset.exclude_task_names or ()
    ]
