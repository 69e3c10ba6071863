"""A whole task by Harbor's own models, so that what Harbor would stumble over is said before a run begins.

Their import takes some 50 ms, which a dry run saves: there the checks of `bench/dataset.py` are all.
"""

from __future__ import annotations

import tomllib
import warnings
from collections.abc import Iterable, Iterator

from bench import wording, yamlfile
from bench.dataset import Task
from bench.errors import Problem
from bench.faults import shown


def problems(tasks: Iterable[Task]) -> Iterator[Problem]:
    """What Harbor refuses in each task, whose task.toml must be TOML: a problem for each field, else for its files."""
    from harbor.models.task.config import TaskConfig
    from harbor.models.task.task import Task as HarborsTask
    from pydantic import ValidationError

    for task in tasks:
        file = task.directory / "task.toml"
        values = tomllib.loads(file.read_text(encoding="utf-8"))
        try:
            with warnings.catch_warnings(action="ignore"):  # old names, which Harbor takes too
                # From the text anew: Harbor's validators change what they are given.
                TaskConfig.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
                # Harbor passes over a directory that this refuses, without a word (HARBOR.md section 1.1).
                HarborsTask(task.directory)
        except ValidationError as error:
            for field, what in wording.by_place(values, error.errors(include_url=False)).items():
                yield Problem(shown(file), f"{_in_toml(field)}: {what}" if field else what)
        except (OSError, ValueError, RuntimeError) as error:
            yield Problem(shown(task.directory), f"Harbor refuses it: {' '.join(str(error).split())}")


def _in_toml(field: yamlfile.Field) -> str:
    """A field as people write it: `[environment].cpus`, and `steps[0].agent.timeout_sec` of a list."""
    text = yamlfile.dotted(field)
    if len(field) > 1 and all(isinstance(part, str) for part in field):
        table, _, key = text.rpartition(".")
        return f"[{table}].{key}"
    return text
