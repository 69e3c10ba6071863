"""What the database says of a job is what its directory says, however often and from wherever it is projected."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from bench import schema
from bench.costs import TOKEN_CLASSES
from bench.records import read_job
from bench.run import projection
from bench.spend.sums import Books
from bench.stack import StackAddress
from bench.trial.journal import attempt_started

PLAN = {
    "job": "lb-solo-1",
    "rehearsal": "good",
    "condition": "solo",
    "condition_sha256": "c" * 64,
    "stack": "embedded",
    "environment": "sandbox",
    "attempts": 2,
    "tasks": [{"name": "hello", "directory": "/tasks/hello"}],
}


def receipt(call: str, trial: str = "hello__aaaaaaa", **changed: Any) -> dict[str, Any]:
    return {
        "call_id": call,
        "job": "lb-solo-1",
        "trial": trial,
        "agent": "orch",
        "member": "orch",
        "endpoint": "main",
        "provider": "scripted",
        "model": "scripted-1",
        "dialect": "anthropic",
        "started_at": "2026-11-30T12:00:00.000Z",
        "total_ms": 12.5,
        "first_byte_ms": 3.25,
        "status": 200,
        "outcome": "ok",
        "input_tokens": 10,
        "cache_read_tokens": 20,
        "cache_write_tokens": 30,
        "output_tokens": 40,
        "cost_usd_micros": 123,
        "charged_usd_micros": 123,
        "charged_tokens": 100,
        "prices_sha256": "d" * 64,
        "usage": {"input_tokens": 10, "note": "a\u0000b"},
        "request_sha256": "e" * 64,
        "response_sha256": "f" * 64,
        "reason": None,
        **changed,
    }


def result(trial: str, reward: float) -> dict[str, Any]:
    phase = {"started_at": "2026-11-30T12:00:00Z", "finished_at": "2026-11-30T12:00:02.500000Z"}
    told = {
        "condition": "solo",
        "condition_sha256": "c" * 64,
        "rehearsal": "good",
        "channel": "0b0e8f0e-0000-4000-8000-000000000000",
        "labels": ["late"],
        "fault": None,
        "ended": "done",
        "evidence_sha256": "9" * 64,
        "agents": {},
        "timings": {"provision": 0.05, "post": 0.01},
    }
    return {
        "task_name": "hello",
        "trial_name": trial,
        "agent_result": {"metadata": {"buzzbench": told}},
        "verifier_result": {"rewards": {"reward": reward}},
        "exception_info": None,
        "agent_execution": phase,
        "verifier": None,
        **phase,
    }


@pytest.fixture
def benchmark(database: str) -> str:
    schema.apply(StackAddress("embedded", "", database, "", ""))
    return database


@pytest.fixture
def job(tmp_path: Path) -> Path:
    path = tmp_path / "lb-solo-1"
    path.mkdir()
    (path / "buzzbench-plan.json").write_text(json.dumps(PLAN))
    for name, reward in (("hello__aaaaaaa", 1.0), ("hello__bbbbbbb", 0.0)):
        (path / name).mkdir()
        (path / name / "config.json").write_text("{}")
        (path / name / "result.json").write_text(json.dumps(result(name, reward)))
        attempt_started(path / "buzzbench-journal.jsonl", trial=name, task="hello", at=datetime.now(UTC))
    lines = [receipt("c1"), receipt("c2", output_tokens=None, cost_usd_micros=None, outcome="unknown")]
    (path / "buzzbench-receipts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def rows(dsn: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn) as connection:
        return connection.execute(query.encode()).fetchall()


def everything(dsn: str) -> list[list[tuple[Any, ...]]]:
    tables = ("trial_manifest", "llm_receipts", "spans")
    return [rows(dsn, f"SELECT * FROM benchmark.{table} ORDER BY 1, 2, 3") for table in tables]


def test_trials_receipts_and_spans_say_what_the_records_say(benchmark: str, job: Path) -> None:
    done = projection.project(benchmark, job)
    assert (done.trials, done.receipts, done.warnings) == (2, 2, ())
    assert rows(
        benchmark, "SELECT trial, task, outcome, reward, labels, ended FROM benchmark.trial_manifest ORDER BY 1"
    ) == [
        ("hello__aaaaaaa", "hello", "passed", 1.0, ["late"], "done"),
        ("hello__bbbbbbb", "hello", "failed", 0.0, ["late"], "done"),
    ]
    assert rows(benchmark, "SELECT name, parent, seconds FROM benchmark.spans WHERE trial LIKE '%aaa' ORDER BY 1") == [
        ("agent.post", "agent_execution", 0.01),
        ("agent.provision", "agent_execution", 0.05),
        ("agent_execution", "trial", 2.5),
        ("trial", None, 2.5),
    ]


def test_an_unknown_count_stays_unknown_and_is_counted(benchmark: str, job: Path) -> None:
    projection.project(benchmark, job)
    assert rows(
        benchmark, "SELECT output_tokens, cost_usd_micros FROM benchmark.llm_receipts WHERE call_id = 'c2'"
    ) == [(None, None)]
    assert rows(
        benchmark, "SELECT calls, output_tokens, cost_usd_micros, unknown_calls FROM benchmark.trial_spend"
    ) == [(2, 40, 123, 1)]


def test_calls_are_counted_as_in_a_report_and_refused_ones_apart(benchmark: str, job: Path) -> None:
    """What the gateway refused went to no model: nobody has an unknown cost by it."""
    refused = receipt("c9", outcome="refused", model=None, request_sha256=None, cost_usd_micros=0)
    refused |= dict.fromkeys(TOKEN_CLASSES)
    retry = receipt("c1-1", retry=1)
    with (job / "buzzbench-receipts.jsonl").open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in (refused, retry))
    projection.project(benchmark, job)
    (spend,) = {trial.spend for trial in read_job(job).trials if trial.spend.calls}
    found = rows(benchmark, "SELECT calls, unknown_calls, cost_usd_micros, refused_calls FROM benchmark.trial_spend")
    assert found == [(spend.calls, spend.unknown_calls, spend.cost_usd_micros, 1)]
    assert spend.calls == 3
    assert Books(job).read().total.charged("calls") == 3


def test_a_replay_is_no_real_run_in_the_database_either(benchmark: str, job: Path) -> None:
    digest = "7" * 64
    (job / "buzzbench-plan.json").write_text(json.dumps(PLAN | {"rehearsal": None, "replay": digest}))
    for path in job.glob("*/result.json"):
        path.write_text(path.read_text().replace('"rehearsal": "good"', f'"rehearsal": null, "replay": "{digest}"'))
    played = receipt("c1", provider="replay", cost_usd_micros=0, cassette_sha256=digest)
    (job / "buzzbench-receipts.jsonl").write_text(json.dumps(played) + "\n")
    projection.project(benchmark, job)
    assert rows(benchmark, "SELECT DISTINCT rehearsal, replay FROM benchmark.trial_manifest") == [(None, digest)]
    assert rows(benchmark, "SELECT provider, cassette_sha256 FROM benchmark.llm_receipts") == [("replay", digest)]


def test_a_rehearsal_whose_plan_is_damaged_is_still_one(benchmark: str, job: Path) -> None:
    (job / "buzzbench-plan.json").write_text("{")
    projection.project(benchmark, job)
    assert rows(benchmark, "SELECT DISTINCT rehearsal FROM benchmark.trial_manifest") == [("good",)]


def test_projecting_again_changes_nothing(benchmark: str, job: Path) -> None:
    projection.project(benchmark, job)
    first = everything(benchmark)
    projection.project(benchmark, job)
    assert everything(benchmark) == first


def test_a_lost_database_is_filled_again(benchmark: str, job: Path) -> None:
    projection.project(benchmark, job)
    first = everything(benchmark)
    with psycopg.connect(benchmark) as connection:
        connection.execute("DROP SCHEMA benchmark CASCADE")
    schema.apply(StackAddress("embedded", "", benchmark, "", ""))
    projection.project(benchmark, job)
    assert everything(benchmark) == first


def test_what_left_the_records_leaves_the_database_and_other_jobs_stay(benchmark: str, job: Path) -> None:
    other = Path(shutil.copytree(job, job.parent / "lb-solo-2"))
    (other / "buzzbench-plan.json").write_text(json.dumps({**PLAN, "job": "lb-solo-2"}))
    (other / "buzzbench-receipts.jsonl").write_text(json.dumps(receipt("c9")) + "\n")
    projection.project(benchmark, job)
    projection.project(benchmark, other)
    shutil.rmtree(job / "hello__bbbbbbb")
    projection.project(benchmark, job)
    assert rows(benchmark, "SELECT job, count(*) FROM benchmark.trial_manifest GROUP BY 1 ORDER BY 1") == [
        ("lb-solo-1", 1),
        ("lb-solo-2", 2),
    ]
    assert rows(benchmark, "SELECT job, count(*) FROM benchmark.llm_receipts GROUP BY 1 ORDER BY 1") == [
        ("lb-solo-1", 2),
        ("lb-solo-2", 1),
    ]


def test_a_copied_job_has_rows_of_its_own(benchmark: str, job: Path) -> None:
    copy = job.with_name("copy")
    shutil.copytree(job, copy)
    with (copy / "buzzbench-receipts.jsonl").open("a") as file:
        file.write(json.dumps(receipt("c3", trial="hello__ccccccc")) + "\n")
    projection.project(benchmark, job)
    projection.project(benchmark, copy)
    counted = rows(benchmark, "SELECT job, count(*) FROM benchmark.llm_receipts GROUP BY job ORDER BY job")
    assert counted == [("copy", 3), ("lb-solo-1", 2)]
    assert rows(benchmark, "SELECT count(*) FROM benchmark.trial_manifest") == [(4,)]


def test_a_count_that_is_none_is_unknown(benchmark: str, job: Path) -> None:
    path = job / "buzzbench-receipts.jsonl"
    path.write_text(path.read_text().replace('"output_tokens": 40', '"output_tokens": 1e400'))
    projection.project(benchmark, job)
    assert rows(benchmark, "SELECT output_tokens FROM benchmark.llm_receipts") == [(None,), (None,)]


def test_a_line_cut_off_by_a_crash_is_named_and_the_rest_is_projected(benchmark: str, job: Path) -> None:
    journal = job / "buzzbench-receipts.jsonl"
    with journal.open("a") as file:
        file.write(json.dumps(receipt("c3"))[:70])
    done = projection.project(benchmark, job)
    assert done.receipts == 2
    assert done.warnings == (f"{journal}, line 3: not a JSON object (cut off?), passed over",)


def test_a_call_that_was_refused_unread_has_its_row_too(benchmark: str, job: Path) -> None:
    late = receipt("c1", outcome="refused", status=401, model=None, request_sha256=None)
    odd = receipt("c2", outcome="refused", status=403, model="m\0")
    (job / "buzzbench-receipts.jsonl").write_text(json.dumps(late) + "\n" + json.dumps(odd) + "\n")
    assert projection.project(benchmark, job).warnings == ()
    assert rows(benchmark, "SELECT status, model FROM benchmark.llm_receipts ORDER BY 1") == [
        (401, None),
        (403, "m\N{REPLACEMENT CHARACTER}"),
    ]


def test_each_attempt_says_which_it_is_what_it_waited_for_and_who_answered(benchmark: str, job: Path) -> None:
    again = receipt("c1", retry=0, again=True, queue_ms=1.5, streamed=False)
    last = receipt("c1-1", retry=1, again=False, queue_ms=2000.0, streamed=True, tool_calls=2)
    last |= {"served_model": "m-2026", "served_provider": "Azure"}
    (job / "buzzbench-receipts.jsonl").write_text(json.dumps(again) + "\n" + json.dumps(last) + "\n")
    projection.project(benchmark, job)
    columns = "retry, again, queue_ms, streamed, tool_calls, served_model, served_provider"
    assert rows(benchmark, f"SELECT {columns} FROM benchmark.llm_receipts ORDER BY retry") == [
        (0, True, 1.5, False, None, None, None),
        (1, False, 2000.0, True, 2, "m-2026", "Azure"),
    ]


def test_a_receipt_that_lacks_a_field_is_named(benchmark: str, job: Path) -> None:
    journal = job / "buzzbench-receipts.jsonl"
    journal.write_text(json.dumps(receipt("c4", endpoint=None)) + "\n" + json.dumps(receipt("c5")) + "\n")
    done = projection.project(benchmark, job)
    assert done.receipts == 1
    assert done.warnings == (f"{journal}: receipt c4 lacks endpoint, passed over",)
