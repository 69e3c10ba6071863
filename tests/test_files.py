"""Files that are never half there and never readable by others, not even for a moment."""

from __future__ import annotations

import os
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
