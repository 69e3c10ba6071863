"""What is hurt while a job runs: no score is lost or made again, nothing lives on, and the next command says so.

A fast subset; `tests/stress/` has the random rest.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bench import costs, records
from bench.trial import journal
from tests.agreement import assert_whole, scored
from tests.pipeline import DATASET, Installation, new_installation, remove, stop, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

DURABLE = ("relay", "postgres")
TASK = str(DATASET / "split-and-merge")


@pytest.fixture(scope="module")
def installed() -> Iterator[Installation]:
    installation = new_installation(Path(tempfile.mkdtemp(prefix="bzb-faults-")))
    try:
        yield installation
    finally:
        remove(installation)


@contextmanager
def under_way(installed: Installation, name: str, attempts: int = 8) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A job, two trials at a time, once one has a score and another has begun. It is over at the end."""
    words = ("-p", TASK, "--rehearsal", "-k", str(attempts), "-n", "2", "--job-name", name)
    running = installed.start("bench", *words)
    directory = installed.jobs_dir / name
    try:
        wait_until(lambda: running.poll() is not None or _one_ended_and_one_begun(directory))
        assert running.poll() is None, running.communicate()[1]
        yield running, directory
    finally:
        if running.poll() is None:
            running.kill()
        running.communicate()


def _one_ended_and_one_begun(directory: Path) -> bool:
    book = journal.read(directory / journal.FILE_NAME)
    return any(isinstance(entry, journal.TrialEnded) for entry in book.entries) and bool(book.unfinished)


def child_of(running: subprocess.Popen[str]) -> int:
    """The process id of the Harbor child of an `inv bench`."""
    children = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
    (child,) = (pid for pid in children if b"bench.run" in Path(f"/proc/{pid}/cmdline").read_bytes())
    return int(child)


def resume(installed: Installation, name: str, *more: str) -> tuple[str, dict[str, Any]]:
    """Resume a job to its end: what was said, and the job as JSON."""
    done = installed.inv("bench", "--resume", name, "--json", *more)
    assert done.returncode == 0, done.stderr
    return done.stderr, json.loads(done.stdout)["jobs"][0]


def kill_parent(running: subprocess.Popen[str]) -> None:
    running.kill()


def kill_child(running: subprocess.Popen[str]) -> None:
    os.kill(child_of(running), signal.SIGKILL)


def kill_both(running: subprocess.Popen[str]) -> None:
    child = child_of(running)
    running.kill()
    os.kill(child, signal.SIGKILL)


@pytest.mark.parametrize("kill", [kill_parent, kill_child, kill_both])
def test_a_kill_of_the_run_loses_nothing(
    installed: Installation, kill: Callable[[subprocess.Popen[str]], None]
) -> None:
    """Cases 3 and 55."""
    name = kill.__name__
    with under_way(installed, name) as (running, directory):
        kill(running)
        running.communicate(timeout=60)
        wait_until(lambda: installed.job_processes() == [])
    before = scored(directory)
    assert before
    status = installed.inv("status").stdout
    assert f"job {name}: {len(before)} of 8 trials have a score" in status
    assert f"resume with `inv bench --resume {name}`" in status
    if kill is not kill_parent:
        # The child had no time to write down how its trials ended: another job says so, too, when it begins.
        other = installed.inv("bench", "-p", TASK, "--rehearsal", "-k", "1", "--job-name", f"after-{name}")
        assert f"job {name}: {len(before)} of 8 trials have a score, " in other.stderr
        assert "cut off ($0.0000 spent)" in other.stderr
    said, job = resume(installed, name, "-n", "3")
    assert f"job {name} goes on: {len(before)} of 8 trials have a score and are kept, {8 - len(before)} run" in said
    assert_whole(installed, directory, before)
    assert job["counts"] == {"passed": 8, "failed": 0, "unscored": 0}
    assert f"job {name}" not in installed.inv("status").stdout


