"""What is at a planned job's place already: nothing, a job to go on with, or something in the way. Changes nothing.

A job goes on with the very input that it began with, but for `-n`. Harbor checks that too (HARBOR.md section 7.4), but
only after it has removed directories; and it would begin anew where its configuration is gone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from bench import budget, records
from bench.condition import Limits
from bench.errors import InvalidInput, Problem
from bench.faults import shown
from bench.reading import jsonfile
from bench.records import planrecord
from bench.records.planrecord import MERGE_INSTEAD
from bench.run import resume

if TYPE_CHECKING:
    from bench.planning.jobs import JobPlan
    from bench.planning.planned import Plan
    from bench.records.job import JobRecord
    from bench.run.resume import Resume

SAME_INPUT = "a job goes on with the same input, but for -n: give that, or another --job-name"


def resume_of(plan: Plan, job: JobPlan) -> Resume | None:
    """How the job goes on; None where it begins. Raises InvalidInput: no job, other input, damaged configuration."""
    if is_free(job.directory):
        return None
    if not (job.directory / planrecord.FILE_NAME).exists():
        what = "is there already, and no job of Buzzbench"
        raise InvalidInput.of(shown(job.directory), what, "choose another --job-name")
    if plan.replay is not None:
        what = "is there already, and a replay doesn't go on: it costs nothing"
        raise InvalidInput.of(shown(job.directory), what, "choose another --job-name")
    found = resume.plan(records.read_job(job.directory), plan.budget)
    problems = [*_differences(plan, job)]
    if not problems and found.record.trials and not found.is_done:
        problems = [*_damage(found.record), *_changed_tasks(job), *_spent(plan, job)]
    if problems:
        raise InvalidInput(problems)
    return found


def is_free(directory: Path) -> bool:
    """Whether a job can begin here: there is nothing, or no more than a crash of the very beginning left."""
    return not os.path.lexists(directory) or (
        directory.is_dir() and all(path.name.startswith(f".{planrecord.FILE_NAME}") for path in directory.iterdir())
    )


def _differences(plan: Plan, job: JobPlan) -> Iterator[Problem]:
    found = planrecord.differences(planrecord.load(job.directory), planrecord.describe(plan, job))
    for difference in found:
        yield Problem(shown(job.directory), str(difference), SAME_INPUT if difference is found[-1] else "")


def _damage(read: JobRecord) -> Iterator[Problem]:
    """Files without which Harbor would not go on, or would begin anew, or would run a scored trial again."""
    for name in read.strangers:
        yield Problem(
            shown(read.directory / name), "is no attempt of this job, and Harbor would count it", "take it away"
        )
    kept = [read.directory / trial.trial / "config.json" for trial in read.trials if trial.is_scored]
    for path in (read.directory / "config.json", read.directory / "lock.json", *kept):
        try:
            jsonfile.read(path, fix=MERGE_INSTEAD)
        except FileNotFoundError:
            yield Problem(shown(path), "is missing", MERGE_INSTEAD)
        except InvalidInput as error:
            yield from error.problems


def _changed_tasks(job: JobPlan) -> Iterator[Problem]:
    """Tasks whose files are not those that the scored trials had. Harbor's own digests, in lock.json, say so."""
    from harbor.publisher.packager import Packager

    locked = _digests(job.directory / "lock.json")
    for task in job.tasks:
        then = locked.get(str(task.directory))
        now = f"sha256:{Packager.compute_content_hash(task.directory)[0]}"
        if then is not None and then != now:
            what = f"the files of {task.name} are not those that it began with ({then[:19]} then, {now[:19]} now)"
            yield Problem(shown(job.directory), what, SAME_INPUT)


def _spent(plan: Plan, job: JobPlan) -> Iterator[Problem]:
    """Caps of which earlier runs left too little, by what the gateway charged: its account goes on with the job."""
    from bench.spend.sums import Books

    if plan.budget != Limits():
        charged = Books(job.directory).read().total.charged
        yield from budget.too_small(plan.condition, plan.endpoints, plan.budget, charged)


def _digests(lock: Path) -> dict[str, str]:
    """Harbor's digest of each task's files, by the task's directory; of a damaged lock.json what can be read."""
    try:
        trials = json.loads(lock.read_bytes())["trials"]
        return {str(trial["task"]["path"]): str(trial["task"]["digest"]) for trial in trials}
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        return {}
