"""From options to a plan, and from a job back to its options."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench import commands
from bench.errors import InvalidInput
from bench.planning.planned import Plan
from bench.records import planrecord
from bench.run import asked
from bench.settings import ROOT

DATASET = str(ROOT / "buzz-dataset")


@pytest.fixture
def planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Plan]:
    """`inv bench` with these options, up to its plan; a dry run, in a jobs directory of its own."""
    monkeypatch.setenv("BUZZBENCH_JOBS_DIR", str(tmp_path / "jobs"))
    monkeypatch.setenv("BUZZBENCH_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr(asked, "_planned", {})
    return lambda **arguments: asked.planned(**{"dry_run": True} | arguments)


def write(plan: Plan) -> None:
    """What a run writes first."""
    for job in plan.jobs:
        job.directory.mkdir(parents=True)
        (job.directory / planrecord.FILE_NAME).write_text(json.dumps(planrecord.describe(plan, job)))


def same(first: Plan, second: Plan) -> bool:
    """Whether a job of the one may go on as the other."""
    records = [[planrecord.describe(plan, job) for job in plan.jobs] for plan in (first, second)]
    return not any(planrecord.differences(then, now) for then, now in zip(*records, strict=True))


@pytest.mark.parametrize(
    "options",
    [
        {"rehearsal": True, "attempts": 2},
        {"rehearsal": True, "layer": "workflow", "n_concurrent": 7},
        {"rehearsal": True, "include_task": ["*and*"], "exclude_task": ["*thread*"], "attempts": 1, "max_retries": 2},
        {"rehearsal": True, "script": "wrong-one-worker-does-both", "include_task": ["split-and-merge"], "attempts": 1},
        {"manifest": "manifests/builtin-lead-two-workers.yaml", "environment": "sandbox", "attempts": 1, "n_tasks": 1},
    ],
)
def test_a_job_gives_back_the_input_that_it_began_with(
    planned: Callable[..., Plan], options: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(ROOT)
    plan = planned(path="buzz-dataset", job_name="mine", **options)
    write(plan)
    monkeypatch.chdir(tmp_path)
    for job in plan.jobs:
        for name in (job.name, str(job.directory)):
            again = planned(resume=name)
            assert same(again, plan)
            assert again.jobs[0].n_concurrent == job.n_concurrent
            assert again.jobs[0].directory == job.directory


def test_each_layers_job_of_one_command_goes_on_alone(planned: Callable[..., Plan]) -> None:
    plan = planned(path=DATASET, rehearsal=True, job_name="mine")
    write(plan)
    for job in plan.jobs:
        (again,) = planned(resume=job.name).jobs
        assert (again.name, again.attempts, again.tasks) == (job.name, job.attempts, job.tasks)
        assert asked.goes_on(again) is not None
    assert same(planned(path=DATASET, rehearsal=True, job_name="mine", n_concurrent=2), plan)


def test_only_a_runs_own_options_go_with_resume(planned: Callable[..., Plan]) -> None:
    with pytest.raises(InvalidInput) as caught:
        planned(resume="mine", attempts=3, include_task=["x"], n_concurrent=2, json=True)
    assert {str(problem) for problem in caught.value.problems} == {
        "--attempts: a resumed job goes on with its own input; leave it out",
        "--include-task: a resumed job goes on with its own input; leave it out",
    }


def test_another_number_at_a_time_may_be_given(planned: Callable[..., Plan]) -> None:
    write(planned(path=DATASET, rehearsal=True, attempts=1, job_name="mine"))
    assert planned(resume="mine", n_concurrent=9).jobs[0].n_concurrent == 9
    assert planned(resume="mine").jobs[0].n_concurrent == 4


def test_a_job_that_is_not_there_is_named_with_the_nearest(planned: Callable[..., Plan], tmp_path: Path) -> None:
    write(planned(path=DATASET, rehearsal=True, attempts=1, job_name="lb-team-1"))
    with pytest.raises(InvalidInput, match=r"^--resume lb-taem-1: no such job in .*; did you mean .*lb-team-1"):
        planned(resume="lb-taem-1")
    (tmp_path / "jobs" / "other").mkdir()
    with pytest.raises(InvalidInput, match=r"^--resume other: is no job of Buzzbench: no buzzbench-plan.json"):
        planned(resume="other")


def test_a_damaged_plan_cannot_be_resumed(planned: Callable[..., Plan], tmp_path: Path) -> None:
    plan = planned(path=DATASET, rehearsal=True, attempts=1, job_name="mine")
    write(plan)
    (plan.jobs[0].directory / planrecord.FILE_NAME).write_text("{")
    with pytest.raises(InvalidInput, match=r"buzzbench-plan\.json:1: is damaged .*; restore it, or run under another"):
        planned(resume="mine")


def test_once_planned_a_job_alone_has_its_keys(
    planned: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CANARY", "sk-canary")
    endpoints = tmp_path / "endpoints.json"
    endpoint = {"provider": "anthropic", "api_key_env": "CANARY"}
    endpoints.write_text(json.dumps({"claude-sonnet-4-6": endpoint, "claude-haiku-4-5": endpoint}))
    given = {
        "path": DATASET,
        "manifest": str(ROOT / "manifests" / "builtin-lead-two-workers.yaml"),
        "endpoint_config": str(endpoints),
        "environment": "sandbox",
        "dry_run": False,
    }
    commands.check_bench(**given)
    assert "CANARY" not in os.environ
    plan = planned(**given)
    assert [plan.options.environ[name] for name in plan.key_variables] == ["sk-canary"]
