"""Processes known by pid and start time, since a pid alone may come to name another one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

POLL_S = 0.005
HAS_PROC = sys.platform == "linux"


@dataclass(frozen=True)
class ProcessId:
    """One process, beyond the life of its pid."""

    pid: int
    started: str
    """Opaque: ticks since boot on Linux (field 22 of /proc/PID/stat), elsewhere what `ps -o lstart` says."""

    def alive(self) -> bool:
        return start_time(self.pid) == self.started

    def signal(self, number: int) -> None:
        """Send a signal, if this very process still lives."""
        if self.alive():
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                return

    def stop(self, *steps: tuple[int, float]) -> bool:
        """End it by (signal, seconds to wait) in turn, then by SIGKILL. Whether it lived at all."""
        if not self.alive():
            return False
        for number, wait_s in (*steps, (signal.SIGKILL, 5.0)):
            self.signal(number)
            if wait_until(lambda: not self.alive(), wait_s):
                break
        return True


def identify(pid: int) -> ProcessId | None:
    """The process that now has this pid, or None if there is none or only its remains."""
    started = start_time(pid)
    return None if started is None else ProcessId(pid, started)


def start_time(pid: int) -> str | None:
    """When it began, or None where it is gone. A zombie is gone: PID 1 of a container may never reap it."""
    if HAS_PROC:
        fields = _stat(pid)
        return None if fields is None or fields[0] in "ZX" else fields[19]
    shown = _ps(pid, "stat=,lstart=")
    state, _, began = shown.partition(" ")
    return None if not state or state.startswith("Z") else began.strip()


def age_s(pid: int) -> float | None:
    """Seconds since the process began, or None where that can't be told."""
    if HAS_PROC:
        fields = _stat(pid)
        if fields is None:
            return None
        uptime = float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
        return round(max(0.0, uptime - int(fields[19]) / os.sysconf("SC_CLK_TCK")), 2)
    clock = _ps(pid, "etime=")
    days, _, rest = clock.rpartition("-")
    if not rest:
        return None
    parts = [int(part) for part in rest.split(":")]
    return float(sum(n * 60**i for i, n in enumerate(reversed(parts))) + int(days or 0) * 86400)


def command_line(pid: int) -> list[str]:
    """The program's arguments; empty where they can't be read. Elsewhere than on Linux, split at blanks."""
    if HAS_PROC:
        try:
            raw = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return []
        return [part.decode(errors="replace") for part in raw.rstrip(b"\0").split(b"\0") if part]
    return _ps(pid, "args=").split()


def wait_until(done: Callable[[], bool], wait_s: float) -> bool:
    """Whether `done` came true within the time."""
    end = time.monotonic() + wait_s
    while not done():
        if time.monotonic() > end:
            return False
        time.sleep(POLL_S)
    return True


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat after the command's name, state first."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()


def _ps(pid: int, form: str) -> str:
    return subprocess.run(
        ["ps", "-o", form, "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout.strip()
