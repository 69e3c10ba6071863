"""How a job goes on: what is kept, what makes room, what runs, and what that may cost. Pure.

    plan(records.read_job(directory)).to_run  # 3

A trial with a score is never touched. One without, whatever the reason, makes room for another attempt of its task.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bench.budget import caps_said
from bench.condition import Limits
from bench.costs import usd
from bench.records import NOT_BEGUN, UNFINISHED
from bench.records.job import JobRecord, TrialRecord

NO_LIMITS = Limits()

LONG_S = 120
"""From here on, minutes are shown."""


@dataclass(frozen=True)
class Estimate:
    """What the trials to run may cost, from those that have a score; micro-dollars and seconds of work in all.

    `is_least` says that calls whose cost nobody reported are among those it is taken from.
    """

    cost_usd_micros: int
    work_s: float
    taken_from: int
    is_least: bool


@dataclass(frozen=True)
class Resume:
    """`kept` have a score; `again` have none and are archived; `to_run` is None where only Harbor knows the number.

    `record` is the job as it was found, `budget` has the caps with which it goes on as a whole.
    """

    record: JobRecord
    kept: tuple[TrialRecord, ...]
    again: tuple[TrialRecord, ...]
    to_run: int | None
    estimate: Estimate | None
    budget: Limits

    @property
    def job(self) -> str:
        """What a person calls it: a copy goes by its directory's name."""
        return self.record.directory.name

    @property
    def is_done(self) -> bool:
        """Whether every planned trial has a score."""
        return self.to_run == 0 and not self.again


def plan(job: JobRecord, budget: Limits = NO_LIMITS) -> Resume:
    """How this job goes on, with these caps of the whole of it."""
    kept = tuple(trial for trial in job.trials if trial.is_scored)
    again = tuple(trial for trial in job.trials if not trial.is_scored)
    to_run = None if job.planned_trials is None else max(0, job.planned_trials - len(kept))
    return Resume(job, kept, again, to_run, _estimate(job, kept, to_run), budget)


def lines(resume: Resume, n_concurrent: int, archive: str) -> list[str]:
    """What is said before a resume begins. `archive` is where the attempts without a score go."""
    if resume.is_done:
        return [f"job {resume.job}: each of its {_trials(len(resume.kept))} has a score; nothing to run"]
    whole = "" if resume.to_run is None else f" of {len(resume.kept) + resume.to_run}"
    number = "those without" if resume.to_run is None else str(resume.to_run)
    said = [f"job {resume.job} goes on: {len(resume.kept)}{whole} trials have a score and are kept, {number} run"]
    if resume.again:
        reasons = Counter(_kind(trial) for trial in resume.again)
        listed = ", ".join(f"{count} {kind}" for kind, count in reasons.items())
        spent = sum(trial.spend.cost_usd_micros for trial in resume.again)
        said.append(
            f"  {_trials(len(resume.again))} run again ({listed}); before, {usd(spent)} spent, kept in {archive}"
        )
    if resume.budget != (before := resume.record.plan.job_budget):
        said.append(f"  its budget is another now: {caps_said(resume.budget)}; it was {caps_said(before)}")
    said.append(f"  {_cost(resume.estimate, n_concurrent)}")
    return said


def _estimate(job: JobRecord, kept: Iterable[TrialRecord], to_run: int | None) -> Estimate | None:
    """By the mean of each task's scored trials where it has some, else of all; None where nothing can be told."""
    kept = tuple(kept)
    if not kept or not to_run:
        return None
    from statistics import fmean

    by_task = {name: [trial for trial in kept if trial.task == name] for name in {trial.task for trial in kept}}
    lacking = _lacking(job, by_task, to_run)
    samples = {name: by_task.get(name) or kept for name in lacking}
    return Estimate(
        cost_usd_micros=round(sum(fmean(t.spend.cost_usd_micros for t in samples[n]) * lacking[n] for n in lacking)),
        work_s=sum(fmean(t.seconds for t in samples[n]) * lacking[n] for n in lacking),
        taken_from=len(kept),
        is_least=any(trial.spend.unknown_calls for trial in kept),
    )


def _lacking(job: JobRecord, by_task: Mapping[str, list[TrialRecord]], to_run: int) -> dict[str, int]:
    """How many trials of each task have to run; of a registry dataset, whose tasks are not listed, of no known one."""
    if not job.plan.directories:
        return {"": to_run}
    return {name: max(0, job.plan.attempts - len(by_task.get(name, ()))) for name in job.plan.directories}


def _kind(trial: TrialRecord) -> str:
    """Why it has no score, in a word or two."""
    reason = trial.outcome.reason
    if reason == UNFINISHED:
        return "cut off"
    return "not begun" if reason == NOT_BEGUN else reason.partition(":")[0]


def _cost(estimate: Estimate | None, n_concurrent: int) -> str:
    if estimate is None:
        return "what it may cost can't be told: no trial has a score yet"
    wall_s = estimate.work_s / n_concurrent
    time = f"{wall_s:.0f} s" if wall_s < LONG_S else f"{wall_s / 60:.0f} min"
    least = "at least " if estimate.is_least else "about "
    cost = usd(estimate.cost_usd_micros) if estimate.cost_usd_micros or estimate.is_least else "no model cost"
    return f"{least}{cost} and {time} more, by its {_trials(estimate.taken_from)} with a score"


def _trials(number: int) -> str:
    return f"{number} trial{'' if number == 1 else 's'}"
