"""Whether what a job left agrees with itself, after whatever was done to it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import psycopg

from bench import costs, records
from bench.records.job import JobRecord
from bench.stack import address
from bench.trial import journal
from bench.trial.journal import AttemptReplaced, AttemptStarted, TrialEnded
from tests.pipeline import Installation, contents


def scored(job_dir: Path) -> dict[str, dict[Path, bytes]]:
    """The trials of a job that have a score, with every byte of theirs."""
    return {
        trial.trial: contents(job_dir / trial.trial) for trial in records.read_job(job_dir).trials if trial.is_scored
    }


def assert_whole(installed: Installation, job_dir: Path, before: dict[str, dict[Path, bytes]]) -> None:
    """Every trial has its score; `before`, what had one at the kill, is as it was; records, receipts, results agree."""
    job = records.read_job(job_dir)
    # A full disk, and a kill at the worst moment, cut a line off: that is said for good, and costs nothing else.
    assert [warning for warning in job.warnings if "cut off?" not in warning] == []
    assert (job.missing, job.counts["unscored"]) == (0, 0), job.counts
    assert len(job.trials) == job.planned_trials
    after = scored(job_dir)
    # The host's verdict may come to be kept later, where a full disk or a kill came before it.
    kept = {name: {path: after[name].get(path) for path in files} for name, files in before.items()}
    assert kept == before
    added = {path.name for name, files in before.items() for path in after[name].keys() - files.keys()}
    assert added <= {records.CHECKS}
    _assert_each_ran_once(job_dir, job)
    _assert_receipts_agree(job_dir, job)
    _assert_replaced_are_kept(job_dir)
    _assert_projected(installed, job)
    assert installed.job_processes() == []


def _assert_each_ran_once(job_dir: Path, job: JobRecord) -> None:
    entries = journal.read(job_dir / journal.FILE_NAME).entries
    begun = Counter(entry.trial for entry in entries if isinstance(entry, AttemptStarted))
    ended = Counter(entry.trial for entry in entries if isinstance(entry, TrialEnded) and entry.outcome != "unscored")
    assert {name: begun[name] for name in begun if begun[name] > 1} == {}
    # An end that a kill kept from the journal is in result.json all the same.
    assert set(ended) <= {trial.trial for trial in job.trials}
    assert set(ended.values()) <= {1}


def _assert_receipts_agree(job_dir: Path, job: JobRecord) -> None:
    for trial in job.trials:
        result = json.loads((job_dir / trial.trial / "result.json").read_text())["agent_result"]
        spend = trial.spend
        assert spend.calls > 0
        assert result["n_output_tokens"] == spend.output_tokens
        assert result["n_input_tokens"] == spend.input_tokens + spend.cache_read_tokens + spend.cache_write_tokens
    known = {trial.trial for trial in job.trials} | {attempt.trial for attempt in job.replaced}
    receipts = costs.calls_of(job_dir / records.RECEIPTS, [])
    assert {receipt["trial"] for receipt in receipts} <= known
    assert job.spend.calls == sum(receipt["outcome"] != "refused" for receipt in receipts)


def _assert_replaced_are_kept(job_dir: Path) -> None:
    for entry in journal.read(job_dir / journal.FILE_NAME).entries:
        if isinstance(entry, AttemptReplaced):
            assert Path(entry.archive).is_dir()
            assert not (job_dir / entry.trial).exists()


def _assert_projected(installed: Installation, job: JobRecord) -> None:
    stack = address(installed.state_dir)
    assert stack
    with psycopg.connect(stack.dsn) as connection:
        rows = connection.execute(
            "SELECT trial, outcome FROM benchmark.trial_manifest WHERE job = %s", [job.plan.job]
        ).fetchall()
    assert dict(rows) == {trial.trial: trial.outcome.outcome for trial in job.trials}
