"""Files written whole: private from the first byte, durable, and never half there."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def write_atomically(path: Path, text: str, *, mode: int = 0o644) -> None:
    """Replace `path` with `text` in one step; the mode holds from the first byte (mkstemp creates 0600)."""
    with _named(path):
        _write_atomically(path, text, mode)


def _write_atomically(path: Path, text: str, mode: int) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def write_private(path: Path, text: str) -> None:
    """`write_atomically` with mode 0600."""
    write_atomically(path, text, mode=0o600)


def make_private_directory(path: Path) -> Path:
    """The directory, made with mode 0700 if it is missing and set to it if it is wider."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.stat().st_mode & 0o077:
        path.chmod(0o700)
    return path


def append_line(path: Path, line: str) -> None:
    """Append one line, on disk when this returns."""
    with _named(path), path.open("a", encoding="utf-8") as file:
        file.write(line + "\n")
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """The path in whatever fails: a write that the disk has no room for doesn't know whose it is."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        error.filename2 = None
        raise


def sync_directory(path: Path) -> None:
    """Make the directory's entries durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file, made if missing: one process at a time, the others wait. It ends with its holder."""
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
