"""Where the things are that a job's configuration names: from the settings alone, so that a plan loads nothing of the
rooms that put them there."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.settings import Settings

BUILT_PROGRAMS = "agent-programs"
"""In the state directory: a link to the programs that were built last."""


def programs_directory(settings: Settings) -> Path:
    """Where the agents' programs are: the directory that a person named, else what was built last, behind a link."""
    return settings.agent_programs or settings.state_dir / BUILT_PROGRAMS


def socket_name(state_dir: Path) -> str:
    """What the private directory of the state's unix sockets is called, wherever it is."""
    digest = hashlib.sha256(os.fsencode(state_dir.absolute())).hexdigest()[:12]
    return f"bzb-{os.getuid()}-{digest}"


def door_dir(state_dir: Path) -> Path:
    """The directory of the sockets by which containers reach relay and gateway, which `bench.stack.paths` makes.

    It is a part of a job's configuration, so that it depends on the state directory alone.
    """
    return Path("/tmp") / f"{socket_name(state_dir)}-doors" / "d"  # noqa: S108  (below one that is made private)
