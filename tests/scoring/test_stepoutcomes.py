"""What a trial in steps is worth: each step by itself, then all together as Harbor combines them."""

from __future__ import annotations

from typing import Any

import pytest

from bench.scoring.outcome import Facts, Outcome, classify, facts_from
from bench.scoring.stepoutcomes import StepOutcome, combined, set_up_later, step_parts, told

PASSED = Outcome("passed", 1.0, "")
FAILED = Outcome("failed", 0.0, "files: out.txt")
HALF = Outcome("failed", 0.5, "reward 0.5")
NO_SCORE = Outcome("unscored", None, "relay_gone: …", ("relay_restarted",))


def result(*names: str, strategy: str = "mean", of: int | None = None) -> dict[str, Any]:
    """A parsed result.json with such steps, as our own agent marks them."""

    def part(number: int) -> dict[str, Any]:
        step = {"name": names[number], "number": number + 1, "of": of or len(names), "strategy": strategy}
        return {"agent_result": {"metadata": {"buzzbench": {"step": step, "timings": {"post": 0.1}}}}}

    return {"step_results": [{"step_name": name, **part(number)} for number, name in enumerate(names)]}


def decide(given: dict[str, Any], *outcomes: Outcome, own: Facts | None = None) -> Outcome:
    names = [name for name, _ in step_parts(given)]
    steps = [StepOutcome(name, outcome) for name, outcome in zip(names, outcomes, strict=True)]
    return combined(given, own or Facts(), steps)


@pytest.mark.parametrize(
    ("strategy", "outcomes", "outcome", "reward", "reason"),
    [
        ("mean", (PASSED, PASSED), "passed", 1.0, ""),
        ("mean", (PASSED, FAILED), "failed", 0.5, "step b: files: out.txt"),
        ("mean", (HALF, PASSED), "failed", 0.75, "step a: reward 0.5"),
        ("final", (FAILED, PASSED), "passed", 1.0, ""),
        ("final", (PASSED, HALF), "failed", 0.5, "step b: reward 0.5"),
        ("final", (PASSED, FAILED), "failed", 0.0, "step b: files: out.txt"),
    ],
)
def test_the_steps_rewards_are_combined_as_the_task_says(
    strategy: str, outcomes: tuple[Outcome, ...], outcome: str, reward: float, reason: str
) -> None:
    decided = decide(result("a", "b", strategy=strategy), *outcomes)
    assert (decided.outcome, decided.reward, decided.reason) == (outcome, reward, reason)


def test_a_trial_that_ended_before_its_last_step_has_not_passed() -> None:
    decided = decide(result("a", of=3), PASSED)
    assert decided == Outcome("failed", 1.0, "it ended with step a, 2 before the last")
    decided = decide(result("a", of=2), FAILED)
    assert decided.reason == "step a: files: out.txt; it ended with step a, 1 before the last"


def test_a_step_without_a_score_leaves_the_trial_without_one() -> None:
    decided = decide(result("a", "b"), PASSED, NO_SCORE)
    assert decided == Outcome("unscored", None, "step b: relay_gone: …", ("relay_restarted",))


def test_a_cause_proved_for_the_whole_trial_comes_first() -> None:
    own = facts_from({"exception_info": {"exception_type": "CancelledError"}})
    assert decide(result("a"), PASSED, own=own) == Outcome("unscored", None, "cut off: cancelled")


def test_the_labels_of_all_steps_are_the_trials() -> None:
    late, silent = Outcome("passed", 1.0, "", ("agent_timeout",)), Outcome("passed", 1.0, "", ("silent_turns",))
    assert decide(result("a", "b"), late, silent).labels == ("agent_timeout", "silent_turns")


def test_of_an_agent_that_is_not_ours_harbors_usual_mean_is_taken() -> None:
    given = {"step_results": [{"step_name": "a"}, {"step_name": "b"}]}
    assert decide(given, PASSED, FAILED).reward == 0.5


def test_a_step_that_cannot_begin_is_no_excuse_for_a_team_that_was_at_work_before() -> None:
    sick = {"exception_type": "HealthcheckError", "exception_message": "the service is down"}
    facts = facts_from({"step_name": "b", "exception_info": sick})
    assert classify(facts).outcome == "unscored"
    later = classify(set_up_later(facts))
    assert (later.outcome, later.reward, later.labels) == ("failed", 0.0, ("no_reward",))
    assert later.reason == "no reward: HealthcheckError: the service is down"


@pytest.mark.parametrize("reward", [1.0, 0.0])
def test_a_later_step_that_was_never_handed_to_the_team_has_no_score_whatever_its_verifier_says(reward: float) -> None:
    broken = {"exception_type": "UnicodeDecodeError", "exception_message": "'utf-8' codec can't decode byte 0xff"}
    part = {"exception_info": broken, "verifier_result": {"rewards": {"reward": reward}}}
    later = classify(set_up_later(facts_from(part)))
    reason = "never played: UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff"
    assert later == Outcome("unscored", None, reason)
    assert decide(result("a", "b", strategy="final"), PASSED, later).outcome == "unscored"
    played = part | {"agent_execution": {"started_at": "2026-01-31T23:59:59Z"}}
    assert classify(set_up_later(facts_from(played))).reward == reward


def test_a_fault_of_ours_in_a_later_step_still_leaves_it_without_a_score() -> None:
    told = {"fault": {"kind": "relay_gone", "reason": "…"}, "timings": {"post": 0.1}}
    gone = {"exception_type": "HealthcheckError", "exception_message": "relay_gone: …"}
    facts = facts_from({"exception_info": gone, "agent_result": {"metadata": {"buzzbench": told}}})
    assert classify(set_up_later(facts)) == Outcome("unscored", None, "relay_gone: …")


@pytest.mark.parametrize("listed", [None, "x", 3, [], [None, 3]])
def test_what_is_no_list_of_steps_is_none(listed: Any) -> None:
    assert step_parts({"step_results": listed}) == []


@pytest.mark.parametrize("part", [{"agent_result": 3}, {"agent_result": {"metadata": []}}, {"step_results": [{}, 3]}])
def test_what_is_damaged_tells_nothing(part: dict[str, Any]) -> None:
    assert told(part) == []
    assert decide({"step_results": [part | {"step_name": "a"}]}, PASSED).outcome == "passed"
