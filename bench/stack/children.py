"""Programs that outlive the one who started them, and what they say in their logs."""

from __future__ import annotations

import atexit
import subprocess
from pathlib import Path

_kept: list[subprocess.Popen[bytes]] = []


def keep(child: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:
    """Hold a detached child for as long as this process lives, so that it is reaped when it ends."""
    _kept[:] = [*(known for known in _kept if known.poll() is None), child]
    return child


@atexit.register
def _let_go() -> None:
    """They outlive this process on purpose: Popen's warning at the end is for children that were forgotten."""
    for child in _kept:
        if child.poll() is None:
            child.returncode = 0


def size_bytes(log: Path) -> int:
    """The log's size, 0 where there is none: what is behind it is new."""
    return log.stat().st_size if log.exists() else 0


def new_lines(log: Path, before_bytes: int) -> str:
    """What the log has got since it had that size."""
    with log.open("rb") as file:
        file.seek(before_bytes)
        return file.read().decode(errors="replace")