@pytest.fixture(scope="module")
def slow(installed: Installation) -> Path:
    """The task with a lead whose model thinks for some seconds once both workers have reported."""
    task = installed.home / "slow"
    shutil.copytree(TASK, task)
    script = task / "rehearsal" / "good.yaml"
    script.write_text(script.read_text().replace("- name: merge", "- name: merge\n    think_s: [6, 6]"))
    return task


@pytest.mark.parametrize("kill", [kill_parent, kill_child, kill_both])
def test_a_resume_right_after_a_kill_finds_no_lease_and_no_child_in_its_way(
    installed: Installation, slow: Path, kill: Callable[[subprocess.Popen[str]], None]
) -> None:
    name = f"at-once-{kill.__name__}"
    running = installed.start("bench", "-p", str(slow), "--rehearsal", "-k", "1", "--job-name", name)
    directory = installed.jobs_dir / name
    wait_until(lambda: running.poll() is not None or _workers_have_reported(directory))
    assert running.poll() is None, running.communicate()[1]
    kill(running)
    _, job = resume(installed, name)
    running.communicate()
    assert job["counts"] == {"passed": 1, "failed": 0, "unscored": 0}
    assert_whole(installed, directory, {})
    (replaced,) = job["replaced"]
    booked = [r for r in costs.calls_of(directory / records.RECEIPTS, []) if r["trial"] == replaced["trial"]]
    assert replaced["calls"] == len(booked) >= 5
    assert all(r["charged_tokens"] > 0 for r in booked), "at its use, or at its bound"


def _workers_have_reported(directory: Path) -> bool:
    receipts = costs.calls_of(directory / records.RECEIPTS, []) if (directory / records.RECEIPTS).exists() else []
    calls = Counter(receipt["agent"] for receipt in receipts)
    return min(calls["worker-1"], calls["worker-2"]) >= 2


# A trial waits 20 seconds for a relay: those are for `inv stress`.
@pytest.mark.parametrize("service", ["gateway", *(pytest.param(name, marks=pytest.mark.stress) for name in DURABLE)])
def test_a_service_that_is_killed_stops_the_job_and_a_resume_brings_it_back(
    installed: Installation, service: str
) -> None:
    name = f"without-{service}"
    with under_way(installed, name) as (running, directory):
        os.kill(installed.service(service), signal.SIGKILL)
        shown, said = running.communicate(timeout=100)
    assert running.returncode == 1
    before = scored(directory)
    assert before
    assert len(before) < 8
    assert "inv: stopped: " in said
    assert shown.splitlines()[-1].startswith("stopped: ")
    assert shown.splitlines()[-1].endswith(f"go on with `inv bench --resume {directory}`")
    job = records.read_job(directory)
    assert job.counts["failed"] == 0
    assert all(trial.outcome.reason for trial in job.trials if not trial.is_scored)
    assert installed.job_processes() == []
    resume(installed, name)
    assert_whole(installed, directory, before)


def test_a_stopped_job_goes_on_where_it_was(installed: Installation) -> None:
    """Case 15."""
    with under_way(installed, "stopped") as (running, directory):
        assert stop(running, signal.SIGINT) == 130
    before = scored(directory)
    assert "job stopped: " in installed.inv("status").stdout
    resume(installed, "stopped")
    assert_whole(installed, directory, before)


def test_a_second_signal_kills_at_once(installed: Installation) -> None:
    with under_way(installed, "twice") as (running, directory):
        running.send_signal(signal.SIGINT)
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=30)
        assert running.returncode == 130
        wait_until(lambda: installed.job_processes() == [])
    before = scored(directory)
    resume(installed, "twice")
    assert_whole(installed, directory, before)


def test_a_job_that_runs_is_nobody_elses(installed: Installation) -> None:
    with under_way(installed, "busy", attempts=100) as (running, directory):
        for words in (("--resume", "busy"), ("-p", TASK, "--rehearsal", "-k", "1", "--job-name", "busy")):
            done = installed.inv("bench", *words)
            assert (done.returncode, done.stdout) == (2, "")
            assert done.stderr.startswith(f"inv: {directory}: another run works on this job; wait for its end")
        assert "job busy runs: " in installed.inv("status").stdout
        assert installed.inv("down").returncode == 1
        assert stop(running) == 130


