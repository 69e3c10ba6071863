"""The first task of one's own, in buzz-dataset/README.md: pasted as it stands there, it does what the text says."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import pytest

from bench.settings import ROOT
from tests.pipeline import new_installation, remove

README = ROOT / "buzz-dataset/README.md"


def paste(folder: Path) -> Path:
    """What the lines make in a folder: one that holds the task."""
    text = README.read_text(encoding="utf-8").partition("```sh\n")[2].partition("\n```")[0]
    subprocess.run(["bash", "-euc", text], cwd=folder, check=True)
    return folder / "mine"


@pytest.mark.slow
def test_the_first_task_is_sound_its_script_is_rewarded_and_doing_nothing_is_not() -> None:
    home = Path(tempfile.mkdtemp(prefix="bzb-test-"))
    installation = new_installation(home)
    try:
        mine = paste(home)
        done = installation.inv("validate", "--path", str(mine), "--run")
        rows = [line.split() for line in done.stdout.splitlines()]
        assert rows[:2] == [["task", "good", "wrong", "nothing", "solution"], ["mine/greet", "1", "–", "0", "–"]]
        assert done.stdout.splitlines()[-1] == f"{mine}: 1 task, no faults, no wrong verdicts", done.stderr
    finally:
        remove(installation)
