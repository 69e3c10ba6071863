"""Harbor's own program: as we start it, and as a person pastes it. Neither reports the command to a third party."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from bench.faults import shown

QUIET = {"HARBOR_TELEMETRY": "off"}
"""Harbor reports each command to a third party otherwise; it reads this when it is imported (0.26)."""


def program() -> Path:
    """The one that is installed beside this Python."""
    return Path(sys.executable).with_name("harbor")


def line(*words: str) -> str:
    """A command with these words, quoted for a shell."""
    return shlex.join([*(f"{name}={value}" for name, value in QUIET.items()), shown(program()), *words])
