"""The right to run a job: one process at a time has it, of whatever checkout, and loses it however it ends.

The kernel's lock on the job's directory is the claim. The Harbor child inherits it: after a kill of the parent the job
is claimed until the child has ended, too.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.errors import InvalidInput
from bench.faults import shown

HARD_EXIT_S = 20.0
"""After its parent is gone, how long a child may take for a clean stop: it has the claim until then."""


@contextmanager
def claimed(job_dir: Path) -> Iterator[int]:
    """Hold the claim; the descriptor may be handed to a child. Raises InvalidInput where another process has it."""
    descriptor = os.open(job_dir, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if not _lock(descriptor):
            raise _taken(job_dir)
        yield descriptor
    finally:
        os.close(descriptor)


def is_claimed(job_dir: Path) -> bool:
    """Whether a process works on the job now."""
    try:
        descriptor = os.open(job_dir, os.O_RDONLY | os.O_DIRECTORY)
    except (FileNotFoundError, NotADirectoryError):
        return False
    try:
        return not _lock(descriptor)
    finally:
        os.close(descriptor)


def refuse_claimed(job_dir: Path) -> None:
    """Raise InvalidInput where a process works on the job now."""
    if is_claimed(job_dir):
        raise _taken(job_dir)


def _taken(job_dir: Path) -> InvalidInput:
    fix = "wait for its end, or choose another --job-name"
    return InvalidInput.of(shown(job_dir), "another run works on this job", fix)


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
