"""A rehearsal of 32 trials, killed at random moments until it has its every score."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import records
from tests.agreement import assert_whole, scored
from tests.pipeline import DATASET, Installation, new_installation, remove, wait_until

pytestmark = [pytest.mark.stress, pytest.mark.timeout(900)]

MOMENTS = 10
LONGEST_S = 6.0
"""About what the job takes where nothing happens to it."""


@pytest.fixture(scope="module")
def installed() -> Iterator[Installation]:
    installation = new_installation(Path(tempfile.mkdtemp(prefix="bzb-stress-")))
    try:
        assert installation.inv("up", "schema").returncode == 0
        yield installation
    finally:
        remove(installation)


def _kill(running: subprocess.Popen[str], both: bool) -> None:
    """The parent alone, or its Harbor child with it, wherever they are."""
    children = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
    running.kill()
    for child in children if both else ():
        os.kill(int(child), signal.SIGKILL)
    running.communicate(timeout=60)


def test_ten_kills_at_random_moments_lose_no_score_and_make_none_twice(installed: Installation) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    chance = random.Random(seed)
    directory = installed.jobs_dir / "killed"
    first = (
        "bench",
        "-p",
        str(DATASET / "split-and-merge"),
        "--rehearsal",
        "-k",
        "32",
        "-n",
        "8",
        "--job-name",
        "killed",
    )
    before: dict[str, dict[Path, bytes]] = {}
    for number in range(MOMENTS):
        # A kill before there is a plan leaves no job to resume: the same command begins it then.
        words = ("bench", "--resume", "killed") if (directory / records.PLAN).exists() else first
        running = installed.start(*words)
        time.sleep(chance.uniform(0.2, LONGEST_S))
        if running.poll() is None:
            _kill(running, both=bool(number % 2))
        else:
            _, said = running.communicate()
            assert running.returncode == 0, said
        wait_until(lambda: installed.job_processes() == [])
        if directory.exists():
            now = scored(directory)
            assert {name: now[name] for name in before} == before
            before = now
        assert installed.inv("status").returncode == 0
    done = installed.inv("bench", "--resume", "killed")
    assert done.returncode == 0, done.stderr
    assert_whole(installed, directory, before)


@pytest.mark.parametrize("moment", range(MOMENTS))
def test_a_fresh_job_killed_at_a_random_moment_is_resumed_whole(installed: Installation, moment: int) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    name = f"moment-{moment}"
    directory = installed.jobs_dir / name
    words = ("bench", "-p", str(DATASET / "split-and-merge"), "--rehearsal", "-k", "32", "-n", "8", "--job-name", name)
    running = installed.start(*words)
    time.sleep(random.Random(seed).uniform(0.5, LONGEST_S))
    if running.poll() is None:
        _kill(running, both=bool(moment % 2))
    running.communicate(timeout=60)
    before: dict[str, dict[Path, bytes]] = {}
    if moment % 3:
        wait_until(lambda: installed.job_processes() == [])
        before = scored(directory) if directory.exists() else {}
    # Else it goes on at once, whatever of the killed run still ends.
    done = installed.inv(*words)
    assert done.returncode == 0, done.stderr
    assert_whole(installed, directory, before)
