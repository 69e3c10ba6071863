"""What we rely on in Harbor 0.26 of tasks in steps: its rules that `bench/planning/tasksteps.py` says before a run."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from harbor.models.task.config import MultiStepRewardStrategy, StepConfig, TaskConfig
from harbor.trial.multi_step import MultiStepTrial

from bench.planning import tasksteps


def test_a_step_has_these_fields_and_no_others() -> None:
    assert tuple(StepConfig.model_fields) == tasksteps.FIELDS


def test_these_are_all_strategies() -> None:
    assert tuple(strategy.value for strategy in MultiStepRewardStrategy) == tasksteps.STRATEGIES


def test_a_tasks_own_verifier_timeout_is_never_its_steps() -> None:
    task = TaskConfig.model_validate({"verifier": {"timeout_sec": 7}, "steps": [{"name": "a"}]})
    assert task.steps
    trial = SimpleNamespace(
        task=SimpleNamespace(config=task),
        config=SimpleNamespace(
            verifier=SimpleNamespace(override_timeout_sec=None, max_timeout_sec=None), verifier_timeout_multiplier=1.0
        ),
    )
    trial._resolve_timeout_sec = lambda **given: MultiStepTrial._resolve_timeout_sec(trial, **given)
    assert MultiStepTrial._step_verifier_timeout_sec(trial, task.steps[0]) == tasksteps.VERIFIER_S


@pytest.mark.parametrize("names", [["a", "a"], ["a", "A"], ["\u00e9", "e\u0301"]])
def test_harbor_refuses_names_that_some_file_system_takes_for_one(names: list[str]) -> None:
    with pytest.raises(ValueError, match="unique"):
        TaskConfig.model_validate({"steps": [{"name": name} for name in names]})


@pytest.mark.parametrize("name", ["draft", "step-1", "Under_score"])
def test_a_plain_name_is_one_of_harbors(name: str) -> None:
    assert tasksteps.PLAIN_NAME.fullmatch(name)
    assert StepConfig(name=name).name == name
