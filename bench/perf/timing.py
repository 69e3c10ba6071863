"""Commands timed in turns, so that a machine that slows down slows both sides; medians, since it is shared."""

from __future__ import annotations

import contextlib
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from bench import harborcommand
from bench.settings import ROOT


def wall_s(command: Sequence[str], environment: Mapping[str, str] | None = None) -> float:
    """Wall seconds of one run. Raises CalledProcessError where it fails."""
    return timed(command, environment)[0]


def timed(command: Sequence[str], environment: Mapping[str, str] | None = None) -> tuple[float, float]:
    """Wall seconds of one run, and the CPU seconds of its tree. Raises CalledProcessError where it fails."""
    env = {k: v for k, v in (environment or os.environ).items() if k != "PYTHONDONTWRITEBYTECODE"}
    began = time.perf_counter()
    process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return time.perf_counter() - began, usage.ru_utime + usage.ru_stime


def tree_cpu_s(*pids: int) -> float:
    """CPU seconds of processes and all that they have started, with what those took that have ended."""
    import psutil

    seconds = 0.0
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            top = psutil.Process(pid)
            for process in (top, *top.children(recursive=True)):
                with contextlib.suppress(psutil.NoSuchProcess):
                    times = process.cpu_times()
                    seconds += times.user + times.system + times.children_user + times.children_system
    return seconds


def oracle(task: Path, home: Path, name: str) -> tuple[list[str], dict[str, str]]:
    """Harbor's own agent `oracle` on a task in Docker, under our overlay: the command and its environment."""
    command = [
        str(harborcommand.program()), "run", "-p", str(task), "-a", "oracle", "-e", "docker",
        "--extra-docker-compose", str(ROOT / "compose" / "trial.yaml"), "-k", "1", "-o", str(home / "jobs"), "-q", "-y",
        "--job-name", name,
    ]  # fmt: skip
    return command, {**os.environ, **harborcommand.QUIET}


def in_turns(commands: Mapping[str, Sequence[str]], *, runs: int) -> dict[str, float]:
    """Median wall seconds of each command: one warm-up each, then A B C A B C …"""
    for command in commands.values():
        wall_s(command)
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(runs):
        for name, command in commands.items():
            taken[name].append(wall_s(command))
    return {name: median(values) for name, values in taken.items()}


@contextmanager
def served(module: str) -> Iterator[str]:
    """What `python -m module` prints first, where it serves until its standard input ends: a port or a URL."""
    process = subprocess.Popen(
        [sys.executable, "-m", module], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin
    assert process.stdout
    try:
        yield process.stdout.readline().strip()
    finally:
        process.stdin.close()
        process.wait()


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of them don't exceed (nearest rank)."""
    ranked = sorted(values)
    return ranked[max(0, math.ceil(len(ranked) * share) - 1)]