def test_two_jobs_and_two_checkouts_run_at_once_in_one_jobs_directory(installed: Installation) -> None:
    other = new_installation(Path(tempfile.mkdtemp(prefix="bzb-faults-")))
    words = ("bench", "-p", TASK, "--rehearsal", "-k", "3", "-n", "2", "--jobs-dir", str(installed.jobs_dir))
    owners = {"one": installed, "two": installed, "three": other}
    try:
        runs = [owner.start(*words, "--job-name", name) for name, owner in owners.items()]
        for running in runs:
            _, said = running.communicate(timeout=100)
            assert running.returncode == 0, said
        for name, owner in owners.items():
            assert_whole(owner, installed.jobs_dir / name, {})
    finally:
        remove(other)


def test_two_runs_of_one_second_get_a_directory_each(installed: Installation) -> None:
    """Case 56."""
    words = ("bench", "-p", TASK, "--rehearsal", "-k", "1", "--json")
    runs = [installed.start(*words) for _ in range(3)]
    names = []
    for running in runs:
        shown, said = running.communicate(timeout=100)
        assert running.returncode == 0, said
        names.append(json.loads(shown)["jobs"][0]["name"])
    assert len(set(names)) == 3


@contextmanager
def small_disk(where: Path, size_kb: int) -> Iterator[Path]:
    """A file system of that size."""
    where.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size_kb}k", "tmpfs", where], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no disk can be mounted here: {mounted.stderr.strip()}")
    try:
        yield where
    finally:
        subprocess.run(["umount", "-l", where], check=True)


def fill(disk: Path) -> None:
    """Leave no room on it."""
    with (disk / "filler").open("wb", buffering=0) as filler, pytest.raises(OSError, match="No space"):
        while True:
            filler.write(b"x" * 1024)


def test_a_disk_that_fills_up_while_results_are_written_costs_no_score(installed: Installation, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 4096) as disk:
        installed.inv("bench", "-p", TASK, "--rehearsal", "-k", "1", "--job-name", "before")
        running = installed.start(
            "bench", "-p", TASK, "--rehearsal", "-k", "8", "-n", "2", "--job-name", "full", "--jobs-dir", str(disk)
        )
        directory = disk / "full"
        wait_until(lambda: running.poll() is not None or _one_ended_and_one_begun(directory))
        fill(disk)
        _, said = running.communicate(timeout=100)
        assert running.returncode == 1, said
        assert "No space left on device" in said
        assert "Traceback" not in said
        assert installed.job_processes() == []
        before = scored(directory)
        (disk / "filler").unlink()
        done = installed.inv("bench", "--resume", str(directory))
        assert done.returncode == 0, done.stderr
        assert_whole(installed, directory, before)


def test_a_jobs_directory_that_cannot_be_written_is_found_before_anything_starts(tmp_path: Path) -> None:
    fresh = new_installation(tmp_path / "home")

    def refused(jobs_dir: Path) -> tuple[int, str]:
        done = fresh.inv("bench", "-p", TASK, "--rehearsal", "-k", "1", "--jobs-dir", str(jobs_dir))
        assert not fresh.home.exists()
        return done.returncode, done.stderr.removeprefix(f"inv: {jobs_dir}: no jobs can be written here: ")

    with small_disk(tmp_path / "disk", 64) as disk:
        fill(disk)
        made_room = "make room, or give another --jobs-dir"
        assert refused(disk) == (3, f"No space left on device; {made_room}\n")
        assert [path.name for path in disk.iterdir()] == ["filler"]
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        for jobs_dir in (disk, disk / "deep" / "er"):
            assert refused(jobs_dir) == (2, "Read-only file system; give another --jobs-dir\n")
    assert refused(Path("/proc/jobs")) == (2, "No such file or directory; give another --jobs-dir\n")
