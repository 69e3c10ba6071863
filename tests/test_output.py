"""What we print where it can't be written: no traceback, one line at most, and an exit code that says so."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from bench import records
from bench.settings import ROOT
from tests.pipeline import new_installation, remove, wait_until

WORDS = [["--list"], ["--help", "bench"], ["status"], ["status", "--json"], ["prices", "--model", "gpt-4o"]]


def _inv(words: list[str], environ: dict[str, str], stdout: int | None) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", "invoke", *words]
    return subprocess.run(
        program, cwd=ROOT, env=environ, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False, encoding="utf-8"
    )


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return new_installation(tmp_path).environment


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_a_full_disk_under_our_output_is_one_line_and_1(environ: dict[str, str], words: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = _inv(words, environ, full.fileno())
    assert done.stderr == "inv: stdout: can't be written: No space left on device\n"
    assert done.returncode == 1


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_a_reader_who_has_seen_enough_is_no_failure_of_ours(environ: dict[str, str], words: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = _inv(words, environ, writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


def test_what_the_encoding_lacks_is_written_in_its_letters(environ: dict[str, str]) -> None:
    done = _inv(["doctor"], environ | {"PYTHONIOENCODING": "ascii"}, subprocess.PIPE)
    assert "\\u2713 python " in done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_run_whose_output_fails_ends_its_job_and_says_so(tmp_path: Path) -> None:
    installation = new_installation(tmp_path)
    words = ["bench", "--path", "buzz-dataset/split-and-merge", "--rehearsal", "-k", "1", "--job-name", "full"]
    try:
        with Path("/dev/full").open("w") as full:
            done = _inv(words, installation.environment, full.fileno())
        assert done.stderr.splitlines()[-1] == "inv: stdout: can't be written: No space left on device"
        assert "Traceback" not in done.stderr
        assert done.returncode == 1
    finally:
        installation.inv("down")


@pytest.mark.slow
def test_a_terminal_that_is_closed_stops_its_job_in_order(tmp_path: Path) -> None:
    """The kernel sends SIGHUP then, and every further write to the terminal fails."""
    installation = new_installation(tmp_path)
    journal = installation.jobs_dir / "hung-up" / records.JOURNAL
    words = ["bench", "--path", "buzz-dataset/split-and-merge", "--rehearsal", "-k", "40", "-n", "2"]
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(ROOT)
        program = [sys.executable, "-m", "invoke", *words, "--job-name", "hung-up"]
        os.execve(sys.executable, program, installation.environment)
    os.set_blocking(terminal, False)

    def has_a_score() -> bool:
        with contextlib.suppress(BlockingIOError):
            os.read(terminal, 65_536)  # A terminal that nobody reads holds up the one who writes.
        return journal.exists() and "trial_ended" in journal.read_text()

    try:
        wait_until(has_a_score)
        os.close(terminal)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 129
        job = records.read_job(journal.parent)
        assert job.counts["passed"] >= 1
        assert job.missing > 0
        assert not installation.job_processes()
        assert "resume with `inv bench --resume hung-up`" in installation.inv("status").stdout
    finally:
        remove(installation)
