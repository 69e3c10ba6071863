"""`inv report`: which jobs, and what programs are told of them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bench import report
from bench.costs import Spend
from bench.errors import InvalidInput
from bench.records import PLAN
from bench.records.claim import claimed
from bench.records.job import JobRecord, Replaced
from bench.report import tasktable
from bench.scoring.stepoutcomes import StepOutcome
from bench.trial.journal import FILE_NAME, JobStopped, attempt_started
from tests.records.kit import FAILED, PASSED, UNSCORED, job, trial

RESULT = json.dumps(
    {"task_name": "org/a", "agent_execution": {"started_at": "x"}, "verifier_result": {"rewards": {"reward": 1}}}
)


def test_json_has_the_fields_that_programs_rely_on(capsys: pytest.CaptureFixture[str]) -> None:
    report.show([job(trial("a__1", PASSED, cost_usd_micros=5), trial("a__2", UNSCORED), planned=2)], as_json=True)
    shown = json.loads(capsys.readouterr().out)
    (found,) = shown["jobs"]
    assert found["name"] == "lb-team"
    assert found["rehearsal"] is False
    assert found["trust_domain"] is None
    assert found["counts"] == {"passed": 1, "failed": 0, "unscored": 1}
    assert found["cost_usd_micros"] == 5
    assert set(found["trials"][0]) >= {"task", "trial", "outcome", "reason", "labels", "reward", "seconds"}
    assert found["trials"][1]["reward"] is None
    assert shown["merged"] == []


def test_of_a_job_that_runs_the_report_says_that_it_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "buzzbench-plan.json").write_text("{}")
    said = "running: these are its figures so far, with trials under way as unscored ones"
    with claimed(tmp_path / "one"):
        report.report(tmp_path, ["one"], as_json=False)
        assert said in capsys.readouterr().out.splitlines()
        report.report(tmp_path, ["one"], as_json=True)
        assert json.loads(capsys.readouterr().out)["jobs"][0]["running"] is True
    report.report(tmp_path, ["one"], as_json=False)
    assert said not in capsys.readouterr().out.splitlines()


def test_json_has_each_steps_verdict_time_and_spend(capsys: pytest.CaptureFixture[str]) -> None:
    draft = StepOutcome("draft", PASSED, 1.5, Spend(calls=2, output_tokens=7, cost_usd_micros=3))
    stepped = replace(trial("a__1", PASSED, seconds=4.0, calls=2, cost_usd_micros=3), steps=(draft,))
    report.show([job(stepped, trial("a__2", FAILED, seconds=8.0, cost_usd_micros=4))], as_json=True)
    (found,) = json.loads(capsys.readouterr().out)["jobs"]
    assert (found["calls"], found["median_seconds"], found["cost_per_pass_usd_micros"]) == (2, 6.0, 7)
    (step,) = found["trials"][0]["steps"]
    assert (step["name"], step["outcome"], step["reward"], step["seconds"]) == ("draft", "passed", 1.0, 1.5)
    assert (step["calls"], step["tokens"]["output"], step["cost_usd_micros"]) == (2, 7, 3)


def test_what_the_columns_mean_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    stopped = replace(job(trial("b__1", PASSED)), stop=JobStopped("waiting", "until 18:40", ""))
    report.show([job(trial("a__1", PASSED)), stopped], as_json=False)
    shown = capsys.readouterr().out.splitlines()
    assert shown.count(tasktable.LEGEND[0]) == 1
    assert shown[-1].startswith("waiting: until 18:40"), "why a job stopped stays the last line"


def test_json_counts_what_replaced_attempts_cost(capsys: pytest.CaptureFixture[str]) -> None:
    gone = Replaced("a__0", "org/alpha", "unfinished", Spend(calls=1, cost_usd_micros=7))
    stopped = JobStopped("waiting", "until 18:40", "")
    record = replace(job(trial("a__1", PASSED, cost_usd_micros=5), planned=1), replaced=(gone,), stop=stopped)
    report.show([record], as_json=True)
    (found,) = json.loads(capsys.readouterr().out)["jobs"]
    assert found["cost_usd_micros"] == 12
    assert [(r["trial"], r["reason"], r["cost_usd_micros"]) for r in found["replaced"]] == [("a__0", "unfinished", 7)]
    assert found["stopped"] == {"kind": "waiting", "reason": "until 18:40"}


def test_several_directories_are_shown_together_and_a_malformed_trial_is_one_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Case 57: overlapping tasks, one truncated result."""
    for name, results in (("first", {"a__1": RESULT, "a__2": '{"task_na'}), ("second", {"a__3": RESULT})):
        for trial_name, content in results.items():
            (tmp_path / name / trial_name).mkdir(parents=True)
            (tmp_path / name / trial_name / "result.json").write_text(content)
            attempt_started(tmp_path / name / FILE_NAME, trial=trial_name, task="org/a", at=datetime.now(UTC))
        plan = {"job": name, "condition_sha256": "ab", "attempts": 2, "tasks": [{"name": "org/a", "directory": "/a"}]}
        plan["rehearsal"] = None
        (tmp_path / name / "buzzbench-plan.json").write_text(json.dumps(plan))
    report.report(tmp_path, ["first", "second", "first"], as_json=True)
    shown = capsys.readouterr()
    (together,) = json.loads(shown.out)["merged"]
    assert together["counts"] == {"passed": 2, "failed": 0, "unscored": 1}
    assert shown.err.count("warning:") == 1
    assert "first/a__2/result.json: not a JSON object" in shown.err


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


def test_a_job_that_there_isnt_is_told_with_the_nearest_that_there_are(tmp_path: Path) -> None:
    for name in ("recorded", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / PLAN).write_text("{}")
    with pytest.raises(InvalidInput, match=r"^--job rec: no such job; the nearest are recorded$"):
        report.directories_of(tmp_path, ["rec"])
