"""Several directories as one result: every trial once, by task and trial (public cases 17 and 57). Pure.

Only jobs that measured the same thing are put together: the same condition, served by the same upstreams (public case
62), on the same kind of stack and environment, and on the same terms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from bench.planning import leaderboard
from bench.records.job import JobRecord, Replaced, TrialRecord


def merged(jobs: Sequence[JobRecord]) -> list[JobRecord]:
    """One record for each thing that was measured by more than one of the directories; empty where none was.

    Its `directory` is the first one's. What two directories both have is taken once: the copy that has a score, else
    the first one. Planned trials of jobs of one name are the same trials; those of others add up.
    """
    groups: dict[tuple[str | tuple[str, ...] | None, ...], list[JobRecord]] = {}
    for job in (job for job in jobs if job.plan.known):
        groups.setdefault(measured(job), []).append(job)
    return [_one(group) for group in groups.values() if len({job.directory for job in group}) > 1]


def measured(job: JobRecord) -> tuple[str | tuple[str, ...] | None, ...]:
    """What a job measured: only jobs of which this is equal are put together."""
    plan = job.plan
    who = plan.condition_sha256, plan.agent, plan.rehearsal, plan.replay, plan.served_by
    return (*who, plan.stack, plan.environment, plan.leaderboard.other_terms)


def _one(jobs: Sequence[JobRecord]) -> JobRecord:
    first = jobs[0]
    trials = _trials(jobs)
    there = {trial.trial for trial in trials}
    replaced = {attempt.trial: attempt for job in jobs for attempt in job.replaced if attempt.trial not in there}
    names = dict.fromkeys(job.plan.job for job in jobs)
    planned = [_planned([job for job in jobs if job.plan.job == name]) for name in names]
    directories: dict[str, Path] = {}
    for job in jobs:
        directories |= job.plan.directories
    copies = sum(len(job.trials) for job in jobs) - len(trials)
    return JobRecord(
        directory=first.directory,
        # Attempts are no longer one number for every task.
        plan=replace(
            first.plan,
            job=" + ".join(names),
            directories=directories,
            attempts=0,
            leaderboard=leaderboard.together([job.plan.leaderboard for job in jobs], _fewest(trials)),
        ),
        trials=trials,
        planned_trials=None if None in planned else max(len(trials), sum(number or 0 for number in planned)),
        warnings=(f"{copies} of the trials are in more than one directory; each counts once",) if copies else (),
        replaced=_in_order(replaced.values()),
        unplanned=tuple({trial.trial: trial for job in jobs for trial in job.unplanned}.values()),
        doubts=tuple(dict.fromkeys(doubt for job in jobs for doubt in job.doubts)),
        strangers=tuple(dict.fromkeys(name for job in jobs for name in job.strangers)),
        is_torn=any(job.is_torn for job in jobs),
        running=any(job.running for job in jobs),
    )


def _trials(jobs: Iterable[JobRecord]) -> tuple[TrialRecord, ...]:
    found: dict[tuple[str, str], TrialRecord] = {}
    for trial in (trial for job in jobs for trial in job.trials):
        known = found.get((trial.task, trial.trial))
        if known is None or (trial.is_scored and not known.is_scored):
            found[trial.task, trial.trial] = trial
    return tuple(found[key] for key in sorted(found))


def _fewest(trials: Iterable[TrialRecord]) -> int:
    """How many attempts there are at each task at least."""
    return min(Counter(trial.task for trial in trials).values(), default=0)


def _planned(jobs: Sequence[JobRecord]) -> int | None:
    known = [job.planned_trials for job in jobs if job.planned_trials is not None]
    return max(known) if known else None


def _in_order(attempts: Iterable[Replaced]) -> tuple[Replaced, ...]:
    return tuple(sorted(attempts, key=lambda attempt: (attempt.task, attempt.trial)))
