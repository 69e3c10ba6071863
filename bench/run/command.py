"""From the options of `inv bench` to its exit code."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import settings as settings_module
from bench.errors import BuzzbenchError, InvalidInput

if TYPE_CHECKING:
    from bench.plan import Plan
    from bench.records import JobRecord

_planned: dict[tuple[tuple[str, Any], ...], Plan] = {}


def planned(**arguments: Any) -> Plan:
    """The plan of these options, made once: check, stages and body share it, and its time stamp."""
    from bench.plan import Options, make

    key = tuple((name, tuple(value) if isinstance(value, list) else value) for name, value in sorted(arguments.items()))
    if key not in _planned:
        given = {name: value for name, value in arguments.items() if value not in (None, "", 0, False, [])}
        settings = settings_module.load({"jobs_dir": given.pop("jobs_dir", None)})
        renamed = {"include_task": "include", "exclude_task": "exclude"}
        fields = {renamed.get(name, name): _converted(name, value) for name, value in given.items()}
        _planned[key] = make(Options(**fields, jobs_dir=settings.jobs_dir, now=datetime.now(UTC)))
    return _planned[key]


def _converted(name: str, value: Any) -> Any:
    if name in {"path", "manifest", "endpoint_config", "harbor_config"}:
        return Path(value)
    return tuple(value) if isinstance(value, list) else value


def stage_arguments(stage: str, plan: Plan, *, fresh: bool, dry_run: bool) -> Mapping[str, Any] | None:
    """The arguments of one of `bench`'s pre-tasks, or None to leave it out."""
    if dry_run:
        return None
    match stage:
        case "up":
            return {"fresh": fresh, "stack": plan.stack}
        case "xbuild":
            return {"manifest": str(plan.condition.path)} if plan.needs_agents else None
        case _:
            return {}


def _upload(directories: list[Path]) -> BuzzbenchError | None:
    from bench.upload import upload

    try:
        for directory in directories:
            upload(directory)
    except BuzzbenchError as error:
        return error
    return None


def bench(plan: Plan, *, dry_run: bool, as_json: bool) -> int:
    """Run the plan's jobs; the exit code. The stack is up and its schema applied by the stages before."""
    if dry_run:
        from bench.dryrun import render

        print(render(plan))
        return 0
    from bench import report

    reports, failure = run(plan)
    report.show(reports, as_json=as_json)
    if plan.options.upload and not failure:
        failure = _upload([read.directory for read in reports])
    if failure:
        print(f"inv: {failure}", file=sys.stderr)
        return failure.exit_code
    return 0 if all(read.complete for read in reports) else 1


def run(plan: Plan) -> tuple[list[JobRecord], BuzzbenchError | None]:
    """Run the plan's jobs one after another on the stack that is up: what they left, and why they stopped if they did.

    The first job that fails to run stops the rest. Raises BuzzbenchError where there is no stack.
    """
    from bench import report
    from bench.estimate import summary
    from bench.keys import load
    from bench.run.parent import run_job
    from bench.stack import address

    settings = settings_module.load()
    state, stack = load(settings.state_dir), address(settings.state_dir)
    if stack is None:
        raise BuzzbenchError("the stack went down before the job began", fix="run `inv up`")
    print(summary(plan), file=sys.stderr)
    directories: list[Path] = []
    failure: BuzzbenchError | None = None
    for job in plan.jobs:
        try:
            run_job(plan, job, settings, state, stack)
        except BuzzbenchError as error:
            failure = error
        if not isinstance(failure, InvalidInput):
            directories.append(job.directory)
        if failure:
            break
    reports = [report.read_job(directory) for directory in directories if directory.exists()]
    for read in reports:
        report.project(stack.dsn, read)
    return reports, failure
