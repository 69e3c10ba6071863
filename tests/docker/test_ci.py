"""What `.ci/run` is told where there can be no engine for the tests that need one."""

from __future__ import annotations

import os
import subprocess

import pytest

from bench.settings import ROOT

NOBODY = 64_125
NO_ENGINE = 69
"""Of docker.sh: every other code is that of the command that it ran."""


@pytest.mark.skipif(os.geteuid() != 0, reason="it takes root to become somebody else")
def test_without_root_one_line_says_so_and_nothing_is_run() -> None:
    # By standard input: a checkout may lie where only root may look.
    with (ROOT / ".ci" / "docker.sh").open() as script:
        command = ["bash", "-s", "run", "echo", "ran"]
        done = subprocess.run(command, stdin=script, user=NOBODY, cwd="/", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (NO_ENGINE, "")
    assert done.stderr == "docker.sh: no Docker engine can be had here: it takes root to start one\n"
