"""Where a trial takes place."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.trial.session import RECEIPTS, Session

if TYPE_CHECKING:
    from harbor.environments.base import BaseEnvironment


@dataclass(frozen=True)
class Stage:
    """Where a trial takes place. `logs_dir` is `<trial>/agent`; `version` is ours.

    The task may have steps; `skills` is what agents are told of the skills that it brings.
    """

    session: Session
    environment: BaseEnvironment
    logs_dir: Path
    version: str
    logger: logging.Logger
    has_steps: bool = False
    skills: str = ""

    @property
    def trial_dir(self) -> Path:
        return self.logs_dir.parent

    @property
    def receipts(self) -> Path:
        """The journal of the job's model calls."""
        return self.trial_dir.parent / RECEIPTS
