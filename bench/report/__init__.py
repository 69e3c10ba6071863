"""`inv report`, and the end of `inv bench`: jobs' results as tables or as one JSON object. Reads records only."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from bench import costs
from bench.condition import trust_domain
from bench.costs import Spend
from bench.errors import InvalidInput
from bench.nearest import nearest
from bench.records import PLAN
from bench.records import read_job as read_job
from bench.records.claim import is_claimed
from bench.records.job import JobRecord, TrialRecord
from bench.records.merge import merged
from bench.report.table import render
from bench.report.tasktable import legend, median_s, per_pass


def report(jobs_dir: Path, names: Sequence[str], *, as_json: bool) -> None:
    """The task: print the result of jobs from their records alone; of several that measured the same, together as well.

    Raises InvalidInput for what is no job.
    """
    jobs = [read_as_it_is(directory) for directory in directories_of(jobs_dir, names)]
    show(jobs, merged(jobs), as_json=as_json)


def read_as_it_is(directory: Path) -> JobRecord:
    """A job's record, which says so where a run works on the job."""
    running = is_claimed(directory)
    return replace(read_job(directory), running=running)


def directories_of(jobs_dir: Path, names: Sequence[str]) -> list[Path]:
    """The jobs' directories, each once, in the order given; without names the newest. Raises InvalidInput."""
    if not names:
        found = sorted(jobs_dir.glob(f"*/{PLAN}"), key=lambda path: path.stat().st_mtime)
        if not found:
            raise InvalidInput.of(str(jobs_dir), "no jobs here yet", "run `inv bench`")
        return [found[-1].parent]
    directories = []
    for name in names:
        directory = Path(name) if Path(name).is_dir() else jobs_dir / name
        if not any((directory / file).is_file() for file in (PLAN, "config.json")):
            near = nearest(name, [path.parent.name for path in jobs_dir.glob(f"*/{PLAN}")])
            fix = f"the nearest are {', '.join(near)}" if near else f"`ls {jobs_dir}` lists them"
            raise InvalidInput.of(f"--job {name}", "no such job", fix)
        directories.append(directory.absolute())
    return list(dict.fromkeys(directories))


def show(jobs: Sequence[JobRecord], together: Sequence[JobRecord] = (), *, as_json: bool) -> None:
    """Print the jobs: JSON on standard output, else the tables; warnings on standard error.

    `together` are records of several of the jobs, shown after them.
    """
    for job in (*jobs, *together):
        for warning in job.warnings:
            print(f"warning: {warning}", file=sys.stderr)
    if as_json:
        print(json.dumps(to_json(jobs, together), indent=2))
    else:
        shown = [*jobs, *together]
        for number, job in enumerate(shown, 1):
            # What the columns mean is the same for all, and the last table is what is still to be seen.
            print("\n".join(render(job, legend(shown) if number == len(shown) else ())))


def to_json(jobs: Iterable[JobRecord], together: Iterable[JobRecord] = ()) -> dict[str, Any]:
    """`{"jobs": [...], "merged": [...]}`; money is integer micro-dollars, rewards are null where nothing was judged.

    A job's `cost_usd_micros` is everything that was spent; the trials' own and the `replaced` attempts' add up to it.
    `cost_per_pass_usd_micros` is of its trials alone, as in the table; `median_seconds` is of the scored ones. A step's
    `seconds` are those in which its team had it.
    """
    return {"jobs": [_job_json(job) for job in jobs], "merged": [_job_json(job) for job in together]}


def _job_json(job: JobRecord) -> dict[str, Any]:
    return {
        "name": job.plan.job,
        "directory": str(job.directory),
        "rehearsal": job.plan.rehearsal is not None if job.plan.known else None,
        "replay": job.plan.replay,
        "condition": job.plan.condition,
        "condition_sha256": job.plan.condition_sha256,
        "stack": job.plan.stack,
        "environment": job.plan.environment,
        "agent": job.plan.agent,
        "budget": dict(job.plan.budget),
        "agents_budget": {seat.name: asdict(seat.limits) for seat in job.plan.roster},
        "job_budget": asdict(job.plan.job_budget),
        "earlier_budgets": [asdict(one.limits) | {"until": one.until} for one in job.plan.earlier_budgets],
        "trust_domain": trust_domain(job.plan.harnesses),
        "leaderboard": job.plan.leaderboard.to_json(),
        "running": job.running,
        "planned_trials": job.planned_trials,
        "unplanned": [trial.trial for trial in job.unplanned],
        "strangers": list(job.strangers),
        "counts": job.counts,
        "missing": job.missing,
        "cost_usd_micros": job.spend.cost_usd_micros,
        "calls": job.spend.calls,
        "unknown_calls": job.spend.unknown_calls,
        "unsure": job.unsure,
        "cost_per_pass_usd_micros": per_pass(costs.total(trial.spend for trial in job.trials), job.counts["passed"]),
        "median_seconds": None if (middle := median_s(job.trials)) is None else round(middle, 3),
        "stopped": {"kind": job.stop.kind, "reason": job.stop.reason} if job.stop else None,
        "trials": [_trial_json(trial) for trial in job.trials],
        "replaced": [
            {"task": attempt.task, "trial": attempt.trial, "reason": attempt.reason} | _spend_json(attempt.spend)
            for attempt in job.replaced
        ],
    }


def _trial_json(trial: TrialRecord) -> dict[str, Any]:
    return {
        "task": trial.task,
        "trial": trial.trial,
        "outcome": trial.outcome.outcome,
        "reason": trial.outcome.reason,
        "labels": list(trial.outcome.labels),
        "reward": trial.outcome.reward,
        "seconds": round(trial.seconds, 3),
        "unsure": trial.unsure,
        "steps": [
            {"name": step.name, "outcome": step.outcome.outcome, "reason": step.outcome.reason}
            | {"labels": list(step.outcome.labels), "reward": step.outcome.reward}
            | {"seconds": round(step.seconds, 3)}
            | _spend_json(step.spend)
            for step in trial.steps
        ],
    } | _spend_json(trial.spend)


def _spend_json(spend: Spend) -> dict[str, Any]:
    return {
        "calls": spend.calls,
        "unknown_calls": spend.unknown_calls,
        "tokens": {
            "input": spend.input_tokens,
            "cache_read": spend.cache_read_tokens,
            "cache_write": spend.cache_write_tokens,
            "output": spend.output_tokens,
        },
        "cost_usd_micros": spend.cost_usd_micros,
    }
