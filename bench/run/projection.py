"""A job's records in PostgreSQL's `benchmark` schema, for queries.

The job directory is the truth (DESIGN, "records"): projecting it again changes nothing, and a lost database is filled
again from the directories.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from bench.costs import TOKEN_CLASSES, calls_of, number
from bench.records import RECEIPTS, read_job
from bench.records.job import JobRecord, TrialRecord
from bench.scoring.stepoutcomes import step_parts, told

PHASES = ("environment_setup", "agent_setup", "agent_execution", "verifier")
"""Harbor's, in result.json, each with `started_at` and `finished_at` (HARBOR.md section 7.3)."""
NOT_NULL = (
    *("call_id", "trial", "agent", "member", "endpoint", "provider", "dialect", "started_at", "total_ms"),
    *("status", "outcome", "prices_sha256"),
)
NULLABLE = (
    *("model", "request_sha256", "response_sha256", "first_byte_ms", "queue_ms", "retry", "again", "streamed"),
    *("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens", "tool_calls", "reason"),
    *("cost_usd_micros", "charged_usd_micros", "charged_tokens", "cassette_sha256", "served_model", "served_provider"),
    "step",
)
COUNTS = (*TOKEN_CLASSES, "cost_usd_micros", "charged_usd_micros", "charged_tokens")
"""What isn't a whole number here is unknown, as it is in a report."""

type Row = Mapping[str, Any]


@dataclass(frozen=True)
class Projected:
    """How many rows a job has now, and what of its files could not be read."""

    trials: int
    receipts: int
    spans: int
    warnings: tuple[str, ...]


def project(dsn: str, job_dir: Path) -> Projected:
    """Make the database's rows of this job say what its directory says, in one transaction.

    Raises psycopg.Error; the schema must be there (`bench.schema`). A line that can't be read (the last one,
    cut off by a crash) is passed over and named in `warnings`.
    """
    record = read_job(job_dir)
    # A copied job has rows of its own, beside those of the job that it is a copy of.
    job = job_dir.name
    warnings = list(record.warnings)
    receipts = _receipts(job, job_dir / RECEIPTS, warnings)
    trials, spans = [], []
    for trial in record.trials:
        result = _result(job_dir / trial.trial / "result.json")
        trials.append(_trial(job, record, trial, result))
        spans += _spans(job, trial.trial, result)
    with psycopg.connect(dsn) as connection:
        lock = int.from_bytes(hashlib.sha256(job.encode()).digest()[:8], signed=True)
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [lock])
        _replace(connection, job, "trial_manifest", ("job", "trial"), trials)
        _replace(connection, job, "llm_receipts", ("job", "call_id"), receipts)
        _replace(connection, job, "spans", ("job", "trial", "name"), spans)
    # Both readings of the journal name its bad lines.
    return Projected(len(trials), len(receipts), len(spans), tuple(dict.fromkeys(warnings)))


def _replace(connection: psycopg.Connection, job: str, table: str, keys: Sequence[str], rows: list[Row]) -> None:
    """Upsert the rows and drop the job's others, such as those of attempts that a resume replaced."""
    name = sql.Identifier("benchmark", table)
    row_keys = [json.dumps([row[key] for key in keys]) for row in rows]
    stale = sql.SQL("DELETE FROM {} WHERE job = %s AND NOT jsonb_build_array({}) = ANY (%s::jsonb[])")
    connection.execute(stale.format(name, _listed(keys)), [job, row_keys])
    if not rows:
        return
    columns = list(rows[0])
    upsert = sql.SQL("INSERT INTO {} ({}) VALUES ({}) ON CONFLICT ({}) DO UPDATE SET ({}) = ROW ({})").format(
        name,
        _listed(columns),
        sql.SQL(", ").join(map(sql.Placeholder, columns)),
        _listed(keys),
        _listed(columns),
        sql.SQL(", ").join(sql.Identifier("excluded", column) for column in columns),
    )
    with connection.cursor() as cursor:
        cursor.executemany(upsert, rows)


def _listed(columns: Iterable[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, columns))


