"""Which jobs use the stack. A job holds `run/<job>/lock`; `down` and `--fresh` refuse while one does.

The lock is the kernel's, so it ends with its holders however they end, and a left-over file means nothing.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.errors import BuzzbenchError
from bench.files import locked


@contextmanager
def hold(run_dir: Path) -> Iterator[None]:
    """Keep the stack from being stopped while this is entered. `run_dir` is `<state_dir>/run/<job>`, made if missing.

    It waits for an `up` or `down` under way; look at the stack's address after it, not before. Several processes of
    one job may hold it.
    """
    run_dir.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with changing(run_dir.parent.parent):
        # Made here, where nobody sweeps: a lock whose file is gone would hold nothing.
        run_dir.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(run_dir / "lock", os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
    try:
        yield
    finally:
        os.close(descriptor)


def running_jobs(state_dir: Path) -> list[str]:
    """The names of the jobs that are held, sorted."""
    return sorted(path.parent.name for path in (state_dir / "run").glob("*/lock") if _held(path))


def sweep(state_dir: Path, kept: str) -> None:
    """Remove the directories `run/<job>` of jobs that nobody holds, but for those with a file of that name."""
    with changing(state_dir):
        for run_dir in (state_dir / "run").glob("*/"):
            if not (run_dir / kept).exists() and not _held(run_dir / "lock"):
                shutil.rmtree(run_dir)


def refuse_while_running(state_dir: Path, what: str) -> None:
    """Raise BuzzbenchError if a job uses the stack. `what` is what was asked for, such as `inv down`."""
    names = running_jobs(state_dir)
    if names:
        raise BuzzbenchError(
            f"{'jobs' if len(names) > 1 else 'job'} {', '.join(names)} {'use' if len(names) > 1 else 'uses'} the stack",
            where=what,
            fix="wait for the end, or stop it with Ctrl-C where it runs",
        )


@contextmanager
def changing(state_dir: Path) -> Iterator[None]:
    """The right to change the stack; one process at a time, the others wait."""
    with locked(state_dir / "up.lock"):
        yield


def _held(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
