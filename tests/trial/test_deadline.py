"""How long a team may work, with a clock that the test moves."""

from __future__ import annotations

import math

import pytest

from bench.errors import InvalidInput
from bench.trial.deadline import EVIDENCE_S, WIND_DOWN_S, Deadline, task_timeout_s, work_limit


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_work_is_the_shorter_of_the_manifests_time_and_what_the_task_leaves() -> None:
    assert work_limit(trial_budget_s=900, task_timeout_s=3600).work_s == 900
    assert work_limit(trial_budget_s=900, task_timeout_s=600).work_s == 600 - WIND_DOWN_S - EVIDENCE_S
    assert work_limit(trial_budget_s=900, task_timeout_s=None).work_s == 900
    assert math.isinf(work_limit(trial_budget_s=None, task_timeout_s=None).work_s)


def test_a_task_that_leaves_no_time_for_work_is_an_error_with_both_numbers() -> None:
    with pytest.raises(InvalidInput, match=r"agent timeout is 8 s, .* need 8 s, trial_budget.timeout_seconds is 900 s"):
        work_limit(trial_budget_s=900, task_timeout_s=WIND_DOWN_S + EVIDENCE_S)


def test_a_deadline_passes_when_its_time_is_over_and_says_whose_limit_it_was() -> None:
    clock = Clock()
    deadline = Deadline.start(work_limit(trial_budget_s=30, task_timeout_s=600), clock(), clock)
    clock.now_s += 29.5
    assert (deadline.passed, deadline.left_s) == (False, 0.5)
    clock.now_s += 0.6
    assert (deadline.passed, deadline.left_s) == (True, 0.0)
    assert deadline.reason() == (
        "the team's time is over after 30.1 s: it had 30 s of work "
        "(trial_budget.timeout_seconds 30 s in the manifest; task's agent timeout 600 s)"
    )


def test_a_slow_set_up_costs_the_task_its_time_but_not_the_team_its_budget() -> None:
    clock = Clock()
    began = clock()
    clock.now_s += 10
    assert Deadline.start(work_limit(trial_budget_s=30, task_timeout_s=600), began, clock).left_s == 30
    assert Deadline.start(work_limit(trial_budget_s=900, task_timeout_s=60), began, clock).left_s == 60 - 8 - 10


def test_the_tasks_limit_is_named_where_it_is_the_shorter() -> None:
    assert str(work_limit(trial_budget_s=900, task_timeout_s=60)) == (
        "52 s of work (task's agent timeout 60 s less 8 s for wind-down and evidence; "
        "trial_budget.timeout_seconds 900 s in the manifest)"
    )


@pytest.mark.parametrize(
    ("config", "task", "expected_s"),
    [
        ({}, {"agent": {"timeout_sec": 60}}, 60),
        ({}, {}, None),
        ({"agent": {"override_timeout_sec": 30}}, {"agent": {"timeout_sec": 60}}, 30),
        ({"agent": {"max_timeout_sec": 40}}, {"agent": {"timeout_sec": 60}}, 40),
        ({"timeout_multiplier": 2.0}, {"agent": {"timeout_sec": 60}}, 120),
        ({"timeout_multiplier": 2.0, "agent_timeout_multiplier": 0.5}, {"agent": {"timeout_sec": 60}}, 30),
    ],
)
def test_harbors_agent_timeout_is_computed_as_harbor_does(
    config: dict[str, object], task: dict[str, object], expected_s: float | None
) -> None:
    assert task_timeout_s(config, task) == expected_s
