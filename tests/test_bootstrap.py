"""`./inv`: the environment is made once, from hashes, by whoever comes first."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from bench.develop import UV_PIN
from bench.settings import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose lock holds Invoke alone, with the hashes of ours, and an uv that is already there."""
    shutil.copy(ROOT / "inv", tmp_path)
    lock = (ROOT / "requirements.lock").read_text()
    block = lock[lock.index("\ninvoke==") + 1 :].split("\n    # via")[0]
    (tmp_path / "requirements.lock").write_text(block + "\n")
    private = ROOT / ".tools" / f"uv-{UV_PIN}"
    if private.is_dir():
        (tmp_path / ".tools").mkdir()
        (tmp_path / ".tools" / private.name).symlink_to(private)
    (tmp_path / "tasks.py").write_text(
        "from invoke import task\n@task\ndef where(c):\n    'Say where.'\n    import sys; print(sys.prefix)\n"
    )
    return tmp_path


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "UV")}
    return kept | more


def start(project: Path, *arguments: str, **more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [project / "inv", *arguments],
        cwd=project,
        env=environment(**more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_two_first_runs_at_once_both_work(project: Path) -> None:
    runs = [start(project, "where") for _ in range(2)]
    ends = [run.communicate(timeout=110) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], ends
    assert [out.strip() for out, _ in ends] == [str(project / ".venv")] * 2
    assert not (project / ".tools" / "sync.lock").exists()


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["help"]])
def test_without_a_task_it_shows_the_tasks(project: Path, words: list[str]) -> None:
    """Invoke alone would show its own options."""
    run = start(project, *words)
    shown, _ = run.communicate(timeout=110)
    assert run.returncode == 0
    assert shown == "Available tasks:\n\n  where   Say where.\n\n"


def test_a_changed_lock_is_installed_by_the_next_run_and_an_unchanged_one_is_not(project: Path) -> None:
    assert "preparing the environment" in start(project, "where").communicate(timeout=110)[1]
    assert start(project, "where").communicate(timeout=110)[1] == ""
    lock = project / "requirements.lock"
    lock.write_text(lock.read_text() + "# changed\n")
    assert "preparing the environment" in start(project, "where").communicate(timeout=110)[1]


def test_an_uv_that_does_not_work_is_passed_over(project: Path) -> None:
    broken = project / "broken-uv"
    broken.write_text("#!/bin/sh\nexit 2\n")
    broken.chmod(0o755)
    run = start(project, "where", UV=str(broken))
    out, err = run.communicate(timeout=110)
    assert run.returncode == 0, err
    assert out.strip() == str(project / ".venv")


def test_a_wrong_hash_is_refused(project: Path) -> None:
    lock = project / "requirements.lock"
    lock.write_text(re.sub(r"sha256:[0-9a-f]{64}", "sha256:" + "0" * 64, lock.read_text()))
    run = start(project, "where")
    _, err = run.communicate(timeout=110)
    assert run.returncode == 3
    assert "the environment could not be made" in err
