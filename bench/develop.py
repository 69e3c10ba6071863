"""Tasks of those who work on Buzzbench itself: test, check, lock."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bench.errors import BuzzbenchError, MachineLacks
from bench.settings import ROOT

UV_PIN = "0.13.9"
"""The uv that ./inv fetches where none is installed."""


def test(*, fast: bool, docker: bool, match: str) -> None:
    """Run pytest; its exit code is the task's."""
    marks = "docker and not stress" if docker else "not stress and not docker and not browser"
    if fast:
        marks += " and not slow"
    _run("the tests", "-m", "pytest", "-m", marks, *(["-k", match] if match else []))


def stress(*, match: str) -> None:
    """Run the tests that load and hurt the whole for minutes; their seeds are printed, and show where one fails."""
    _run("the stress tests", "-m", "pytest", "-m", "stress and not docker", *(["-k", match] if match else []))


def check() -> None:
    """Run every check, and fail after all of them if one did."""
    checks = (
        ("ruff check", ("-m", "ruff", "check", ".")),
        ("ruff format", ("-m", "ruff", "format", "--check", ".")),
        ("mypy", ("-m", "mypy")),
        ("generated texts", ("-m", "bench.helptexts", "--check")),
    )
    failed = [name for name, arguments in checks if _status(*arguments)]
    if failed:
        raise BuzzbenchError(
            f"not clean: {', '.join(failed)}",
            fix="`.venv/bin/ruff check --fix .` and `ruff format .` mend most",
        )


def lock(*, upgrade: bool) -> None:
    """Write requirements.lock anew: hashes of every wheel, and no registry's name."""
    command = [
        str(_uv()), "pip", "compile", "--universal", "--generate-hashes", "--no-header", "--quiet",
        "--python-version", "3.12", "--group", "dev", "pyproject.toml", "--output-file", "requirements.lock",
    ]  # fmt: skip
    if upgrade:
        command.append("--upgrade")
    if subprocess.run(command, cwd=ROOT, check=False).returncode:
        raise BuzzbenchError("requirements.lock was not renewed: see the lines above")
    print("requirements.lock is renewed; the next ./inv installs it", file=sys.stderr)


def _uv() -> Path:
    from shutil import which

    private = ROOT / ".tools" / f"uv-{UV_PIN}" / "bin" / "uv"
    found = os.environ.get("UV") or which("uv") or (str(private) if private.exists() else None)
    if not found:
        raise MachineLacks.of("lock", "uv is not here", f"`python3 -m pip install uv=={UV_PIN}`")
    return Path(found)


def _run(what: str, *arguments: str) -> None:
    if code := _status(*arguments):
        raise BuzzbenchError(f"{what} ended with {code}")


def _status(*arguments: str) -> int:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.run([sys.executable, *arguments], cwd=ROOT, env=environment, check=False).returncode
