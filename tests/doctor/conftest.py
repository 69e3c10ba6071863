"""A context to check: a small project, an installation that nothing was made of yet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.doctor.check import Context
from bench.settings import ROOT, Settings
from tests.planning.kit import Project, project
from tests.ports import free_port

type Make = Callable[..., Context]


@pytest.fixture
def home(tmp_path: Path) -> Project:
    return project(tmp_path)


@pytest.fixture
def make(home: Project) -> Make:
    """A context over `home`, but for the changes; `settings` are changes of its settings."""

    def context(settings: dict[str, Any] | None = None, **changes: Any) -> Context:
        places: dict[str, Any] = {
            "state_dir": home.root / "state",
            "jobs_dir": home.root / "jobs",
            "relay_port": free_port(),
        }
        given: dict[str, Any] = {
            "manifest": ROOT / "manifests/builtin-solo.yaml",
            "endpoint_config": ROOT / "manifests/endpoints/anthropic-live.json",
            "dataset": home.tasks,
            "environ": {},
            "root": home.root,
        }
        return Context(Settings(**places | (settings or {})), **given | changes)

    return context
