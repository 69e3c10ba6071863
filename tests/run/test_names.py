"""A name that a plan chose is for one run alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.errors import BuzzbenchError
from bench.run.names import reserved
from tests.planning.kit import project


def test_two_runs_of_the_same_second_get_two_directories(tmp_path: Path) -> None:
    """Case 56: the clock is frozen, and both plans were made before either began."""
    home = project(tmp_path)
    home.task("alpha")
    home.task("beta", "workflow")
    plans = [home.plan(), home.plan()]
    first, second = (reserved(plan) for plan in plans)
    assert [job.name for job in first.jobs] == [
        "lb-rehearsal-20260131T235959Z-regression",
        "lb-rehearsal-20260131T235959Z-workflow",
    ]
    assert [job.name for job in second.jobs] == [
        "lb-rehearsal-20260131T235959Z-2-regression",
        "lb-rehearsal-20260131T235959Z-2-workflow",
    ]
    assert all(job.directory.is_dir() for plan in (first, second) for job in plan.jobs)


def test_a_name_that_was_given_stays(tmp_path: Path) -> None:
    home = project(tmp_path)
    home.task("alpha")
    plan = home.plan(job_name="mine")
    assert reserved(plan) is plan
    assert reserved(plan) is plan


def test_a_place_where_nothing_can_be_made_is_said(tmp_path: Path) -> None:
    home = project(tmp_path)
    home.task("alpha")
    plan = home.plan()
    (tmp_path / "jobs").write_text("a file in the way")
    with pytest.raises(BuzzbenchError, match=r"can't be made: Not a directory"):
        reserved(plan)


@pytest.mark.parametrize("name", [None, "mine"])
def test_a_link_to_nowhere_in_place_of_the_jobs_directory_is_said(tmp_path: Path, name: str | None) -> None:
    home = project(tmp_path)
    home.task("alpha")
    plan = home.plan(job_name=name)
    (tmp_path / "jobs").symlink_to("nowhere")
    with pytest.raises(BuzzbenchError, match=r"can't be made: File exists"):
        reserved(plan)


def test_a_link_to_nowhere_of_the_jobs_name_is_said(tmp_path: Path) -> None:
    home = project(tmp_path)
    home.task("alpha")
    plan = home.plan(job_name="mine")
    (tmp_path / "jobs").mkdir()
    plan.jobs[0].directory.symlink_to("nowhere")
    with pytest.raises(BuzzbenchError, match=r"can't be made: File exists"):
        reserved(plan)


def test_a_plan_chooses_no_name_that_a_link_to_nowhere_has(tmp_path: Path) -> None:
    home = project(tmp_path)
    home.task("alpha")
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / home.plan().jobs[0].name).symlink_to("nowhere")
    assert reserved(home.plan()).jobs[0].name == "lb-rehearsal-20260131T235959Z-2"
