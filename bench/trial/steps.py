"""A task's steps (`[[steps]]` of Harbor's format): which one a team is at. Pure.

Harbor runs the agent once for each, in order, on one environment, and tells it the instruction alone: nothing says
which step it is, nor that there will be no further one because a step's reward was too low.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DIRECTORY = "steps"
"""Below a task's directory, and below a trial's: a directory for each step, by its name."""


@dataclass(frozen=True)
class TaskStep:
    """One step of a task; `number` counts from 1. `strategy` is how the steps' rewards make the trial's.

    It is Harbor's: `mean`, or `final`, the last step's that ran.
    """

    name: str
    number: int
    of: int
    strategy: str

    @property
    def is_last(self) -> bool:
        return self.number == self.of

    def directory(self, above: Path) -> Path:
        """What belongs to the step below a task's or a trial's directory."""
        return above / DIRECTORY / self.name


def of_task(definition: Mapping[str, Any]) -> tuple[TaskStep, ...]:
    """The steps in a task.toml, none for an ordinary task."""
    listed = definition.get("steps") or []
    strategy = str(definition.get("multi_step_reward_strategy") or "mean")
    return tuple(TaskStep(str(step["name"]), n, len(listed), strategy) for n, step in enumerate(listed, 1))
