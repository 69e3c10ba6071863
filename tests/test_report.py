"""What people and programs are told at the end of a job."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench import report
from bench.costs import Spend
from bench.errors import InvalidInput
from bench.outcome import Outcome
from bench.planrecord import JobPlanRecord
from bench.records import JobRecord, TrialRecord


def trial(name: str, outcome: Outcome, **spend: int) -> TrialRecord:
    return TrialRecord(name, "org/alpha", outcome, 2.0, Spend(**spend))


PASSED = Outcome("passed", 1.0, "")
FAILED = Outcome("failed", 0.0, "files: out.txt is right", ("agent_timeout",))
UNSCORED = Outcome("unscored", None, "upstream_refused: 402 from anthropic")


def job(*trials: TrialRecord, rehearsal: str | None = None, planned: int | None = None) -> JobRecord:
    plan = JobPlanRecord("lb-team", rehearsal, "team", "ab" * 32, "embedded", "docker", 1, {})
    return JobRecord(Path("jobs/lb-team"), plan, trials, planned)


def test_both_rates_are_shown_and_unscored_trials_have_their_reason() -> None:
    shown = "\n".join(
        report.render(job(trial("a__1", PASSED), trial("a__2", FAILED), trial("a__3", UNSCORED), planned=3))
    )
    assert "passed 1/2 (50%) of scored trials, 1/3 (33%) with unscored ones as failures" in shown
    assert "a__2: failed [agent_timeout] files: out.txt is right" in shown
    assert "a__3: unscored upstream_refused: 402 from anthropic" in shown


def test_no_scored_trial_is_a_dash_not_zero_percent() -> None:
    """Case 11: 0 of 0 is no rate."""
    assert "passed 0/0 (–) of scored trials" in "\n".join(report.render(job(trial("a__1", UNSCORED), planned=1)))


def test_a_rehearsal_says_so() -> None:
    shown = "\n".join(report.render(job(trial("a__1", PASSED), rehearsal="good", planned=1)))
    assert "rehearsal with the script `good`: no model was asked" in shown


def test_cost_and_tokens_show_when_something_is_unknown() -> None:
    shown = "\n".join(
        report.render(job(trial("a__1", PASSED, input_tokens=1200, cost_usd_micros=3456, unknown_calls=1)))
    )
    assert "1,200+?" in shown
    assert "$0.0035+?" in shown


def test_missing_trials_are_said() -> None:
    assert "2 planned trials left nothing: unscored" in "\n".join(report.render(job(trial("a__1", PASSED), planned=3)))


def test_the_tasks_of_missing_trials_are_named() -> None:
    plan = replace(job().plan, directories={"org/alpha": Path("a"), "org/beta": Path("b")}, attempts=2)
    record = JobRecord(Path("j"), plan, (trial("a__1", PASSED),), 4)
    assert "3 planned trials left nothing: unscored (1 of org/alpha, 2 of org/beta)" in "\n".join(report.render(record))


def test_a_trial_that_nobody_asked_for_is_said_and_not_counted() -> None:
    record = replace(job(trial("a__1", PASSED), planned=1), unplanned=(trial("b__1", FAILED),))
    shown = "\n".join(report.render(record))
    assert "b__1: org/alpha was not selected, so this trial counts for nothing" in shown
    assert "passed 1/1 (100%) of scored trials" in shown


def test_the_budget_is_shown_so_that_two_conditions_can_be_compared() -> None:
    record = job(trial("a__1", PASSED))
    budget = {"timeout_seconds": 900, "usd_micros": 2_500_000, "tokens": None, "calls": 40}
    shown = report.render(replace(record, plan=replace(record.plan, budget=budget)))
    assert "budget of each trial: 900 s, $2.50, any number of tokens, 40 calls" in shown


def test_a_baseline_is_said_to_be_one() -> None:
    record = job(trial("a__1", PASSED))
    shown = report.render(replace(record, plan=replace(record.plan, agent="nop", condition="nop")))
    assert "(Harbor's nop in a team's place; condition nop " in shown[1]


def test_json_has_the_fields_that_programs_rely_on(capsys: pytest.CaptureFixture[str]) -> None:
    report.show([job(trial("a__1", PASSED, cost_usd_micros=5), trial("a__2", UNSCORED), planned=2)], as_json=True)
    shown = json.loads(capsys.readouterr().out)
    (found,) = shown["jobs"]
    assert found["name"] == "lb-team"
    assert found["rehearsal"] is False
    assert found["counts"] == {"passed": 1, "failed": 0, "unscored": 1}
    assert found["cost_usd_micros"] == 5
    assert set(found["trials"][0]) >= {"task", "trial", "outcome", "reason", "labels", "reward", "seconds"}
    assert found["trials"][1]["reward"] is None


def test_warnings_stay_out_of_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    record = JobRecord(Path("j"), job().plan, (), None, ("receipts, line 2: cut off",))
    report.show([record], as_json=True)
    shown = capsys.readouterr()
    json.loads(shown.out)
    assert shown.err == "warning: receipts, line 2: cut off\n"


def test_no_such_job_is_said_with_the_place_to_look(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="--job nope: no such job"):
        report.report(tmp_path, ["nope"], as_json=False)
    with pytest.raises(InvalidInput, match="no jobs here yet; run `inv bench`"):
        report.report(tmp_path, [], as_json=False)
