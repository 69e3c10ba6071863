"""Labels on what we make in an engine: whose it is, and which process needs it.

Compose fills them in from variables (compose/trial.yaml, benchmark.yaml), since the files themselves are the same for
all, and a trial's configuration must not change from run to run.
"""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

from bench.processes import ProcessId, identify

STATE, PROCESS = "buzzbench.state", "buzzbench.process"
PROJECT, SERVICE = "com.docker.compose.project", "com.docker.compose.service"
"""Compose's own."""

STATE_VARIABLE, PROCESS_VARIABLE = "BUZZBENCH_STATE_LABEL", "BUZZBENCH_PROCESS_LABEL"


def state_label(state_dir: Path) -> str:
    """Names the installation: the state directory's path, which also tells a person whose data these are."""
    return str(state_dir.absolute())


def project_name(session: str) -> str:
    """The Compose project of Harbor's environment of that session id (its Docker environment makes it so)."""
    lowered = session.lower()
    return re.sub(r"[^a-z0-9_-]", "-", lowered if re.match(r"[a-z0-9]", lowered) else f"0{lowered}")


def mark_this_process(state_dir: Path) -> None:
    """From now on containers of this process's trials say whose they are. Call it before the first one starts."""
    me = identify(os.getpid())
    assert me
    os.environ[STATE_VARIABLE] = state_label(state_dir)
    os.environ[PROCESS_VARIABLE] = str(Owner(platform.node(), me))


@dataclass(frozen=True)
class Owner:
    """The process that started a container, on its host."""

    host: str
    process: ProcessId

    def __str__(self) -> str:
        return f"{self.host}/{self.process.pid}/{self.process.started}"

    @classmethod
    def parse(cls, label: str) -> Owner | None:
        """The owner that a label names, or None where it names none."""
        parts = label.rsplit("/", 2)
        if len(parts) != 3 or not parts[1].isdecimal():
            return None
        return cls(parts[0], ProcessId(int(parts[1]), parts[2]))

    @property
    def is_gone(self) -> bool:
        """Whether it is known to have ended: of another host's process nothing is known."""
        return self.host == platform.node() and not self.process.alive()
