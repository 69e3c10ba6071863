"""The result of a job as people and programs read it: a table per task, or one JSON object. Reads records only."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bench.budget import said
from bench.errors import InvalidInput
from bench.manifest import Limits
from bench.planrecord import JobPlanRecord
from bench.records import JobRecord, TrialRecord
from bench.records import read_job as read_job


def report(jobs_dir: Path, names: Sequence[str], *, as_json: bool) -> None:
    """The task: print the result of finished jobs from their records alone. Raises InvalidInput for what is no job."""
    show([read_job(directory) for directory in _directories(jobs_dir, names)], as_json=as_json)


def _directories(jobs_dir: Path, names: Sequence[str]) -> list[Path]:
    if not names:
        found = sorted(jobs_dir.glob("*/config.json"), key=lambda path: path.stat().st_mtime)
        if not found:
            raise InvalidInput.of(str(jobs_dir), "no jobs here yet", "run `inv bench`")
        return [found[-1].parent]
    directories = []
    for name in names:
        directory = Path(name) if Path(name).is_dir() else jobs_dir / name
        if not (directory / "config.json").is_file():
            raise InvalidInput.of(f"--job {name}", "no such job", f"`ls {jobs_dir}` lists them")
        directories.append(directory)
    return directories


def show(jobs: Sequence[JobRecord], *, as_json: bool) -> None:
    """Print the jobs: JSON on standard output, else the tables; warnings on standard error."""
    for job in jobs:
        for warning in job.warnings:
            print(f"warning: {warning}", file=sys.stderr)
    if as_json:
        print(json.dumps(to_json(jobs), indent=2))
    else:
        for job in jobs:
            print("\n".join(render(job)))


def to_json(jobs: Iterable[JobRecord]) -> dict[str, Any]:
    """`{"jobs": [...]}`; money is integer micro-dollars, rewards are null where nothing was judged."""
    return {"jobs": [_job_json(job) for job in jobs]}


def _job_json(job: JobRecord) -> dict[str, Any]:
    return {
        "name": job.plan.job,
        "directory": str(job.directory),
        "rehearsal": job.plan.rehearsal is not None,
        "replay": job.plan.replay,
        "condition": job.plan.condition,
        "condition_sha256": job.plan.condition_sha256,
        "stack": job.plan.stack,
        "environment": job.plan.environment,
        "agent": job.plan.agent,
        "budget": dict(job.plan.budget),
        "planned_trials": job.planned_trials,
        "unplanned": [trial.trial for trial in job.unplanned],
        "counts": job.counts,
        "cost_usd_micros": sum(trial.spend.cost_usd_micros for trial in job.trials),
        "unknown_calls": sum(trial.spend.unknown_calls for trial in job.trials),
        "trials": [_trial_json(trial) for trial in job.trials],
    }


def _trial_json(trial: TrialRecord) -> dict[str, Any]:
    spend = trial.spend
    return {
        "task": trial.task,
        "trial": trial.trial,
        "outcome": trial.outcome.outcome,
        "reason": trial.outcome.reason,
        "labels": list(trial.outcome.labels),
        "reward": trial.outcome.reward,
        "seconds": round(trial.seconds, 3),
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


def render(job: JobRecord) -> list[str]:
    """The lines a person sees at the end of a job."""
    plan, counts = job.plan, job.counts
    kind = "models were asked"
    if plan.rehearsal:
        kind = f"rehearsal with the script `{plan.rehearsal}`: no model was asked"
    elif plan.replay:
        kind = f"replay of the cassette {plan.replay[:12]}: no model was asked"
    elif plan.agent:
        kind = f"Harbor's {plan.agent} in a team's place"
    host = "; sandbox: host userland, no limits" if plan.environment == "sandbox" else ""
    lines = [
        "",
        f"{plan.job}  ({kind}; condition {plan.condition} {plan.condition_sha256[:12]}; {plan.stack} stack{host})",
        *_budget(plan),
        "",
    ]
    head = len(lines) + 1
    rows: list[tuple[str, ...]] = [("task", "attempts", "passed", "failed", "unscored", "tokens", "cost", "time")]
    for task in dict.fromkeys(trial.task for trial in job.trials):
        rows.append(_row(task, [trial for trial in job.trials if trial.task == task]))
    if len(rows) > 2:
        rows.append(_row("all", job.trials))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [
            row[0].ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
        ]
        lines.append("  ".join(cells))
    if rows[1:]:
        lines.insert(head, "  ".join("-" * width for width in widths))
    lines.append("")
    scored = counts["passed"] + counts["failed"]
    planned = job.planned_trials or len(job.trials)
    lines.append(
        f"passed {_rate(counts['passed'], scored)} of scored trials, "
        f"{_rate(counts['passed'], planned)} with unscored ones as failures"
    )
    for trial in job.trials:
        if trial.outcome.outcome != "passed" or trial.outcome.labels:
            labels = f" [{', '.join(trial.outcome.labels)}]" if trial.outcome.labels else ""
            lines.append(f"  {trial.trial}: {trial.outcome.outcome}{labels} {trial.outcome.reason}".rstrip())
    if job.missing:
        each = ", ".join(f"{number} of {task}" for task, number in job.missing_of.items())
        lines.append(f"  {job.missing} planned trials left nothing: unscored{f' ({each})' if each else ''}")
    for trial in job.unplanned:
        lines.append(f"  {trial.trial}: {trial.task} was not selected, so this trial counts for nothing")
    lines.append(f"evidence, trajectories, receipts: {job.directory}")
    return lines


def _budget(plan: JobPlanRecord) -> list[str]:
    """What each trial's team could use, to be held beside another condition's."""
    if plan.agent or not plan.budget:
        return []
    caps = Limits(*(plan.budget.get(name) for name in ("usd_micros", "tokens", "calls")))
    return [f"budget of each trial: {said(caps, plan.budget.get('timeout_seconds'))}"]


def _row(name: str, trials: Sequence[TrialRecord]) -> tuple[str, ...]:
    counts = {kind: sum(trial.outcome.outcome == kind for trial in trials) for kind in ("passed", "failed", "unscored")}
    tokens = sum(
        t.spend.input_tokens + t.spend.cache_read_tokens + t.spend.cache_write_tokens + t.spend.output_tokens
        for t in trials
    )
    unknown = "+?" if any(t.spend.unknown_calls for t in trials) else ""
    cost = sum(t.spend.cost_usd_micros for t in trials)
    seconds = sum(t.seconds for t in trials)
    return (
        name,
        str(len(trials)),
        *(str(n) for n in counts.values()),
        f"{tokens:,}{unknown}",
        f"${cost / 1_000_000:.4f}{unknown}",
        f"{seconds:.1f} s",
    )


def _rate(part: int, whole: int) -> str:
    return f"{part}/{whole} ({part / whole:.0%})" if whole else "0/0 (–)"


def project(dsn: str, job: JobRecord) -> None:
    """Bring a job's records into PostgreSQL, which holds a projection of them."""
    from bench.projection import project as into_postgres

    into_postgres(dsn, job.directory)
