"""A project to plan in: empty of tasks, or with some of both layers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.planning.kit import Project, project


@pytest.fixture
def home(tmp_path: Path) -> Project:
    return project(tmp_path)


@pytest.fixture
def both(home: Project) -> Project:
    """A project with tasks of both layers."""
    home.task("flow", "workflow")
    home.task("a")
    home.task("b")
    return home
