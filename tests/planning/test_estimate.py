"""One line before it runs: how many of how many tasks, how often, and how long at most."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from bench.planning.estimate import summary, wall_s
from tests.planning.kit import Project, project

STEPS = {"one": 40, "two": 60}


@pytest.fixture
def home(tmp_path: Path) -> Project:
    made = project(tmp_path)
    made.task("quick", more="[agent]\ntimeout_sec = 60\n")
    made.task("long", more="[agent]\ntimeout_sec = 600\n")
    made.task("flow", "workflow")
    return made


def said(home: Project, **changes: Any) -> str:
    return summary(home.plan(**changes))


def test_tasks_attempts_trials_and_time_are_said(home: Project) -> None:
    assert said(home, include=("quick",), attempts="1") == (
        "1 of 3 tasks, 1 attempt each: 1 trial, at most about 60 s (4 at a time)"
    )


def test_each_layer_has_its_own_attempts(home: Project) -> None:
    assert said(home).startswith("3 of 3 tasks, 1 attempt each (regression), 3 attempts each (workflow): 5 trials, ")


def test_the_longest_schedule_is_bounded_by_rounds_and_by_slots(home: Project) -> None:
    # The shipped rehearsal gives 300 s to a trial; 8 s come on top for wind-down and evidence.
    one = home.plan(include=("quick", "long"), attempts="1", n_concurrent="1")
    assert wall_s(one) == 60 + 308
    both = home.plan(include=("quick", "long"), attempts="1", n_concurrent="2")
    assert wall_s(both) == 308
    many = home.plan(include=("long",), attempts="10", n_concurrent="4")
    assert wall_s(many) == 3 * 308


def test_the_steps_of_a_task_take_their_time_one_after_the_other(home: Project) -> None:
    steps = "".join(f'[[steps]]\nname = "{name}"\n[steps.agent]\ntimeout_sec = {t}\n' for name, t in STEPS.items())
    task = home.task("steps", more=steps)
    for name in STEPS:
        (task / "steps" / name).mkdir(parents=True)
        (task / "steps" / name / "instruction.md").write_text(name)
    assert wall_s(home.plan(include=("steps",), attempts="1")) == 40 + 60
    # The manifest's 300 s are for all steps together.
    (task / "task.toml").write_text((task / "task.toml").read_text().replace("= 60", "= 600"))
    assert wall_s(home.plan(include=("steps",), attempts="1")) == 300 + 2 * 8


def test_a_task_without_a_limit_has_none_with_a_baseline(home: Project) -> None:
    plan = home.plan(rehearsal=False, agent="nop", environment="sandbox")
    assert math.isinf(wall_s(plan))
    assert "no limit to their time (4 at a time)" in summary(plan)


def test_of_a_registry_dataset_the_number_of_tasks_is_harbors_to_say(home: Project) -> None:
    given: dict[str, Any] = {"path": None, "dataset": "org/set", "rehearsal": False}
    assert said(home, **given) == "tasks of org/set, 5 attempts each, at most 16 min a trial"
    assert said(home, **given, n_tasks="3").startswith("at most 3 tasks of org/set, ")
