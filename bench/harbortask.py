"""A whole task by Harbor's own models, so that what Harbor would stumble over is said before a run begins.

Their import takes some 50 ms, which a dry run saves: there the checks of `bench/dataset.py` are all.
"""

from __future__ import annotations

import tomllib
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

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
            said: dict[str, str] = {}
            for fault in error.errors(include_url=False):
                where, value = _field(values, fault["loc"])
                said.setdefault(where, _said(fault["type"], fault["msg"], value))
            for where, what in said.items():
                yield Problem(shown(file), f"{where}: {what}" if where else what)
        except (OSError, ValueError, RuntimeError) as error:
            yield Problem(shown(task.directory), f"Harbor refuses it: {' '.join(str(error).split())}")


def _field(values: Any, loc: tuple[str | int, ...]) -> tuple[str, Any]:
    """A field as people write it, and its value: `[environment].cpus`, and `steps[0].agent.timeout_sec` of a list.

    pydantic adds the name of each type that it tried, which leads nowhere in the values.
    """
    way: list[str | int] = []
    for part in loc:
        inside = part in values if isinstance(values, dict) else isinstance(values, list) and isinstance(part, int)
        if not inside and not isinstance(values, dict):
            break
        way.append(part)
        values = values[part] if inside else None
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in way).removeprefix(".")
    if len(way) > 1 and all(isinstance(part, str) for part in way):
        table, _, key = text.rpartition(".")
        return f"[{table}].{key}", values
    return text, values


def _said(kind: str, message: str, value: Any) -> str:
    if kind == "missing":
        return "is missing"
    text = message.removeprefix("Value error, ")
    text = text[:1].lower() + text[1:].rstrip(".")
    return text if isinstance(value, dict | list) else f"{text}, not {value!r}"
