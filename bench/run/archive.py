"""Making room in a job's directory for a resume: attempts without a score go to an archive, and nothing is ever lost.

The journal's line comes first: from then on an attempt is no part of the job, whether its directory was moved yet or
not. A move that a crash cut off is finished by the next one. A directory disappears from the job only once the archive
has it whole.
"""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from bench import records
from bench.errors import BuzzbenchError
from bench.files import make_private_directory, sync_directory, write_atomically
from bench.records.job import TrialRecord
from bench.trial import journal
from bench.trial.journal import AttemptReplaced

PARTIAL = ".partial"
CONFIG, LOCK, RESULT, LOG = HARBORS_FILES = ("config.json", "lock.json", "result.json", "job.log")
"""What Harbor writes at a job's level (HARBOR.md section 7.1)."""


def next_place(archive_dir: Path) -> Path:
    """Where the next attempts of a job go: `<archive_dir>/<number>`, which isn't there yet."""
    taken = [int(path.name) for path in archive_dir.glob("*") if path.name.isdecimal()] if archive_dir.is_dir() else []
    return archive_dir / str(max(taken, default=0) + 1)


def make_room(job_dir: Path, again: Iterable[TrialRecord], place: Path, at: datetime) -> None:
    """Take the attempts out of the job and keep them in `place`. Raises BuzzbenchError where they can't be kept.

    Whatever happens meanwhile, calling it again, with what has no score then, ends the work.
    """
    book = job_dir / journal.FILE_NAME
    with _told("an attempt can't be archived", place):
        for cut_off in journal.read(book).replaced.values():
            _move(job_dir / cut_off.trial, Path(cut_off.archive))
        for trial in again:
            kept = place / trial.trial
            entry = AttemptReplaced(trial.trial, trial.task, trial.outcome.reason, str(kept), journal.iso(at))
            journal.append(book, entry)
            _move(job_dir / trial.trial, kept)


def ready_for_harbor(job_dir: Path, place: Path, n_concurrent: int) -> None:
    """Let Harbor's own files say what Harbor wants to find. Raises BuzzbenchError where they can't be written.

    - A job without a trial begins anew: what Harbor wrote before, in part perhaps, goes to the archive.
    - Harbor rewrites result.json in place, so that a kill may leave half of it: that goes there, too, and is made anew.
    - `-n` may change, and Harbor compares it (HARBOR.md section 7.4).
    """
    with _told("can't be written", job_dir):
        if not records.trial_directories(job_dir):
            for name in HARBORS_FILES:
                _move(job_dir / name, place / name)
            return
        if (job_dir / RESULT).exists() and _object(job_dir / RESULT) is None:
            # Harbor begins its log anew where it finds no result.
            for name in (LOG, RESULT):
                _move(job_dir / name, place / name)
        for name in (CONFIG, LOCK):
            content = _object(job_dir / name)
            if content is not None and content.get("n_concurrent_trials") != n_concurrent:
                content["n_concurrent_trials"] = n_concurrent
                write_atomically(job_dir / name, json.dumps(content, indent=4))


@contextmanager
def _told(failed: str, place: Path) -> Iterator[None]:
    """Raise BuzzbenchError where something can't be written; in `place`, if the error doesn't say where."""
    try:
        yield
    except OSError as error:
        raise BuzzbenchError(
            f"{failed}: {error.strerror}; no trial was run",
            where=str(error.filename or place),
            fix="make room or give write access, and resume again",
        ) from None


def _move(source: Path, target: Path) -> None:
    """Move a file or a directory, to another file system as well; again after a crash at any point of it."""
    if not source.exists():
        return
    make_private_directory(target.parent)
    if target.exists():
        # The copy was whole when it got its name: what is left is to remove the original.
        _remove(source)
        return
    try:
        source.rename(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        partial = target.with_name(target.name + PARTIAL)
        _remove(partial)
        _copy(source, partial)
        partial.rename(target)
        sync_directory(target.parent)
        _remove(source)
    sync_directory(source.parent)
    sync_directory(target.parent)


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copy2(source, target)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _object(path: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
