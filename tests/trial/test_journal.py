"""The journal: durable lines, readable also after a crash in the middle of one."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from bench.scoring.outcome import Outcome
from bench.trial import journal
from bench.trial.journal import AttemptReplaced, AttemptStarted, JobResumed, JobStopped, TrialEnded

AT = datetime(2026, 11, 30, 12, 0, 0, 5000, UTC)
FAILED = Outcome("failed", 0.0, "evidence: asked", ("loop", "tainted"))


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / journal.FILE_NAME
    journal.attempt_started(path, trial="t__1", task="buzz/t", at=AT)
    journal.trial_ended(path, trial="t__1", outcome=FAILED, at=AT)
    assert journal.read(path).entries == (
        AttemptStarted("t__1", "buzz/t", "2026-11-30T12:00:00.005+00:00"),
        TrialEnded("t__1", "failed", 0.0, "evidence: asked", ("loop", "tainted"), "2026-11-30T12:00:00.005+00:00"),
    )


def test_an_attempt_without_an_end_is_unfinished(tmp_path: Path) -> None:
    path = tmp_path / journal.FILE_NAME
    for trial in ("a", "b"):
        journal.attempt_started(path, trial=trial, task="t", at=AT)
    journal.trial_ended(path, trial="a", outcome=FAILED, at=AT)
    assert [attempt.trial for attempt in journal.read(path).unfinished] == ["b"]


def test_a_torn_last_line_loses_itself_alone_and_nothing_is_glued_to_it(tmp_path: Path) -> None:
    path = tmp_path / journal.FILE_NAME
    journal.attempt_started(path, trial="a", task="t", at=AT)
    with path.open("ab") as file:
        file.write(b'{"entry": "attempt_started", "tri')
    assert journal.read(path).warnings == (f"{path}, line 2: not a JSON object (cut off?), passed over",)
    journal.attempt_started(path, trial="b", task="t", at=AT)
    read = journal.read(path)
    assert list(read.begun) == ["a", "b"]
    assert len(read.warnings) == 1


def test_lines_of_another_kind_are_named_not_raised(tmp_path: Path) -> None:
    path = tmp_path / journal.FILE_NAME
    path.write_text('{"entry": "other"}\n[]\n\n3\n{"entry": "trial_ended"}\n{"entry": ["x"], "at": 1}\n')
    read = journal.read(path)
    assert read.entries == ()
    assert len(read.warnings) == 5
    assert f"{path}, entry 1: unknown ('other'), passed over" in read.warnings


def test_values_of_another_type_make_an_entry_unknown(tmp_path: Path) -> None:
    path = tmp_path / journal.FILE_NAME
    path.write_text('{"entry": "attempt_started", "trial": ["a"], "task": "t", "at": ""}\n')
    assert journal.read(path).entries == ()


def test_an_entry_of_before_the_clock_was_looked_at_is_read_as_one_without_a_jump(tmp_path: Path) -> None:
    path = tmp_path / journal.FILE_NAME
    journal.trial_ended(path, trial="a", outcome=FAILED, at=AT, clock_jumped_s=-7.5)
    told = json.loads(path.read_text())
    assert journal.read(path).ended["a"].clock_jumped_s == told.pop("clock_jumped_s") == -7.5
    path.write_text(json.dumps(told) + "\n")
    assert journal.read(path).ended["a"].clock_jumped_s is None
    assert not journal.read(path).warnings


def test_no_journal_is_an_empty_one(tmp_path: Path) -> None:
    assert journal.read(tmp_path / "none") == journal.Journal(())


def test_a_retry_begins_the_same_trial_again(tmp_path: Path) -> None:
    path = tmp_path / journal.FILE_NAME
    journal.attempt_started(path, trial="a", task="t", at=AT)
    journal.trial_ended(path, trial="a", outcome=FAILED, at=AT)
    journal.attempt_started(path, trial="a", task="t", at=AT)
    assert [attempt.trial for attempt in journal.read(path).unfinished] == ["a"]


def test_an_attempt_that_was_replaced_is_no_longer_unfinished(tmp_path: Path) -> None:
    path = tmp_path / journal.FILE_NAME
    journal.attempt_started(path, trial="a", task="t", at=AT)
    journal.append(path, AttemptReplaced("a", "t", "unfinished", "/archive/1/a", journal.iso(AT)))
    read = journal.read(path)
    assert read.unfinished == ()
    assert read.replaced["a"].reason == "unfinished"


def test_a_stop_is_over_once_the_job_goes_on(tmp_path: Path) -> None:
    path = tmp_path / journal.FILE_NAME
    stop = JobStopped("budget", "the job's cap of $1 is reached", journal.iso(AT))
    journal.append(path, stop)
    assert journal.read(path).stop == stop
    journal.append(path, JobResumed(3, journal.iso(AT)))
    assert journal.read(path).stop is None
