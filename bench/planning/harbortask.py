"""A whole task by Harbor's own models, so that what Harbor would stumble over is said before a run begins.

Their import takes some 50 ms, which a dry run saves: there the checks of `bench/planning/dataset.py` are all.
"""

from __future__ import annotations

import tomllib
import warnings
from collections.abc import Iterable, Iterator

from bench.errors import Problem
from bench.faults import shown
from bench.planning.dataset import Task
from bench.reading import tomlfile


def problems(tasks: Iterable[Task]) -> Iterator[Problem]:
    """What Harbor refuses in each task, whose task.toml must be TOML: a problem for each field, else for its files."""
    from harbor.models.task.config import TaskConfig
    from harbor.models.task.task import Task as HarborsTask
    from pydantic import ValidationError

    for task in tasks:
        file = task.directory / "task.toml"
        text = file.read_text(encoding="utf-8")
        try:
            with warnings.catch_warnings(action="ignore"):  # old names, which Harbor takes too
                # Harbor's validators change what they are given: of nobody else's.
                TaskConfig.model_validate(tomllib.loads(text))
                # Harbor passes over a directory that this refuses, without a word (HARBOR.md section 1.1).
                HarborsTask(task.directory)
        except ValidationError as error:
            yield from tomlfile.parse(text, shown=shown(file)).problems(error)
        except (OSError, ValueError, RuntimeError) as error:
            yield Problem(shown(task.directory), f"Harbor refuses it: {' '.join(str(error).split())}")
