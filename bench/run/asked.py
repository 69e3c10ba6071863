"""From the options of `inv bench` to its plan: as they are given, or read back from the job that `--resume` names."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import settings as settings_module
from bench.errors import InvalidInput, Problem, raise_problems
from bench.faults import Faults, shown
from bench.nearest import did_you_mean

if TYPE_CHECKING:
    from bench.planning.jobs import JobPlan
    from bench.planning.options import Options
    from bench.planning.planned import Plan
    from bench.run.resume import Resume
    from bench.settings import Settings

WITH_RESUME = frozenset(
    {
        *("resume", "n_concurrent", "jobs_dir", "gui", "fresh", "dry_run", "json"),
        *("leaderboard", "upload", "upload_anyway"),
        *("budget_usd", "budget_tokens", "budget_calls"),
    }
)
"""Options that a resumed job takes; all others are in its record."""

_planned: dict[tuple[tuple[str, Any], ...], Plan] = {}
_existing: dict[Path, Resume | None] = {}


def planned(**arguments: Any) -> Plan:
    """The plan of these options, made once: check, stages and body share it, and its time stamp.

    Raises InvalidInput and MachineLacks, also for a job that is there already and can't go on with these options.
    """
    from bench.planning.plan import make

    key = tuple((name, tuple(value) if isinstance(value, list) else value) for name, value in sorted(arguments.items()))
    if key not in _planned:
        given = {name: value for name, value in arguments.items() if value not in (None, "", 0, False, [])}
        settings = settings_module.load({"jobs_dir": given.pop("jobs_dir", None)})
        options = _read_back(given, settings) if "resume" in given else _asked(given, settings)
        plan = make(options, upload_problems)
        faults = Faults()
        for job in plan.jobs:
            faults.catch(partial(_look, plan, job, settings))
        raise_problems(faults)
        _planned[key] = plan
    return _planned[key]


def upload_problems(directories: Sequence[Path]) -> Iterator[Problem]:
    """What keeps jobs that are there and whole from being uploaded: records that contradict each other.

    Of one that goes on this is said when it has ended: the trials that contradict may be among those that run again.
    """
    # Reading a job back needs much that a new one doesn't.
    from bench.pack.checks import of_records
    from bench.records import PLAN, read_job
    from bench.upload import ANYWAY

    found = [read_job(directory) for directory in directories if (directory / PLAN).is_file()]
    yield from of_records([record for record in found if record.complete], ANYWAY)


def goes_on(job: JobPlan) -> Resume | None:
    """How the job of a plan goes on, as it was when it was planned; None where it begins."""
    return _existing[job.directory]


def is_done(plan: Plan) -> bool:
    """Whether every trial of the plan has a score already: nothing is to be started for it."""
    found = [goes_on(job) for job in plan.jobs]
    return all(resume is not None and resume.is_done for resume in found)


def _look(plan: Plan, job: JobPlan, settings: Settings) -> None:
    _existing[job.directory] = None
    if os.path.lexists(job.directory):
        # Reading a job back needs much that a new one doesn't.
        from bench.records.claim import refuse_claimed
        from bench.run import left
        from bench.run.existing import resume_of

        if job.directory.is_dir():
            left.await_killed(settings, job.directory)
            refuse_claimed(job.directory)
        _existing[job.directory] = resume_of(plan, job)


def _asked(given: Mapping[str, Any], settings: Settings) -> Options:
    from bench.places import door_dir, programs_directory
    from bench.planning.options import Options
    from bench.planning.replay import cassette_of

    renamed = {"include_task": "include", "exclude_task": "exclude"}
    fields = {renamed.get(name, name): _converted(name, value) for name, value in given.items()}
    if "replay" in fields:
        fields["replay"] = cassette_of(fields["replay"], settings.jobs_dir)
    return Options(
        **fields,
        jobs_dir=settings.jobs_dir,
        agent_programs=programs_directory(settings),
        doors=door_dir(settings.state_dir) if sys.platform == "linux" else None,
        now=datetime.now(UTC),
    )


def _converted(name: str, value: Any) -> Any:
    if name in {"path", "manifest", "endpoint_config", "harbor_config", "replay"}:
        return Path(value)
    return tuple(value) if isinstance(value, list) else value


def _read_back(given: Mapping[str, Any], settings: Settings) -> Options:
    """The options of the job that `--resume` names. Raises InvalidInput where there is none, or it says too little."""
    from bench.planning.options import Options
    from bench.records import planrecord

    raise_problems(
        Problem(f"--{name.replace('_', '-')}", "a resumed job goes on with its own input", "leave it out")
        for name in given
        if name not in WITH_RESUME
    )
    directory = _job_directory(str(given["resume"]), settings.jobs_dir)
    record = planrecord.load(directory)
    own = {name: value for name, value in given.items() if name != "resume"}
    then = record["harbor"].get("n_concurrent_trials")
    return Options(
        **planrecord.options_of(record) | {"n_concurrent": then} | own,
        jobs_dir=directory.parent,
        job_name=directory.name,
        now=datetime.now(UTC),
    )


def _job_directory(name: str, jobs_dir: Path) -> Path:
    from bench.records import planrecord

    for directory in (jobs_dir / name, Path(name)):
        if (directory / planrecord.FILE_NAME).exists():
            return directory.absolute()
    if (jobs_dir / name).is_dir():
        raise InvalidInput.of(f"--resume {name}", f"is no job of Buzzbench: no {planrecord.FILE_NAME}")
    known = [path.parent.name for path in jobs_dir.glob(f"*/{planrecord.FILE_NAME}")] if jobs_dir.is_dir() else []
    raise InvalidInput.of(
        f"--resume {name}",
        f"no such job in {shown(jobs_dir)}",
        did_you_mean(name, known) or "give its name or directory",
    )
