"""One process at a time runs a job."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench.errors import InvalidInput
from bench.records.claim import claimed, is_claimed


def test_a_job_that_is_claimed_is_nobody_elses(tmp_path: Path) -> None:
    with claimed(tmp_path):
        assert is_claimed(tmp_path)
        with (
            pytest.raises(InvalidInput, match=r"another run works on this job; wait for its end, or choose another"),
            claimed(tmp_path),
        ):
            pass
    assert not is_claimed(tmp_path)


def test_a_child_keeps_the_claim_when_its_parent_is_gone(tmp_path: Path) -> None:
    with claimed(tmp_path) as descriptor:
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=(descriptor,))
    assert is_claimed(tmp_path)
    child.kill()
    child.communicate()
    assert not is_claimed(tmp_path)


def test_a_directory_that_is_not_there_is_not_claimed(tmp_path: Path) -> None:
    assert not is_claimed(tmp_path / "none")
