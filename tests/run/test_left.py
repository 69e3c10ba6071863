"""What runs left is found by the next command."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bench import records, status
from bench.records.claim import claimed, is_claimed
from bench.run import left, projection
from bench.scoring.outcome import Outcome
from bench.settings import Settings
from bench.stack import jobs
from bench.trial import journal

AT = datetime(2026, 1, 31, tzinfo=UTC)
PASSED = {"task_name": "org/a", "agent_execution": {"started_at": "x"}, "verifier_result": {"rewards": {"reward": 1}}}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(state_dir=tmp_path / "state", jobs_dir=tmp_path / "jobs")


@pytest.fixture
def job(settings: Settings) -> Path:
    """A job of three, killed when one had a score and one was under way."""
    directory = settings.jobs_dir / "lb-team"
    plan = {"job": "lb-team", "attempts": 3, "tasks": [{"name": "org/a", "directory": "/a"}]}
    for name in ("a__1", "a__2"):
        (directory / name).mkdir(parents=True)
        journal.attempt_started(directory / journal.FILE_NAME, trial=name, task="org/a", at=AT)
    journal.trial_ended(directory / journal.FILE_NAME, trial="a__1", outcome=Outcome("passed", 1.0, ""), at=AT)
    (directory / records.PLAN).write_text(json.dumps(plan))
    (directory / "a__1" / "result.json").write_text(json.dumps(PASSED))
    (directory / records.RECEIPTS).write_text('{"trial": "a__2", "cost_usd_micros": 12300}\n')
    run_dir = settings.state_dir / "run" / "lb-team"
    run_dir.mkdir(parents=True)
    (run_dir / "provisioner.json").write_text("secrets")
    left.begin(run_dir, directory)
    return directory


@pytest.fixture
def projected(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The jobs that were brought into PostgreSQL; tests/run/test_projection.py has the real one."""
    found: list[Path] = []
    monkeypatch.setattr(projection, "project", lambda dsn, directory: found.append(directory))
    return found


def test_a_cut_off_attempt_is_said_with_its_cost_and_the_way_on(settings: Settings, job: Path) -> None:
    """Case 55: `inv status` names the orphan and what it spent."""
    assert [str(one) for one in left.found(settings)] == [
        "job lb-team: 1 of 3 trials have a score, 1 attempt was cut off ($0.0123 spent); "
        "resume with `inv bench --resume lb-team`"
    ]


def test_a_stopped_job_is_said_without_one(settings: Settings, job: Path) -> None:
    cancelled = Outcome("unscored", None, "cancelled")
    journal.trial_ended(job / journal.FILE_NAME, trial="a__2", outcome=cancelled, at=AT)
    assert [str(one) for one in left.found(settings)] == [
        "job lb-team: 1 of 3 trials have a score; resume with `inv bench --resume lb-team`"
    ]


def test_a_job_elsewhere_is_named_by_its_directory(settings: Settings, job: Path, tmp_path: Path) -> None:
    job.rename(tmp_path / "elsewhere")
    left.begin(settings.state_dir / "run" / "lb-team", tmp_path / "elsewhere")
    (one,) = left.found(settings)
    assert one.name == str(tmp_path / "elsewhere")


def test_a_job_that_runs_left_nothing(settings: Settings, job: Path) -> None:
    with claimed(job):
        assert left.found(settings) == []
        assert left.scored_so_far(settings, "lb-team") == "1 of 3 trials have a score"
    assert len(left.found(settings)) == 1


def test_a_killed_run_whose_child_still_ends_is_said_at_once(
    settings: Settings, job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The child has the claim for a moment longer than its parent: nothing was shown then."""
    with claimed(job):
        assert left.elsewhere(settings) == ["lb-team"]
        status.status(settings, as_json=False)
        assert "job lb-team: its run was killed and is ending" in capsys.readouterr().out
        with jobs.hold(settings.state_dir / "run" / "lb-team"):
            assert left.elsewhere(settings) == [], "it runs here"
    assert left.elsewhere(settings) == []
    status.status(settings, as_json=True)
    shown = json.loads(capsys.readouterr().out)
    assert (shown["elsewhere"], [one["job"] for one in shown["left"]]) == ([], ["lb-team"])


def test_who_goes_on_waits_for_the_child_of_a_killed_run_and_for_no_run_that_lives(
    settings: Settings, job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with claimed(job):
        left.await_killed(settings, job)
        assert capsys.readouterr().err == "", "this process has begun it, and lives"
    note = settings.state_dir / "run" / "lb-team" / left.FILE_NAME
    note.write_text(json.dumps({**json.loads(note.read_text()), "started": "long ago"}))
    left.await_killed(settings, job)
    assert capsys.readouterr().err == "", "its child has ended, too"
    with claimed(job) as claim:
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=(claim,))
    waiting = threading.Thread(target=left.await_killed, args=(settings, job))
    waiting.start()
    while "its last run was killed and is ending" not in capsys.readouterr().err:
        assert waiting.is_alive()
    assert is_claimed(job)
    child.communicate(b"\n")
    waiting.join()
    assert not is_claimed(job)


def test_what_a_killed_run_left_is_booked_once_and_its_secrets_go(
    settings: Settings, job: Path, projected: list[Path]
) -> None:
    for _ in range(2):
        assert [one.cut_off_usd_micros for one in left.book(settings, "dsn")] == [12300]
        assert projected == [job]
    assert not (settings.state_dir / "run" / "lb-team" / "provisioner.json").exists()
    assert len(left.found(settings)) == 1


def test_a_run_that_is_over_is_booked_and_forgotten(settings: Settings, job: Path, projected: list[Path]) -> None:
    left.over(settings.state_dir / "run" / "lb-team")
    assert left.found(settings) == []
    assert left.book(settings, "dsn") == []
    assert projected == [job]
    assert left.book(settings, "dsn") == []
    assert projected == [job]


def test_a_run_that_left_nothing_is_swept_by_the_next_and_no_other(
    settings: Settings, job: Path, projected: list[Path]
) -> None:
    runs = settings.state_dir / "run"
    with jobs.hold(runs / "done"):
        pass
    with jobs.hold(runs / "runs"):
        left.sweep(settings)
        assert {path.name for path in runs.iterdir()} == {"lb-team", "runs"}, "one was cut off, one runs"
    left.over(runs / "lb-team")
    left.book(settings, "dsn")
    left.sweep(settings)
    assert not [*runs.iterdir()]


def test_a_job_that_somebody_removed_and_a_damaged_note_are_forgotten(settings: Settings, job: Path) -> None:
    job.rename(job.with_name("gone"))
    damaged = settings.state_dir / "run" / "other" / left.FILE_NAME
    damaged.parent.mkdir()
    damaged.write_text("{")
    assert left.found(settings) == []
    assert not damaged.exists()
    assert left.scored_so_far(settings, "lb-team") == ""
