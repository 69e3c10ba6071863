"""A job that runs keeps the stack from being pulled away; one that has ended, however, does not."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from bench.errors import BuzzbenchError
from bench.stack.jobs import changing, hold, refuse_while_running, running_jobs


def test_a_held_job_runs_until_it_is_let_go(tmp_path: Path) -> None:
    assert running_jobs(tmp_path) == []
    with hold(tmp_path / "run" / "b"), hold(tmp_path / "run" / "a"):
        assert running_jobs(tmp_path) == ["a", "b"]
    assert running_jobs(tmp_path) == []


def test_two_processes_of_one_job_may_hold_it(tmp_path: Path) -> None:
    with hold(tmp_path / "run" / "a"):
        with hold(tmp_path / "run" / "a"):
            pass
        assert running_jobs(tmp_path) == ["a"]


def test_a_killed_job_runs_no_more(tmp_path: Path) -> None:
    program = (
        "import sys, pathlib, time; from bench.stack.jobs import hold\n"
        "with hold(pathlib.Path(sys.argv[1])):\n    print(1, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "run" / "a")], stdout=subprocess.PIPE) as job:
        assert job.stdout is not None
        job.stdout.readline()
        assert running_jobs(tmp_path) == ["a"]
        job.kill()
    assert running_jobs(tmp_path) == []


def test_a_change_of_the_stack_is_refused_by_name(tmp_path: Path) -> None:
    refuse_while_running(tmp_path, "inv down")
    with hold(tmp_path / "run" / "lb-1"):
        with pytest.raises(BuzzbenchError, match=r"^inv down: job lb-1 uses the stack; wait for the end, or stop it"):
            refuse_while_running(tmp_path, "inv down")
        with hold(tmp_path / "run" / "lb-2"), pytest.raises(BuzzbenchError, match=r"^--fresh: jobs lb-1, lb-2 use the"):
            refuse_while_running(tmp_path, "--fresh")


def test_a_job_waits_for_a_change_under_way(tmp_path: Path) -> None:
    """Else the change could look for jobs, find none, and stop the stack that the job has just found."""
    (tmp_path / "run").mkdir()
    held = threading.Event()

    def job() -> None:
        with hold(tmp_path / "run" / "a"):
            held.set()

    with changing(tmp_path):
        thread = threading.Thread(target=job)
        thread.start()
        assert not held.wait(0.05)
        assert running_jobs(tmp_path) == []
    thread.join()
    assert held.is_set()
