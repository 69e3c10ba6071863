"""The app as a process: begun in a session of its own, known again by its record, waited for, closed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from bench.errors import BuzzbenchError
from bench.files import make_private_directory, write_private
from bench.gui import appstate
from bench.nostr import Key
from bench.processes import ProcessId, identify
from bench.settings import ROOT, Settings
from bench.stack import paths
from bench.stack.children import keep

CLOSE_S = 10.0


def running(state_dir: Path) -> ProcessId | None:
    """The app that is open, or is being built, or None."""
    try:
        process = ProcessId(**json.loads(_record(state_dir).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return process if process.alive() else None


def log(state_dir: Path) -> Path:
    """Where an app beside a run says what it says."""
    return paths.log(state_dir, "gui")


def begin(settings: Settings, relay_url: str, user: Key, *, log: bool) -> subprocess.Popen[bytes]:
    """Start what prepares and becomes the app. It says what it does on standard error, or in its log."""
    assert settings.buzz_source
    order = {"checkout": str(settings.buzz_source), "relay_url": relay_url, "private_key": user.secret}
    file = paths.log(settings.state_dir, "gui")
    make_private_directory(file.parent)
    with file.open("ab") as kept:
        output = kept if log else sys.stderr
        child = keep(
            subprocess.Popen(
                [sys.executable, "-m", "bench.gui.app"],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                cwd=ROOT,
                env=without_keys(os.environ),
                start_new_session=True,
            )
        )
    assert child.stdin
    with child.stdin as stdin:
        stdin.write(json.dumps(order).encode())
    if process := identify(child.pid):
        write_private(_record(settings.state_dir), json.dumps(asdict(process)))
    return child


def wait(app: subprocess.Popen[bytes]) -> None:
    """Until it is closed. Ctrl-C closes it. Raises BuzzbenchError where it fails."""
    try:
        code = app.wait()
    except BaseException:
        close(app)
        raise
    if code:
        raise BuzzbenchError(f"it ended with {code}: see the lines above", where="gui")


def close(app: subprocess.Popen[bytes]) -> None:
    """End the app and all that it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(app.pid, number)
            app.wait(CLOSE_S)
        except subprocess.TimeoutExpired:
            continue
        except ProcessLookupError:
            return


def forget(state_dir: Path) -> None:
    """Remove what an app that was opened from here kept of its own (row U3), unless it is still open."""
    record = _record(state_dir)
    if record.exists() and running(state_dir) is None:
        appstate.forget()
        record.unlink()


def without_keys(environ: Mapping[str, str]) -> dict[str, str]:
    """An environment without any provider's key: the app has no use for one."""
    return {name: value for name, value in environ.items() if not name.endswith("_API_KEY")}


def _record(state_dir: Path) -> Path:
    return state_dir / "gui.json"
