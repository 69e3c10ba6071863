"""What holds for root holds for an ordinary user, whose sandboxes are made another way."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.sandbox import probe
from bench.settings import ROOT

USER = "54321"
ROOMS = ("layout", "launch", "command", "transfer")


def _reachable(*paths: Path) -> Iterator[str]:
    """bubblewrap's arguments by which anybody reaches the paths, where a directory above is closed to others."""
    opened: set[Path] = set()
    for path in paths:
        above = list(reversed(path.parents))
        closed = next((directory for directory in above if not directory.stat().st_mode & 0o001), None)
        if closed is None:
            continue
        if closed not in opened:
            yield from ("--perms", "0755", "--tmpfs", str(closed))
            opened.add(closed)
        for directory in above[above.index(closed) + 1 :]:
            yield from ("--perms", "0755", "--dir", str(directory))
        yield from ("--bind", str(path), str(path))


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="all tests run as an ordinary user already")
def test_an_ordinary_users_sandbox_is_as_tight_as_roots() -> None:
    home = Path(tempfile.mkdtemp(prefix="bzb-user-"))
    try:
        os.chown(home, int(USER), int(USER))
        done = subprocess.run(
            [
                *(str(probe.tools().bwrap), "--die-with-parent", "--dev-bind", "/", "/"),
                *_reachable(Path(sys.base_prefix), ROOT),
                *("--", "setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"),
                *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={home / 'tests'}"),
                *(f"tests/sandbox/test_{room}.py" for room in ROOMS),
            ],
            cwd=ROOT,
            env={"PATH": os.environ["PATH"], "HOME": str(home)},
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        shutil.rmtree(home)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "skipped" not in done.stdout
