"""The environment that Buzzbench runs in: Python, uv, and what is installed beside what the lock says."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from bench.develop import UV_PIN
from bench.doctor.check import Check, Context, Found

OLDEST, NEWEST = (3, 12), (3, 14)
"""Of Python: what the code needs, and the newest that the lock has wheels for (DESIGN, "Bootstrap")."""

PINNED = re.compile(r"^([A-Za-z0-9][\w.-]*)==([\w.!+-]+)(?: ; (.*?))? \\$", re.MULTILINE)
"""A line of requirements.lock, such as `colorama==0.4.6 ; sys_platform == 'win32' \\`."""

NAMES_SHOWN = 3
ANEW = "run any `./inv` command: it installs what requirements.lock says"


def python(context: Context) -> Found:
    """A version that the code and the lock are for, in the project's own environment."""
    version = ".".join(map(str, sys.version_info[:3]))
    if not OLDEST <= sys.version_info[:2] <= NEWEST:
        wanted = f"{'.'.join(map(str, OLDEST))} to {'.'.join(map(str, NEWEST))}"
        return Found("fail", f"{version}; {wanted} will do", "install one, or set BUZZBENCH_PYTHON to it")
    if Path(sys.prefix).resolve() != (context.root / ".venv").resolve():
        return Found("warn", f"{version} in {sys.prefix}, not in the project's .venv", "start with ./inv")
    return Found("ok", f"{version} in .venv")


def uv(context: Context) -> Found:
    """Only a change of the lock needs it: `./inv` fetches its own where none is installed."""
    private = context.root / ".tools" / f"uv-{UV_PIN}" / "bin" / "uv"
    found = context.environ.get("UV") or shutil.which("uv", path=context.environ.get("PATH"))
    program = found or (str(private) if private.exists() else None)
    if program is None:
        return Found("ok", f"none is installed; ./inv fetches {UV_PIN} when it needs it")
    shown = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    if shown.returncode:
        return Found("warn", f"{program} does not run", "install uv, or unset UV")
    return Found("ok", f"{shown.stdout.split()[1]} at {program}")


def lock(context: Context) -> Found:
    """What is installed is what the lock says (public case 59)."""
    text = _lock_text(context)
    drift = list(drifted(text, installed()))
    if drift:
        shown = ", ".join(drift[:NAMES_SHOWN]) + (
            f" and {len(drift) - NAMES_SHOWN} more" if drift[NAMES_SHOWN:] else ""
        )
        return Found("fail", f"differs from requirements.lock: {shown}", ANEW)
    return Found("ok", f"{len(PINNED.findall(text))} packages as in requirements.lock")


def harbor(context: Context) -> Found:
    """The version that the tests are for, by its metadata: a `harbor` on the path may be any script (case 16)."""
    pinned = {name: version for name, version, _ in PINNED.findall(_lock_text(context))}["harbor"]
    found = installed().get("harbor", "not installed")
    if found != pinned:
        return Found("fail", f"{found}; {pinned} is pinned, and results name it", ANEW)
    return Found("ok", found)


def _lock_text(context: Context) -> str:
    return (context.root / "requirements.lock").read_text(encoding="utf-8")


def installed() -> dict[str, str]:
    """What is installed, by normalised name."""
    return {normal(found.name): found.version for found in metadata.distributions()}


def drifted(lock: str, there: dict[str, str]) -> Iterator[str]:
    """What differs between a lock and what is there: `invoke 3.0.2, not 3.0.3`, `rich is missing`.

    A package with a marker may be absent: it is for another system or Python.
    """
    for name, version, marker in PINNED.findall(lock):
        found = there.get(normal(name))
        if found is None and not marker:
            yield f"{name} is missing"
        elif found is not None and found != version:
            yield f"{name} {found}, not {version}"


def normal(name: str) -> str:
    """A package's name as the index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


CHECKS = (
    Check("python", python),
    Check("uv", uv, required=False),
    Check("lock", lock, needs=("python",)),
    Check("harbor", harbor, needs=("python",)),
)
