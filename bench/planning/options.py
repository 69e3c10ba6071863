"""What a person asked `inv bench` for, before anything of it was looked at."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from bench.settings import ROOT


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a person asked for. Relative paths count from the current directory; `root` is the project's folder.

    Numbers may come as the text that was typed: what is no number is the plan's to say.
    """

    dataset: str | None = None
    path: Path | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    layer: str | None = None
    attempts: int | str | None = None
    manifest: Path | None = None
    endpoint_config: Path | None = None
    n_concurrent: int | str = 4
    jobs_dir: Path = ROOT / "jobs"
    job_name: str | None = None
    rehearsal: bool = False
    script: str | None = None
    stack: str | None = None
    environment: str | None = None
    agent: str | None = None
    model: str | None = None
    n_tasks: int | str | None = None
    agent_kwarg: tuple[str, ...] = ()
    environment_kwarg: tuple[str, ...] = ()
    max_retries: int | str | None = None
    harbor_config: Path | None = None
    agent_programs: Path | None = None
    doors: Path | None = None
    record: bool = False
    replay: Path | None = None
    budget_usd: str | None = None
    budget_tokens: int | str | None = None
    budget_calls: int | str | None = None
    leaderboard: bool = False
    upload: bool = False
    upload_anyway: bool = False
    gui: bool = False
    fresh: bool = False
    dry_run: bool = False
    json: bool = False
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)
    root: Path = ROOT

    @property
    def uploads(self) -> bool:
        """Whether the finished job is uploaded."""
        return self.upload or self.upload_anyway
