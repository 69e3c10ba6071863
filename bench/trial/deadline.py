"""How long a team may work, and how to say so when it is over. Pure: the clock comes in.

work = min(the manifest's trial_budget.timeout_seconds, the task's agent timeout - wind-down - evidence)  (DESIGN 7)
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bench.errors import InvalidInput

type Clock = Callable[[], float]
"""Seconds of a clock that never goes back, such as `time.monotonic`."""

WIND_DOWN_S = 3.0
"""To stop the agents, revoke their tokens and read their usage."""

EVIDENCE_S = 5.0
"""To query, verify and upload the evidence, and to write the trajectory."""

CALL_GRACE_S = 2.0
"""Of the wind-down, for model calls under way: one that is cut has an unknown cost, and then so has the trial."""

RESERVE_S = WIND_DOWN_S + EVIDENCE_S


@dataclass(frozen=True)
class WorkLimit:
    """The seconds of work, and the numbers they come from. `math.inf` stands for no limit.

    `worked_s` is what earlier steps of the task took: the manifest's time is one for all of them.
    """

    work_s: float
    trial_budget_s: float
    task_timeout_s: float
    worked_s: float = 0.0

    def __str__(self) -> str:
        budget = f"trial_budget.timeout_seconds {self.trial_budget_s:g} s in the manifest"
        if self.worked_s:
            budget += f", of which earlier steps took {self.worked_s:.1f} s"
        if self.work_s == self.trial_budget_s:
            return f"{self.work_s:g} s of work ({budget}; task's agent timeout {_seconds(self.task_timeout_s)})"
        return (
            f"{self.work_s:g} s of work (task's agent timeout {self.task_timeout_s:g} s "
            f"less {RESERVE_S:g} s for wind-down and evidence; {budget})"
        )


def work_limit(*, trial_budget_s: float | None, task_timeout_s: float | None, worked_s: float = 0.0) -> WorkLimit:
    """The limit of a trial's work. Raises InvalidInput where nothing is left: an error of the plan.

    `worked_s` is what earlier steps of the task took.

    >>> work_limit(trial_budget_s=900, task_timeout_s=600).work_s
    592.0
    """
    budget = math.inf if trial_budget_s is None else float(trial_budget_s)
    task = math.inf if task_timeout_s is None else float(task_timeout_s)
    work = min(budget, task - RESERVE_S)
    if work <= 0:
        raise InvalidInput.of(
            "deadline",
            f"no time is left for work: the task's agent timeout is {_seconds(task)}, wind-down and evidence need "
            f"{RESERVE_S:g} s, trial_budget.timeout_seconds is {_seconds(budget)}",
            "raise the shorter of the two",
        )
    return WorkLimit(work, budget, task, worked_s)


def _seconds(value: float) -> str:
    return "none" if math.isinf(value) else f"{value:g} s"


@dataclass(frozen=True)
class Deadline:
    """A running limit. Harbor's clock began with the run, the team's own with the task that it was given."""

    limit: WorkLimit
    run_began_at: float
    work_began_at: float
    clock: Clock

    @classmethod
    def start(cls, limit: WorkLimit, run_began_at: float, clock: Clock = time.monotonic) -> Deadline:
        """The team's time begins now."""
        return cls(limit, run_began_at, clock(), clock)

    @property
    def worked_s(self) -> float:
        return self.clock() - self.work_began_at

    @property
    def left_s(self) -> float:
        """Seconds of work left, never below 0; `math.inf` without a limit."""
        of_budget = self.limit.trial_budget_s - self.limit.worked_s - self.worked_s
        of_task = self.limit.task_timeout_s - RESERVE_S - (self.clock() - self.run_began_at)
        return max(0.0, min(of_budget, of_task))

    @property
    def passed(self) -> bool:
        return self.left_s == 0.0

    def reason(self) -> str:
        """Why the work ended, with what was measured and where the limit is set (public case 7)."""
        return f"the team's time is over after {self.worked_s:.1f} s: it had {self.limit}"


def task_timeout_s(trial_config: Mapping[str, Any], task: Mapping[str, Any], step: int = 0) -> float | None:
    """Harbor's agent timeout in seconds, None for none: from the trial's config.json and the task's task.toml.

    Of a task with steps it is that of the step with this index, which by default is the task's.

    Harbor tells its agents no timeout. This is its own rule: the override or else the task's, capped, times the
    multiplier (`Trial._compute_agent_timeout_sec` and `MultiStepTrial._step_agent_timeout_sec` in Harbor 0.26, held by
    contract tests).
    """
    agent = trial_config.get("agent") or {}
    own = (task["steps"][step].get("agent") or {}).get("timeout_sec") if task.get("steps") else None
    if own is None:
        own = (task.get("agent") or {}).get("timeout_sec")
    base = agent.get("override_timeout_sec") or own
    if base is None:
        return None
    cap = agent.get("max_timeout_sec")
    multiplier = trial_config.get("agent_timeout_multiplier")
    if multiplier is None:
        multiplier = trial_config.get("timeout_multiplier", 1.0)
    return float(min(base, cap or math.inf)) * float(multiplier)