def _trial(job: str, record: JobRecord, trial: TrialRecord, result: Mapping[str, Any]) -> Row:
    last = (told(result) or [{}])[-1]
    return {
        "job": job,
        "trial": trial.trial,
        "task": trial.task,
        "condition": last.get("condition") or record.plan.condition,
        "condition_sha256": last.get("condition_sha256") or record.plan.condition_sha256,
        # Where the plan is damaged, each trial still says what played it: a rehearsal must not pass for a real run.
        "rehearsal": record.plan.rehearsal if record.plan.known else last.get("rehearsal"),
        "replay": record.plan.replay if record.plan.known else last.get("replay"),
        "stack": record.plan.stack,
        "environment": record.plan.environment,
        "channel": last.get("channel"),
        "outcome": trial.outcome.outcome,
        "reward": trial.outcome.reward,
        "reason": _text(trial.outcome.reason),
        "labels": list(trial.outcome.labels),
        "ended": last.get("ended"),
        "evidence_sha256": last.get("evidence_sha256"),
        "started_at": result.get("started_at"),
        "finished_at": result.get("finished_at"),
    }


def _receipts(job: str, path: Path, warnings: list[str]) -> list[Row]:
    """A row for each call; one that is still open is unknown."""
    rows: list[Row] = []
    for receipt in calls_of(path, warnings):
        lacking = [name for name in NOT_NULL if receipt.get(name) is None]
        if lacking:
            warnings.append(f"{path}: receipt {receipt.get('call_id')} lacks {', '.join(lacking)}, passed over")
            continue
        told = {name: receipt.get(name) for name in (*NOT_NULL, *NULLABLE)}
        row = {name: _text(value) if isinstance(value, str) else value for name, value in told.items()}
        row |= {name: number(receipt.get(name)) for name in COUNTS}
        usage = receipt.get("usage")
        row |= {"job": job, "usage": None if usage is None else _jsonb(usage)}
        rows.append(row | {"outcome": "unknown"} if row["outcome"] == "open" else row)
    return rows


def _spans(job: str, trial: str, result: Mapping[str, Any]) -> list[Row]:
    """Harbor's phases, and within the agent's one the steps that the agent timed (`timings`, in seconds)."""
    spans = [_span(job, trial, "trial", None, result)] if result else []
    spans += [_span(job, trial, phase, "trial", result.get(phase) or {}) for phase in PHASES]
    for ours in told(result):
        # Of a task with steps each has its own spans: `step.review.agent.work`.
        above = f"step.{ours['step']['name']}." if ours.get("step") else ""
        for step, seconds in (ours.get("timings") or {}).items():
            times = {"started_at": None, "finished_at": None, "seconds": seconds}
            name, parent = f"{above}agent.{step}", f"{above}agent_execution"
            spans.append({"job": job, "trial": trial, "name": name, "parent": parent, **times})
    for step_name, part in step_parts(result):
        above = f"step.{step_name}."
        spans += [_span(job, trial, f"{above}{phase}", "trial", part.get(phase) or {}) for phase in PHASES]
    return [span for span in spans if span["seconds"] is not None]


def _span(job: str, trial: str, name: str, parent: str | None, times: Mapping[str, Any]) -> Row:
    began, ended = times.get("started_at"), times.get("finished_at")
    seconds = None
    if began and ended:
        seconds = (datetime.fromisoformat(ended) - datetime.fromisoformat(began)).total_seconds()
    return {
        "job": job,
        "trial": trial,
        "name": name,
        "parent": parent,
        "started_at": began,
        "finished_at": ended,
        "seconds": seconds,
    }


def _result(path: Path) -> Mapping[str, Any]:
    """A trial's result.json; empty where it is missing or damaged, which its outcome tells (bench.records)."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _text(value: str | None) -> str | None:
    """PostgreSQL's texts hold no NUL, and what a program said may."""
    return None if value is None else value.replace("\0", "\N{REPLACEMENT CHARACTER}")


def _jsonb(value: Any) -> str:
    return json.dumps(value).replace("\\u0000", "\\ufffd")
