"""Files that are never half there and never readable by others, not even for a moment."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from bench import files


def test_a_private_file_is_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        files.write_private(tmp_path / "f", "secret")
    finally:
        os.umask(before)
    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o600


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "f"
    files.write_atomically(path, "old")
    with pytest.raises(UnicodeEncodeError):
        files.write_atomically(path, "new \ud800")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_directory_that_is_too_open_is_closed(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir(mode=0o755)
    assert files.make_private_directory(tmp_path / "d").stat().st_mode & 0o777 == 0o700


def test_lines_are_appended(tmp_path: Path) -> None:
    files.append_line(tmp_path / "f", "one")
    files.append_line(tmp_path / "f", "two")
    assert (tmp_path / "f").read_text() == "one\ntwo\n"


@pytest.mark.parametrize("write", [files.write_atomically, files.append_line])
def test_a_disk_without_room_is_told_with_the_file_that_it_was_for(
    tmp_path: Path, write: Callable[[Path, str], None]
) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 12, before[1]))
    try:
        with pytest.raises(OSError, match="too large") as failed:
            write(tmp_path / "f", "x" * (1 << 16))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert failed.value.filename == str(tmp_path / "f")
