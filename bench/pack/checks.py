"""What keeps jobs from being packed for a leaderboard: what was planned, and what came of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.errors import Problem
from bench.faults import shown
from bench.planning import leaderboard
from bench.planning.leaderboard import ATTEMPTS, LEAST_ATTEMPTS, Reason, Verdict
from bench.records import JOURNAL
from bench.records.claim import is_claimed
from bench.records.job import JobRecord
from bench.records.merge import measured

NEEDED = ("config.json", "lock.json", "result.json")
"""Of each job and trial, by Harbor's upload and by the board."""

ANYWAY = "--anyway packs it all the same"


def at_rest(job_dirs: Sequence[Path]) -> Iterator[Problem]:
    """Jobs that are still being run."""
    for directory in job_dirs:
        if is_claimed(directory):
            yield Problem(shown(directory), "a run works on this job", "pack it when that is over")


def same_measured(jobs: Sequence[JobRecord]) -> Iterator[Problem]:
    """Jobs that can't be one result, each named beside the first."""
    for other in jobs[1:]:
        if measured(other) != measured(jobs[0]):
            what = f"it measured something else than {jobs[0].plan.job}: who played, stack, environment or terms"
            yield Problem(f"--job {other.directory.name}", what, "pack it apart")


def verdict(record: JobRecord, jobs: Sequence[JobRecord], trial_dirs: Iterable[Path]) -> Verdict:
    """What the record says, and what speaks against it in the configurations that the jobs and trials really had."""
    reasons = {reason.field: reason for reason in record.plan.leaderboard.reasons}
    own = {reason.field for job in jobs for reason in job.plan.leaderboard.reasons} | {ATTEMPTS}
    for job in jobs:
        found = _against(read(job.directory / "config.json") or {})
        reasons = {reason.field: reason for reason in found if reason.field not in own} | reasons
    for place in trial_dirs:
        config = read(place / "config.json") or {}
        replaced = leaderboard.changes(config)  # Of these each trial's are told.
        found = _against({**config, "agents": [config.get("agent")]})
        more = (one for one in found if one.certain and one not in replaced and one.field not in own)
        reasons = {reason.field: reason for reason in more} | reasons
    return Verdict(tuple(reasons.values()))


def _against(config: Mapping[str, Any]) -> tuple[Reason, ...]:
    """What speaks against a configuration, also against one that Harbor can't have written."""
    try:
        return leaderboard.verdict(config).reasons
    except (TypeError, AttributeError, ValueError):
        return (Reason("config.json", "holds other things than Harbor writes there"),)


def of_record(record: JobRecord, jobs: Sequence[JobRecord]) -> Iterator[Problem]:
    """What speaks against the merged record of the jobs: its verdict, and attempts without a score."""
    planned = sum({job.plan.job: job.plan.attempts for job in jobs}.values())
    more = LEAST_ATTEMPTS - planned
    way = "`inv bench --resume JOB` runs what is missing"
    if more > 0:
        way = f"run {more} more under another --job-name (-k {more}), and pack both: `inv pack --job … --job …`"
    reasons = record.plan.leaderboard.reasons
    for reason in reasons:
        yield Problem(record.plan.job, f"not fit for a leaderboard: {reason}", ANYWAY if reason is reasons[-1] else "")
    scored = Counter(trial.task for trial in record.trials if trial.is_scored)
    tasks = dict.fromkeys([*record.plan.directories, *(trial.task for trial in record.trials)])
    for task in tasks:
        if scored[task] < LEAST_ATTEMPTS:
            have = "1 attempt has" if scored[task] == 1 else f"{scored[task]} attempts have"
            yield Problem(task, f"{have} a score, and a board wants at least {LEAST_ATTEMPTS}", f"{way}, or --anyway")


def of_records(jobs: Sequence[JobRecord], anyway: str = ANYWAY) -> Iterator[Problem]:
    """Where the jobs' own records contradict each other, or don't tell all. `anyway` is the way past it."""
    for doubt in (doubt for job in jobs for doubt in job.doubts):
        yield Problem("", doubt, anyway)
    for job in jobs:
        for name in NEEDED:
            if read(job.directory / name) is None:
                yield Problem(
                    shown(job.directory / name), "is missing or damaged, and Harbor's upload needs it", anyway
                )
        torn = (one for one in job.warnings if one.startswith(str(job.directory / JOURNAL)) and one not in job.doubts)
        yield from (Problem("", warning, anyway) for warning in torn)


def of_trial(trial_dir: Path) -> Iterator[Problem]:
    """What speaks against one trial: its files, and the configuration that it really had."""
    for name in NEEDED:
        if read(trial_dir / name) is None:
            yield Problem(
                shown(trial_dir / name),
                "is missing or damaged, and Harbor's upload needs it",
                "--anyway leaves the trial out",
            )
    for reason in leaderboard.changes(read(trial_dir / "config.json") or {}):
        yield Problem(shown(trial_dir / "config.json"), str(reason), ANYWAY)


def is_whole(trial_dir: Path) -> bool:
    """Whether the trial has what an upload needs."""
    return all(read(trial_dir / name) is not None for name in NEEDED)


def read(path: Path) -> Mapping[str, Any] | None:
    """The JSON object in a file; None where there is none."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
