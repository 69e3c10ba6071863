"""The environment: what is installed is what the lock says."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest

from bench.doctor import python
from bench.doctor.python import drifted, installed
from bench.settings import ROOT
from tests.doctor.conftest import Make

LOCK = """\
Harbor==0.26.0 \\
    --hash=sha256:00
colorama==0.4.6 ; sys_platform == 'win32' \\
    --hash=sha256:00
typing_extensions==4.1 \\
    --hash=sha256:00
"""


@pytest.mark.parametrize(
    ("there", "said"),
    [
        ({"harbor": "0.26.0", "typing-extensions": "4.1"}, []),
        ({"harbor": "0.25.0", "typing-extensions": "4.1"}, ["Harbor 0.25.0, not 0.26.0"]),
        ({"harbor": "0.26.0", "typing-extensions": "4.1", "colorama": "0.1"}, ["colorama 0.1, not 0.4.6"]),
        ({"harbor": "0.26.0"}, ["typing_extensions is missing"]),
    ],
    ids=["as-locked", "another-version", "another-of-a-marked-one", "missing"],
)
def test_what_differs_from_the_lock_is_named(there: dict[str, str], said: list[str]) -> None:
    """Case 59. What a marker leaves out may be absent."""
    assert list(drifted(LOCK, there)) == said


def test_this_environment_is_the_locked_one(make: Make) -> None:
    found = python.lock(make(root=ROOT))
    assert (found.state, found.fix) == ("ok", "")


def test_a_drift_is_a_failure_that_says_what_to_do(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    there = installed() | {"harbor": "0.25.0", "invoke": "2.0", "rich": "1", "pyyaml": "1"}
    monkeypatch.setattr(python, "installed", lambda: there)
    found = python.lock(make(root=ROOT))
    assert found.state == "fail"
    assert found.detail.startswith("differs from requirements.lock: harbor 0.25.0, not 0.26.0, invoke 2.0, not ")
    assert found.detail.endswith(" and 1 more")
    assert "run any `./inv` command" in found.fix
    assert python.harbor(make(root=ROOT)).detail == "0.25.0; 0.26.0 is pinned, and results name it"


def test_harbors_version_is_told_whatever_lies_on_the_path(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 16: a `harbor` that is a shell script."""
    wrapper = tmp_path / "harbor"
    wrapper.write_text("#!/bin/sh\nexit 1\n")
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = python.harbor(make(root=ROOT))
    assert (found.state, found.detail) == ("ok", "0.26.0")


def test_python_is_told_with_its_place(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))
    assert python.python(make()).state == "ok"
    monkeypatch.setattr(sys, "prefix", "/usr")
    elsewhere = python.python(make())
    assert (elsewhere.state, elsewhere.fix) == ("warn", "start with ./inv")
    monkeypatch.setattr(sys, "version_info", (3, 11, 4))
    old = python.python(make())
    assert (old.state, old.detail) == ("fail", "3.11.4; 3.12 to 3.14 will do")


def test_no_uv_is_no_fault_and_one_that_does_not_run_is(make: Make, tmp_path: Path) -> None:
    assert python.uv(make(environ={"PATH": ""})).state == "ok"
    program = tmp_path / "uv"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    assert python.uv(make(environ={"UV": str(program)})).detail == f"{program} does not run"
