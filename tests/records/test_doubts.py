"""A job's records are held against each other: no copy counts, and what was lost or changed is said."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bench import report
from bench.records import JOURNAL, PLAN, RECEIPTS, read_job
from bench.records.job import JobRecord
from bench.report import table
from bench.run import resume
from bench.spend.sums import Books
from bench.spend.text import headline, lines
from bench.trial import journal
from tests.run.test_projection import receipt

NAMES = ("hello__a", "hello__b")
CONDITION = "c" * 64


def result(trial: str, reward: float = 1.0, **told: Any) -> dict[str, Any]:
    """A trial of one agent that made two calls of 100 tokens and 123 micro-dollars each."""
    used = {"input_tokens": 20, "cache_read_tokens": 40, "cache_write_tokens": 60, "output_tokens": 80}
    agents = {"orch": {"calls": 2, **used, "cost_usd_micros": 246, "unknown_calls": 0, "refused_calls": 0}}
    ours = {"condition_sha256": CONDITION, "rehearsal": None, "replay": None, "agents": agents} | told
    sums = {"n_input_tokens": 120, "n_cache_tokens": 40, "n_output_tokens": 80, "cost_usd": 0.000246}
    return {
        "task_name": "hello",
        "trial_name": trial,
        "config": {"trials_dir": "/somewhere/jobs/lb-team", "job_id": "1"},
        "agent_result": {**sums, "metadata": {"buzzbench": {**ours, "timings": {"post": 0.1}}}},
        "verifier_result": {"rewards": {"reward": reward}},
    }


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """Two trials, one passed and one failed, whose records agree."""
    directory = tmp_path / "jobs" / "lb-team"
    directory.mkdir(parents=True)
    plan = {"job": "lb-team", "condition": "team", "condition_sha256": CONDITION, "rehearsal": None, "attempts": 2}
    write(directory / PLAN, plan | {"tasks": [{"name": "hello", "directory": "/tasks/hello"}]})
    write(directory / "result.json", {"id": "1"})
    for name, reward in zip(NAMES, (1.0, 0.0), strict=True):
        (directory / name).mkdir()
        write(directory / name / "result.json", result(name, reward))
        now = datetime.now(UTC)
        journal.attempt_started(directory / JOURNAL, trial=name, task="hello", at=now)
        outcome = read_job(directory).trials[-1].outcome
        journal.trial_ended(directory / JOURNAL, trial=name, outcome=outcome, at=now)
    calls = [receipt(f"{name}{number}", name) for name in NAMES for number in (1, 2)]
    (directory / RECEIPTS).write_text("".join(json.dumps(call) + "\n" for call in calls))
    return directory


def write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def rate(job: JobRecord) -> str:
    return next(line for line in table.render(job) if line.startswith("passed "))


def only_doubt(job_dir: Path) -> str:
    """The one thing that report and spend say of the job."""
    record = read_job(job_dir)
    assert record.warnings == record.doubts
    assert Books(job_dir).read().warnings == record.warnings
    (doubt,) = record.doubts
    return doubt


def test_records_that_agree_leave_no_doubt(job: Path) -> None:
    record, spent = read_job(job), Books(job).read()
    assert (record.warnings, record.unsure, spent.warnings) == ((), False, ())
    assert "+?" not in "\n".join([*table.render(record), *lines(spent)])
    assert (spent.ended, spent.total.spend) == (2, record.spend)


def test_a_copied_trial_counts_for_nothing_and_is_said(job: Path) -> None:
    shutil.copytree(job / NAMES[0], job / "stranger__x")
    record = read_job(job)
    assert rate(record).startswith("passed 1/2 (50%) of scored trials, 1/2 (50%) with")
    assert (record.strangers, [trial.trial for trial in record.trials]) == (("stranger__x",), [*NAMES])
    assert "stranger__x" in record.doubts[-1]
    assert Books(job).read().ended == 2
    assert [trial.trial for trial in resume.plan(record).again] == [], "a resume leaves it where it is"


def test_a_copy_in_the_place_of_a_trial_is_unscored(job: Path) -> None:
    """Also one that the journal knows by its name."""
    shutil.rmtree(job / NAMES[1])
    shutil.copytree(job / NAMES[0], job / NAMES[1])
    record = read_job(job)
    assert record.counts == {"passed": 1, "failed": 0, "unscored": 1}
    assert any("its result.json is of hello__a; it counts for nothing" in warning for warning in record.warnings)
    assert Books(job).read().trials[NAMES[1]].state == "unscored"


def test_a_trial_of_another_job_counts_for_nothing(job: Path) -> None:
    change(job / NAMES[0] / "result.json", '/jobs/lb-team", "job_id": "1"', '/jobs/other", "job_id": "2"')
    assert read_job(job).counts == {"passed": 0, "failed": 1, "unscored": 1}


def test_a_copied_and_a_renamed_job_are_read_as_before(job: Path) -> None:
    for name in ("copy", "renamed"):
        shutil.copytree(job, job.with_name(name))
        record = read_job(job.with_name(name))
        assert (record.counts, record.warnings) == ({"passed": 1, "failed": 1, "unscored": 0}, ())


def test_without_a_journal_it_is_said_that_nobody_knows_whose_the_trials_are(job: Path) -> None:
    (job / JOURNAL).unlink()
    assert f"{job / JOURNAL}: has no entry" in only_doubt(job)
    assert Books(job).read().ended == read_job(job).counts["passed"] + read_job(job).counts["failed"]


@pytest.mark.parametrize(
    ("path", "old", "new", "said"),
    [
        (
            f"{NAMES[1]}/result.json",
            '"reward": 0.0',
            '"reward": 1.0',
            "hello__b ended as failed (0), and is passed (1)",
        ),
        (
            f"{NAMES[0]}/result.json",
            '"cost_usd": 0.000246',
            '"cost_usd": 99',
            "cost_usd 99, which its agents' 0.000246",
        ),
        (
            f"{NAMES[0]}/result.json",
            '"calls": 2',
            '"calls": 3',
            "hello__a has 2 calls, 200 tokens, $0.0002 here, 3 calls",
        ),
        (RECEIPTS, '"cost_usd_micros": 123', '"cost_usd_micros": 1', "2 calls, 200 tokens, $0.0000 here, 2 calls, 200"),
        (
            PLAN,
            '"rehearsal": null',
            '"rehearsal": "good"',
            "models of the condition cccccccccccc, the plan says the script",
        ),
    ],
)
def test_whatever_was_changed_contradicts_the_rest(job: Path, path: str, old: str, new: str, said: str) -> None:
    change(job / path, old, new)
    assert said in only_doubt(job)


def test_receipts_that_are_missing_are_no_free_calls(job: Path) -> None:
    (job / RECEIPTS).unlink()
    doubt = only_doubt(job)
    assert doubt.startswith(f"{job / RECEIPTS}: ")
    assert "hello__a has 0 calls, 0 tokens, $0.0000 here, 2 calls, 200 tokens, $0.0002 in its result.json" in doubt
    assert "$0.0000+?" in "\n".join(table.render(read_job(job)))
    assert "0+? tokens  $0.0000+?" in headline(Books(job).read())


def test_a_damaged_receipt_marks_every_sum_that_it_may_be_of(job: Path) -> None:
    good = (job / RECEIPTS).read_text().splitlines()
    (job / RECEIPTS).write_text("\n".join([good[0], "garbage", *good[2:]]) + "\n")
    record, spent = read_job(job), Books(job).read()
    assert [trial.unsure for trial in record.trials] == [True, False], "the other's result.json agrees"
    assert "$0.0004+?" in "\n".join(table.render(record))
    assert "$0.0004+?" in headline(spent)
    assert any("line 2: not a JSON object" in doubt for doubt in record.doubts)
    assert spent.warnings == record.warnings


def test_what_is_no_count_is_unknown_to_report_and_spend_alike(job: Path) -> None:
    text = (job / RECEIPTS).read_text().replace('"output_tokens": 40', '"output_tokens": 1e400', 1)
    (job / RECEIPTS).write_text(text)
    record, spent = read_job(job), Books(job).read()
    assert record.spend == spent.total.spend
    assert (record.spend.calls, record.spend.unknown_calls, record.spend.output_tokens) == (4, 1, 120)


@pytest.mark.parametrize("harm", ["damage", "remove"])
def test_spend_says_of_a_damaged_trial_what_a_report_says(job: Path, harm: str) -> None:
    if harm == "damage":
        (job / NAMES[0] / "result.json").write_text("{")
    else:
        shutil.rmtree(job / NAMES[0])
    record, spent = read_job(job), Books(job).read()
    assert spent.trials[NAMES[0]].state == ("unscored" if harm == "damage" else "gone")
    assert spent.warnings == record.warnings
    assert any(NAMES[0] in warning for warning in record.warnings)


def test_an_empty_plan_tells_nothing_of_who_played(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (job / PLAN).write_text("{}")
    report.report(job.parent, ["lb-team"], as_json=False)
    shown = capsys.readouterr()
    assert "nobody can tell whether models were asked" in shown.out
    assert f"{job / PLAN}: lacks job, condition_sha256, rehearsal, tasks" in shown.err


def test_more_receipts_than_an_attempt_counted_are_no_doubt_where_harbor_tried_it_again(job: Path) -> None:
    """Those of the attempt that was thrown away have the same trial's name."""
    with (job / RECEIPTS).open("a") as file:
        file.write(json.dumps(receipt("more", NAMES[0])) + "\n")
    assert "hello__a has 3 calls" in only_doubt(job)
    journal.attempt_started(job / JOURNAL, trial=NAMES[0], task="hello", at=datetime.now(UTC))
    assert read_job(job).doubts == ()
