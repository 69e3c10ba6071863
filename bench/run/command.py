"""`inv bench` once it is planned: its stages' arguments, its jobs one after another, the result and the exit code."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import settings as settings_module
from bench.errors import BuzzbenchError, InvalidInput
from bench.run.asked import goes_on, is_done

if TYPE_CHECKING:
    from bench.planning.options import Options
    from bench.planning.planned import Plan
    from bench.records.job import JobRecord
    from bench.settings import Settings
    from bench.stack import StackAddress


def stage_arguments(stage: str, plan: Plan, *, fresh: bool, dry_run: bool) -> Mapping[str, Any] | None:
    """The arguments of one of `bench`'s pre-tasks, or None to leave it out."""
    if dry_run or is_done(plan):
        return None
    match stage:
        case "up":
            return {"fresh": fresh, "stack": plan.stack}
        case "xbuild":
            return {"manifest": str(plan.condition.path)} if plan.needs_agents else None
        case _:
            return {}


def bench(plan: Plan, *, dry_run: bool, as_json: bool) -> int:
    """Run the plan's jobs; the exit code. The stack is up and its schema applied by the stages before."""
    if dry_run:
        from bench.planning.dryrun import render

        print(render(plan, _how_it_goes_on(plan)))
        return 0
    from bench import report

    if is_done(plan):
        print("\n".join(_how_it_goes_on(plan)), file=sys.stderr)
        reports, failure = [found.record for job in plan.jobs if (found := goes_on(job))], None
    else:
        reports, failure = run(plan)
    report.show(reports, as_json=as_json)
    if plan.options.uploads and not failure:
        failure = _upload(reports, plan.options)
    if failure:
        print(f"inv: {failure}".replace("\n", "\ninv: "), file=sys.stderr)
        return failure.exit_code
    return 0 if all(read.complete for read in reports) else 1


def run(plan: Plan) -> tuple[list[JobRecord], BuzzbenchError | None]:
    """Run the plan's jobs one after another on the stack that is up: what they left, and why they stopped if they did.

    The first job that fails to run stops the rest. Raises BuzzbenchError where there is no stack.
    """
    from bench import report
    from bench.keys import load
    from bench.planning.estimate import summary
    from bench.planning.harborjob import verdict
    from bench.run import left
    from bench.run.names import reserved
    from bench.run.parent import run_job
    from bench.stack import address

    settings = settings_module.load()
    state, stack = load(settings.state_dir), address(settings.state_dir)
    if stack is None:
        raise BuzzbenchError("the stack went down before the job began", fix="run `inv up`")
    for found in left.book(settings, stack.dsn):
        if found.job not in {job.name for job in plan.jobs}:
            print(found, file=sys.stderr)
    left.sweep(settings)
    plan = reserved(plan)
    print(summary(plan), file=sys.stderr)
    for said in dict.fromkeys(verdict(plan, job) for job in plan.jobs):
        print("leaderboard: " + "\n".join(said.lines), file=sys.stderr)
    for note in plan.notes:
        print(f"note: {note}", file=sys.stderr)
    if plan.options.gui:
        from bench.gui import open_beside

        open_beside(settings, state, stack)
    directories: list[Path] = []
    failure: BuzzbenchError | None = None
    for job in plan.jobs:
        try:
            run_job(plan, job, settings, state)
        except BuzzbenchError as error:
            failure = error
        if not isinstance(failure, InvalidInput):
            # What was scored is shown, also of a job that failed.
            directories.append(job.directory)
        if failure:
            break
    for job in plan.jobs:
        # Reserved, and never begun.
        with contextlib.suppress(OSError):
            job.directory.rmdir()
    unbooked = _book(settings, stack)
    return [report.read_job(directory) for directory in directories if directory.exists()], failure or unbooked


def _book(settings: Settings, stack: StackAddress) -> BuzzbenchError | None:
    """Bring what has ended into PostgreSQL. A database that is gone takes nothing from a result: it is said."""
    import psycopg

    from bench.run import left

    try:
        left.book(settings, stack.dsn)
    except psycopg.Error as error:
        cause = " ".join(str(error).split())
        return BuzzbenchError(f"PostgreSQL hasn't got the records yet: {cause}", fix="the next `inv bench` books them")
    return None


def _how_it_goes_on(plan: Plan) -> list[str]:
    going_on = [(job, resume) for job in plan.jobs if (resume := goes_on(job))]
    if not going_on:
        return []
    from bench.faults import shown
    from bench.run import archive
    from bench.run.resume import lines

    state_dir = settings_module.load().state_dir
    said = []
    for job, resume in going_on:
        said += lines(resume, job.n_concurrent, shown(archive.next_place(state_dir / "archive" / job.name)))
    return said


def _upload(jobs: list[JobRecord], options: Options) -> BuzzbenchError | None:
    """Upload the jobs, all or, where one isn't fit, none."""
    from bench.pack import refuse_upload
    from bench.upload import upload

    try:
        for job in jobs:
            refuse_upload(settings_module.load(), job, options.environ, anyway=options.upload_anyway)
        for job in jobs:
            upload(job.directory)
    except BuzzbenchError as error:
        return error
    return None
