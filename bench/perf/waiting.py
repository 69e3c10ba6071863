"""What a job costs while all its trials wait for their models: CPU seconds, sampled beside the running command."""

from __future__ import annotations

import json
import time
from pathlib import Path

from bench.perf.timing import tree_cpu_s

SETTLED_S = 3.0
"""After the last trial has begun its work, and before the first ends it: the commands of both are no waiting."""


class Samples:
    """CPU seconds of a command's tree, and of the relay and gateway of its installation, over time."""

    def __init__(self, state_dir: Path) -> None:
        ready = [state_dir / "services" / f"{name}.ready" for name in ("relay", "gateway")]
        self._services = [int(json.loads(path.read_text(encoding="utf-8"))["pid"]) for path in ready]
        self._taken: list[tuple[float, float, float]] = []

    def take(self, pid: int) -> None:
        """One sample, of the command with this pid."""
        self._taken.append((time.time(), tree_cpu_s(pid), tree_cpu_s(*self._services)))

    def a_minute(self, since: float, until: float) -> tuple[float, float]:
        """(Command, services): seconds of CPU for a minute between two moments (Unix time) of the command's run."""
        inside = [sample for sample in self._taken if since + SETTLED_S <= sample[0] <= until - SETTLED_S]
        (began, command, services), (ended, command_then, services_then) = inside[0], inside[-1]
        minutes = (ended - began) / 60
        return (command_then - command) / minutes, (services_then - services) / minutes
