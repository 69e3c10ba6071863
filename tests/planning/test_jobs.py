"""The jobs of a plan: how tasks are grouped, how often each is tried, what the jobs are called."""

from __future__ import annotations

from typing import Any

import pytest

from bench.planning.planned import Plan
from tests.planning.kit import NOW, Project


def jobs(plan: Plan) -> list[tuple[str, int, list[str]]]:
    return [(job.name, job.attempts, [task.directory.name for task in job.tasks]) for job in plan.jobs]


def test_both_layers_make_two_jobs_regression_first_with_one_time_stamp(both: Project) -> None:
    assert jobs(both.plan()) == [
        ("lb-rehearsal-20260131T235959Z-regression", 1, ["a", "b"]),
        ("lb-rehearsal-20260131T235959Z-workflow", 3, ["flow"]),
    ]
    assert [job.layer for job in both.plan().jobs] == ["regression", "workflow"]


def test_a_number_of_attempts_makes_one_job(both: Project) -> None:
    assert jobs(both.plan(attempts="2")) == [("lb-rehearsal-20260131T235959Z", 2, ["a", "b", "flow"])]


@pytest.mark.parametrize(("include", "attempts"), [("flow", 3), ("a", 1)])
def test_one_layer_makes_one_job_with_that_layers_attempts(both: Project, include: str, attempts: int) -> None:
    assert jobs(both.plan(include=(include,))) == [("lb-rehearsal-20260131T235959Z", attempts, [include])]


def test_a_layer_can_be_chosen(both: Project) -> None:
    assert jobs(both.plan(layer="workflow", job_name="mine")) == [("mine", 3, ["flow"])]


def test_a_given_name_gets_the_layers_as_suffixes(both: Project) -> None:
    assert [job.name for job in both.plan(job_name="mine").jobs] == ["mine-regression", "mine-workflow"]


def test_outside_the_buzz_dataset_there_are_five_attempts(home: Project) -> None:
    home.task("x", None, folder="other")
    (job,) = home.plan(path=home.root / "other").jobs
    assert (job.attempts, job.layer, job.trials) == (5, None, 5)


def test_without_a_path_the_registry_dataset_is_the_default(home: Project) -> None:
    plan = home.plan(path=None, rehearsal=False)
    (job,) = plan.jobs
    assert (job.dataset, job.attempts, job.trials, plan.n_tasks) == (
        "terminal-bench/terminal-bench-2-1",
        5,
        None,
        None,
    )


def test_globs_for_a_hub_dataset_become_what_harbor_matches(home: Project) -> None:
    globs: dict[str, Any] = {"include": ("cobol*", "other/x"), "exclude": ("y",)}
    (hub,) = home.plan(path=None, rehearsal=False, dataset="org/set", **globs).jobs
    assert (hub.include, hub.exclude) == (("*/cobol*", "other/x"), ("*/y",))
    (bare,) = home.plan(path=None, rehearsal=False, dataset="set@2.0", **globs).jobs
    assert (bare.include, bare.exclude) == (("cobol*", "other/x"), ("y",))


def test_globs_of_local_tasks_are_resolved_here(both: Project) -> None:
    plan = both.plan(include=("*",), exclude=("b", "buzz/f*"))
    (job,) = plan.jobs
    assert (job.include, job.exclude, plan.n_tasks) == ((), (), 3)
    assert [task.directory.name for task in job.tasks] == ["a"]


def test_two_jobs_of_one_second_get_two_names(both: Project) -> None:
    (both.root / "jobs/lb-rehearsal-20260131T235959Z-workflow").mkdir(parents=True)
    assert [job.name for job in both.plan().jobs] == [
        "lb-rehearsal-20260131T235959Z-2-regression",
        "lb-rehearsal-20260131T235959Z-2-workflow",
    ]


def test_a_conditions_name_makes_a_good_job_name(both: Project) -> None:
    team = both.manifest(both.team(condition="lead & two workers"))
    assert both.plan(manifest=team, attempts=1).jobs[0].name == "lb-lead-two-workers-20260131T235959Z"


def test_the_time_stamp_is_utc(both: Project) -> None:
    from datetime import timedelta, timezone

    local = NOW.astimezone(timezone(timedelta(hours=9)))
    assert both.plan(now=local).jobs[0].name == both.plan().jobs[0].name
