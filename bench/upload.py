"""`bench --upload`: a finished job to Harbor Hub, through Harbor's own command."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from bench import harborcommand
from bench.errors import BuzzbenchError, Problem
from bench.faults import shown

CREDENTIALS = Path(".harbor", "credentials.json")
"""Where `harbor auth login` keeps them, below the home directory (harbor.auth.constants of 0.26)."""


ANYWAY = "--upload-anyway uploads it all the same"


def problem(environ: Mapping[str, str]) -> Problem | None:
    """What is missing to upload, found before a job costs anything; None where nothing is."""
    home = Path(environ.get("HOME") or Path.home())
    if environ.get("HARBOR_API_KEY") or (home / CREDENTIALS).is_file():
        return None
    return Problem(
        "--upload",
        "not logged in to Harbor Hub",
        f"run `{harborcommand.line('auth', 'login')}`, or set HARBOR_API_KEY",
        lacks=True,
    )


def command(job_dir: Path) -> list[str]:
    """Harbor's command for one job."""
    return [str(harborcommand.program()), "upload", str(job_dir)]


def upload(job_dir: Path) -> None:
    """Upload a job; Harbor's output goes to standard error. Raises BuzzbenchError with the command to repeat."""
    quietly = {**os.environ, **harborcommand.QUIET}
    done = subprocess.run(command(job_dir), env=quietly, stdout=sys.stderr, check=False)
    if done.returncode:
        repeat = harborcommand.line("upload", shown(job_dir))
        raise BuzzbenchError(f"the upload ended with {done.returncode}; the job is kept", fix=f"repeat `{repeat}`")
