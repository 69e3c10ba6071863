"""Making room for a resume: whatever happens meanwhile, no attempt is lost and none with a score is touched."""

from __future__ import annotations

import contextlib
import errno
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bench import records
from bench.errors import BuzzbenchError
from bench.records.job import TrialRecord
from bench.run import archive
from bench.trial import journal
from tests.pipeline import contents

AT = datetime(2026, 1, 31, tzinfo=UTC)
PLAN = {"job": "lb-team", "attempts": 3, "tasks": [{"name": "org/alpha", "directory": "/nowhere/alpha"}]}
SCORED = {
    "task_name": "org/alpha",
    "agent_execution": {"started_at": "x"},
    "verifier_result": {"rewards": {"reward": 1}},
}


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A job of three attempts: one has a score, one is cut off, one is damaged."""
    directory = tmp_path / "jobs" / "lb-team"
    for name in ("a__1", "a__2", "a__3"):
        (directory / name / "agent").mkdir(parents=True)
        (directory / name / "agent" / "trajectory.json").write_text(name)
        journal.attempt_started(directory / journal.FILE_NAME, trial=name, task="org/alpha", at=AT)
    (directory / records.PLAN).write_text(json.dumps(PLAN))
    (directory / "a__1" / "result.json").write_text(json.dumps(SCORED))
    (directory / "a__2" / "result.json").write_text("{")
    for name in ("config.json", "lock.json"):
        (directory / name).write_text(json.dumps({"n_concurrent_trials": 4, "kept": name}))
    (directory / "result.json").write_text('{"n_total_trials": 3}')
    (directory / "job.log").write_text("log\n")
    return directory


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "state" / "archive" / "lb-team" / "1"


def again(job: Path) -> list[TrialRecord]:
    return [trial for trial in records.read_job(job).trials if not trial.is_scored]


def gathered(job: Path, place: Path) -> dict[str, str]:
    """Where each attempt's trajectory is: in the job or in the archive."""
    found = {path.read_text(): "job" for path in job.glob("*/agent/trajectory.json")}
    return found | {path.read_text(): "archive" for path in place.parent.glob("*/*/agent/trajectory.json")}


def test_attempts_without_a_score_go_to_the_archive_and_the_others_stay_byte_for_byte(job: Path, place: Path) -> None:
    before = contents(job / "a__1")
    archive.make_room(job, again(job), place, AT)
    assert contents(job / "a__1") == before
    assert gathered(job, place) == {"a__1": "job", "a__2": "archive", "a__3": "archive"}
    assert (place / "a__2" / "result.json").read_text() == "{"
    book = journal.read(job / journal.FILE_NAME)
    assert {name: entry.archive for name, entry in book.replaced.items()} == {
        "a__2": str(place / "a__2"),
        "a__3": str(place / "a__3"),
    }
    assert book.replaced["a__3"].reason == "cut off"


class Crash(Exception):
    """A kill at this point."""


def crashing(after: int, call: Callable[..., Any]) -> Callable[..., Any]:
    """A function that does its work that many times, and then the process is gone before it does."""
    left = iter(range(after))

    def crashes(*args: Any, **kwargs: Any) -> Any:
        if next(left, None) is None:
            raise Crash
        return call(*args, **kwargs)

    return crashes


@pytest.mark.parametrize("across", [False, True], ids=["one file system", "two file systems"])
@pytest.mark.parametrize(
    "step", ["bench.run.archive.journal.append", "pathlib.Path.rename", "shutil.rmtree", "shutil.copytree"]
)
@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_crash_at_any_point_loses_nothing_and_the_next_try_ends_the_work(
    job: Path, place: Path, monkeypatch: pytest.MonkeyPatch, across: bool, step: str, after: int
) -> None:
    rename = Path.rename

    def refuses(self: Path, target: Path) -> Path:
        if across and self.parent == job:
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refuses)
    module, _, name = step.rpartition(".")
    owner: Any = {"bench.run.archive.journal": journal, "pathlib.Path": Path, "shutil": archive.shutil}[module]  # type: ignore[attr-defined]
    with monkeypatch.context() as patched:
        patched.setattr(owner, name, crashing(after, getattr(owner, name)))
        with contextlib.suppress(Crash):
            archive.make_room(job, again(job), place, AT)
    assert set(gathered(job, place)) == {"a__1", "a__2", "a__3"}
    archive.make_room(job, again(job), place.with_name("2"), AT)
    assert gathered(job, place) == {"a__1": "job", "a__2": "archive", "a__3": "archive"}
    assert [path.name for path in records.trial_directories(job)] == ["a__1"]
    assert len(records.read_job(job).replaced) == 2
    assert list(place.parent.rglob(f"*{archive.PARTIAL}")) == []


def test_an_archive_that_cannot_be_written_stops_it_before_anything_ran(job: Path, place: Path) -> None:
    place.parent.parent.parent.write_text("a file in the way")
    with pytest.raises(
        BuzzbenchError, match=r"an attempt can't be archived: Not a directory; no trial was run; make room"
    ):
        archive.make_room(job, again(job), place, AT)
    assert set(gathered(job, place).values()) == {"job"}


def test_the_next_place_is_after_the_last(tmp_path: Path) -> None:
    assert archive.next_place(tmp_path / "none") == tmp_path / "none" / "1"
    for name in ("1", "10", "2", "x"):
        (tmp_path / name).mkdir()
    assert archive.next_place(tmp_path) == tmp_path / "11"


def test_another_number_at_a_time_is_set_where_harbor_compares_it(job: Path, place: Path) -> None:
    archive.ready_for_harbor(job, place, 9)
    for name in ("config.json", "lock.json"):
        assert json.loads((job / name).read_text()) == {"n_concurrent_trials": 9, "kept": name}
    assert (job / "result.json").read_text() == '{"n_total_trials": 3}'
    assert not place.exists()


def test_a_half_written_result_of_the_job_is_archived_with_its_log(job: Path, place: Path) -> None:
    (job / "result.json").write_text('{"id": "')
    archive.ready_for_harbor(job, place, 4)
    assert not (job / "result.json").exists()
    assert ((place / "result.json").read_text(), (place / "job.log").read_text()) == ('{"id": "', "log\n")


def test_a_job_without_a_trial_begins_anew(job: Path, place: Path) -> None:
    for name in ("a__1", "a__2", "a__3"):
        archive.shutil.rmtree(job / name)  # type: ignore[attr-defined]
    (job / "config.json").write_text("{")
    archive.ready_for_harbor(job, place, 4)
    assert {path.name for path in job.iterdir()} == {records.PLAN, records.JOURNAL}
    assert {path.name for path in place.iterdir()} == set(archive.HARBORS_FILES)
