"""What is at a planned job's place: nothing, a job to go on with, or something in the way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.errors import InvalidInput
from bench.planning.planned import Plan
from bench.records import PLAN, planrecord
from bench.records.claim import is_claimed
from bench.run.existing import resume_of
from bench.run.resume import Resume
from tests.pipeline import contents
from tests.planning.kit import Project, project

RESULT = {
    "task_name": "buzz/alpha",
    "agent_execution": {"started_at": "x"},
    "verifier_result": {"rewards": {"reward": 1}},
}


@pytest.fixture
def home(tmp_path: Path) -> Project:
    made = project(tmp_path)
    made.task("alpha")
    made.task("beta")
    return made


def digest(directory: Path) -> str:
    from harbor.publisher.packager import Packager

    return f"sha256:{Packager.compute_content_hash(directory)[0]}"


def begun(home: Project, **changes: Any) -> Path:
    """A job of one attempt for each task: alpha has a score, beta was cut off."""
    plan = home.plan(job_name="mine", attempts=1, **changes)
    (job,) = plan.jobs
    for name in ("alpha__1", "beta__1"):
        (job.directory / name).mkdir(parents=True)
        (job.directory / name / "config.json").write_text("{}")
    (job.directory / "alpha__1" / "result.json").write_text(json.dumps(RESULT))
    record = planrecord.describe(plan, job)
    (job.directory / PLAN).write_text(json.dumps(record))
    (job.directory / "config.json").write_text(json.dumps(record["harbor"]))
    locked = [{"task": {"path": str(task.directory), "digest": digest(task.directory)}} for task in job.tasks]
    (job.directory / "lock.json").write_text(json.dumps({"trials": locked}))
    return job.directory


def look(plan: Plan) -> Resume | None:
    (job,) = plan.jobs
    return resume_of(plan, job)


def refused(plan: Plan) -> list[str]:
    (job,) = plan.jobs
    before = contents(job.directory)
    with pytest.raises(InvalidInput) as caught:
        resume_of(plan, job)
    assert contents(job.directory) == before
    return [str(problem).replace(f"{job.directory}", "JOB") for problem in caught.value.problems]


def test_where_nothing_is_a_job_begins(home: Project) -> None:
    plan = home.plan(job_name="mine", attempts=1)
    assert look(plan) is None
    plan.jobs[0].directory.mkdir(parents=True)
    (plan.jobs[0].directory / f".{PLAN}.x1y2").write_text('{"half')
    assert look(plan) is None


def test_a_job_goes_on_with_the_same_input_and_another_number_at_a_time(home: Project) -> None:
    begun(home)
    for changes in ({}, {"n_concurrent": 9}, {"include": ("alpha", "b*")}):
        found = look(home.plan(job_name="mine", attempts=1, **changes))
        assert found is not None
        assert ([t.trial for t in found.kept], found.to_run) == (["alpha__1"], 1)


def test_a_directory_that_is_no_job_of_ours_is_left_alone(home: Project) -> None:
    plan = home.plan(job_name="mine", attempts=1)
    plan.jobs[0].directory.mkdir(parents=True)
    (plan.jobs[0].directory / "config.json").write_text("{}")
    assert refused(plan) == ["JOB: is there already, and no job of Buzzbench; choose another --job-name"]


@pytest.mark.parametrize("target", [None, "nowhere", "mine"])
def test_a_file_or_a_link_to_nowhere_in_the_jobs_place_is_no_job(home: Project, target: str | None) -> None:
    plan = home.plan(job_name="mine", attempts=1)
    place = plan.jobs[0].directory
    place.parent.mkdir()
    if target is None:
        place.touch()
        assert not is_claimed(place)
    else:
        place.symlink_to(target)
    with pytest.raises(InvalidInput, match="is there already, and no job of Buzzbench"):
        resume_of(plan, plan.jobs[0])


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"attempts": 2}, "attempts was 1 and is 2 now"),
        ({"include": ("alpha",)}, 'tasks.buzz/beta was {"directory": '),
        ({"stack": "compose"}, 'stack was "embedded" and is "compose" now'),
        ({"max_retries": 2}, "harbor.retry"),
    ],
)
def test_other_input_is_refused_with_the_field_and_both_values(
    home: Project, changes: dict[str, Any], told: str
) -> None:
    """Case 4: what differs is named, and nothing is deleted."""
    begun(home)
    problems = refused(home.plan(**{"job_name": "mine", "attempts": 1} | changes))
    assert problems[0].startswith(f"JOB: {told}")
    assert problems[-1].endswith("a job goes on with the same input, but for -n: give that, or another --job-name")


def test_every_field_that_differs_is_told_at_once(home: Project) -> None:
    begun(home)
    other = home.manifest(home.team(condition="other"))
    problems = refused(home.plan(job_name="mine", attempts=2, manifest=other))
    assert {problem.split()[1].rstrip(":") for problem in problems} >= {"condition", "condition_sha256", "attempts"}


def test_another_model_is_told_by_the_conditions_hash(home: Project) -> None:
    first = home.manifest(home.team())
    begun(home, manifest=first)
    team = home.team()
    team["roster"][0]["model_revision"] = "claude-opus-4-8"
    team["prices"]["claude-opus-4-8"] = {"input": 5, "cached_input": 0.5, "output": 25}
    problems = refused(home.plan(job_name="mine", attempts=1, manifest=home.manifest(team)))
    assert problems[0].startswith('JOB: condition_sha256 was "')


def test_a_script_that_changed_is_other_input(home: Project) -> None:
    begun(home)
    script = home.tasks / "alpha" / "rehearsal" / "good.yaml"
    script.write_text(script.read_text() + "# changed\n")
    assert refused(home.plan(job_name="mine", attempts=1))[0].startswith("JOB: tasks.buzz/alpha.script_sha256 was")


def test_a_task_whose_files_changed_is_told(home: Project) -> None:
    begun(home)
    (home.tasks / "beta" / "tests" / "test.sh").write_text("false\n")
    (problem,) = refused(home.plan(job_name="mine", attempts=1))
    assert problem.startswith("JOB: the files of buzz/beta are not those that it began with (sha256:")


@pytest.mark.parametrize("name", ["config.json", "lock.json", "alpha__1/config.json"])
@pytest.mark.parametrize(
    ("content", "told"), [(None, ": is missing"), ('{"a": ', ":1: is damaged"), ("[]", ": is damaged")]
)
def test_damaged_configuration_is_refused_with_a_way_on(
    home: Project, name: str, content: str | None, told: str
) -> None:
    path = begun(home) / name
    path.unlink() if content is None else path.write_text(content)
    (problem,) = refused(home.plan(job_name="mine", attempts=1))
    assert problem.startswith(f"JOB/{name}{told}")
    assert "put the two together with `inv report --job" in problem


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"schema": "buzzbench-plan-1"}', '{"schema": "buzzbench-plan-9"}', "\x00"]
)
def test_a_damaged_plan_is_refused_with_a_way_on(home: Project, content: str) -> None:
    (begun(home) / PLAN).write_text(content)
    (problem,) = refused(home.plan(job_name="mine", attempts=1))
    assert problem.startswith((f"JOB/{PLAN}: ", f"JOB/{PLAN}:1: "))
    assert "restore it, or run under another --job-name" in problem


def test_a_job_that_never_came_to_a_trial_needs_no_configuration(home: Project) -> None:
    directory = begun(home)
    for trial in ("alpha__1", "beta__1"):
        for path in (directory / trial).iterdir():
            path.unlink()
        (directory / trial).rmdir()
    (directory / "config.json").write_text('{"half')
    (directory / "lock.json").unlink()
    found = look(home.plan(job_name="mine", attempts=1))
    assert found is not None
    assert (found.kept, found.again, found.to_run) == ((), (), 2)
