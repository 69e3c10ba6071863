"""A job as its records tell it: the trials that count, those that don't, and whether what was spent is known."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from bench import costs
from bench.costs import NOTHING, Spend
from bench.records.doubts import Told
from bench.records.planrecord import JobPlanRecord
from bench.scoring.outcome import Outcome
from bench.scoring.stepoutcomes import StepOutcome
from bench.trial.journal import JobStopped


@dataclass(frozen=True)
class TrialRecord:
    """One trial. `seconds` is its wall time; `task` is `[task].name`, else the directory's name."""

    trial: str
    task: str
    outcome: Outcome
    seconds: float
    spend: Spend = NOTHING
    planned: bool = True
    """Whether its task is one of the plan's."""
    steps: tuple[StepOutcome, ...] = ()
    """Of a task with steps: what those are worth that the trial came to."""
    checksum: str = ""
    """Harbor's digest of the task's files; empty where the trial left none."""
    told: Told = field(default=Told())
    """What its result.json says beside the outcome, to be held against the other records."""
    unsure: bool = False
    """Whether its spend may lack something: a receipt is damaged, or its result.json had counted something else."""

    @property
    def is_scored(self) -> bool:
        return self.outcome.outcome != "unscored"


@dataclass(frozen=True)
class Replaced:
    """An attempt that is no part of the result any more, and why: it made room for another, or somebody removed it.

    What it cost was spent all the same.
    """

    trial: str
    task: str
    reason: str
    spend: Spend = NOTHING


@dataclass(frozen=True)
class JobRecord:
    """One job directory. `warnings` name files that could not be read whole, and records that contradict each other.

    `stop` says why it was stopped early. `unplanned` are trials of tasks that nobody had selected: an error, and no
    part of any count (public case 1). `strangers` are directories that are no attempt of this job: no part, either.
    `doubts` are those of the warnings that speak against the figures.
    """

    directory: Path
    plan: JobPlanRecord
    trials: tuple[TrialRecord, ...]
    planned_trials: int | None
    warnings: tuple[str, ...] = field(default=())
    replaced: tuple[Replaced, ...] = ()
    stop: JobStopped | None = None
    unplanned: tuple[TrialRecord, ...] = ()
    strangers: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    is_torn: bool = False
    """Whether the receipts could not be read whole."""
    running: bool = False
    """Whether a run works on it: then all of this is what there is so far."""

    @property
    def unsure(self) -> bool:
        """Whether what was spent may be more than is known."""
        return self.is_torn or any(trial.unsure for trial in (*self.trials, *self.unplanned))

    @property
    def counts(self) -> dict[str, int]:
        return {
            name: sum(trial.outcome.outcome == name for trial in self.trials)
            for name in ("passed", "failed", "unscored")
        }

    @property
    def missing(self) -> int:
        """Planned trials that left nothing."""
        return max(0, (self.planned_trials or 0) - len(self.trials))

    @property
    def missing_of(self) -> dict[str, int]:
        """How many of the planned trials of each task left nothing; empty where the tasks were Harbor's to find."""
        left = Counter(trial.task for trial in self.trials)
        lacking = {task: self.plan.attempts - left[task] for task in self.plan.directories}
        return {task: number for task, number in lacking.items() if number > 0}

    @property
    def complete(self) -> bool:
        """Whether every planned trial has a score."""
        return bool(self.trials) and not self.missing and not self.counts["unscored"] and not self.unplanned

    @property
    def spend(self) -> Spend:
        """Everything that the job's model calls cost, replaced attempts included."""
        trials = [trial.spend for trial in (*self.trials, *self.unplanned)]
        return costs.total(trials + [attempt.spend for attempt in self.replaced])
