"""What of a job goes into a pack: Harbor's own files and ours, by name. Logs stay behind, and everything else does.

Links are never followed: an agent may have left one that leads to anywhere on this host.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from bench.errors import InvalidInput
from bench.printable import one_line
from bench.records import CHECKS, EVIDENCE, JOURNAL, PLAN, RECEIPTS
from bench.trial.environments import FAULT_FILE

OF_A_JOB = ("config.json", "lock.json", "result.json", "analysis.md", PLAN, JOURNAL, RECEIPTS)
OF_A_TRIAL = ("config.json", "lock.json", "result.json", "analysis.md", "exception.txt", EVIDENCE, CHECKS, FAULT_FILE)
FOLDERS_OF_A_TRIAL = ("agent", "user-agent", "verifier", "artifacts", "steps")
"""Harbor's upload takes the same (0.26, harbor.upload.uploader), but for our own files and the logs."""

FOLDERS_OF_AN_UPLOAD = (*FOLDERS_OF_A_TRIAL, "user-agent-inputs")

READ_BY_ITSELF = "agent/trajectory.json"
"""Harbor uploads it beside the archive of all, and reads what it leads to where it is a link."""


SHOWN_CHARACTERS = 300
"""Of a path that is too long to be one."""


def of_job(job_dir: Path) -> Iterator[Path]:
    """The files of the job itself."""
    yield from _files(job_dir, OF_A_JOB)


def of_trial(trial_dir: Path) -> Iterator[Path]:
    """The files of one trial."""
    yield from _files(trial_dir, OF_A_TRIAL)
    for folder in FOLDERS_OF_A_TRIAL:
        for where, names in _walk(trial_dir / folder):
            yield from _files(where, (name for name in names if not name.lower().endswith(".log")))


def uploaded(directory: Path) -> Iterator[Path]:
    """What Harbor's upload takes of a job's or a trial's directory, logs included."""
    yield from (path for path in sorted(directory.iterdir()) if path.is_file() and not path.is_symlink())
    for folder in FOLDERS_OF_AN_UPLOAD:
        for where, names in _walk(directory / folder):
            yield from _files(where, names)


def links(trial_dir: Path) -> Iterator[Path]:
    """The links in a trial's directory: Harbor's upload takes where they lead, as a text."""
    for folder in FOLDERS_OF_AN_UPLOAD:
        place = trial_dir / folder
        if place.is_symlink():
            yield place
        for where, names in _walk(place, folders=True):
            yield from (where / name for name in names if (where / name).is_symlink())


def _walk(folder: Path, *, folders: bool = False) -> Iterator[tuple[Path, list[str]]]:
    """The directories in a folder, each with the names of its files, and of its `folders`.

    Raises InvalidInput for one that can't be looked into.
    Else what is in it would be left out without a word: an agent can make one too deep to have a path.
    """
    if not folder.is_dir() or folder.is_symlink():
        return
    try:
        for where, inner, names in os.walk(folder, onerror=_raise):
            yield Path(where), sorted([*names, *inner] if folders else names)
    except OSError as error:
        place = one_line(str(error.filename))
        place = place if len(place) <= SHOWN_CHARACTERS else f"{place[:SHOWN_CHARACTERS]}…"
        raise InvalidInput.of(place, f"can't be read ({error.strerror})", "remove it, or take the trial out") from None


def _raise(error: OSError) -> None:
    raise error


def _files(directory: Path, names: Iterable[str]) -> Iterator[Path]:
    paths = (directory / name for name in names)
    yield from (path for path in paths if path.is_file() and not path.is_symlink())
