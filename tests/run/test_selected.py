"""Globs of a registry dataset: each matches something, or nothing runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.errors import InvalidInput
from bench.run.selected import check

NAMES = ("cobol-modernization", "cobol-payroll", "fix-git", "sqlite-recovery", "train-model", "vim-golf")


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    """A registry file of one dataset, in Harbor's format."""
    tasks = [{"name": name, "path": str(tmp_path / "tasks" / name)} for name in NAMES]
    dataset = {"name": "set", "version": "1.0", "description": "", "tasks": tasks}
    path = tmp_path / "registry.json"
    path.write_text(json.dumps([dataset]))
    return path


async def said(registry: Path, **globs: Any) -> list[str]:
    from harbor.models.job.config import JobConfig

    dataset = {"name": "set", "version": "1.0", "registry_path": str(registry)} | globs
    return await check(JobConfig.model_validate({"datasets": [dataset]}))


async def test_how_many_of_how_many_tasks_are_chosen_is_said(registry: Path) -> None:
    """Case 1."""
    assert await said(registry, task_names=["cobol*", "vim*"], exclude_task_names=["*payroll"]) == [
        "2 of 6 tasks of set"
    ]
    assert await said(registry, exclude_task_names=["cobol*"], n_tasks=3) == ["3 of 6 tasks of set"]


async def test_without_globs_nothing_is_asked(registry: Path) -> None:
    assert await said(registry) == []


async def test_every_glob_that_matches_nothing_is_named_with_the_nearest_tasks(registry: Path) -> None:
    """Case 1: Harbor would have run all that an exclusion with a typing mistake was meant to leave out."""
    with pytest.raises(InvalidInput) as caught:
        await said(registry, task_names=["fix*", "fix_git"], exclude_task_names=["cobal*", "zzz"])
    assert str(caught.value).splitlines() == [
        "--include-task fix_git: matches no task; the nearest are fix-git",
        "--exclude-task cobal*: matches no task; the nearest are cobol-payroll",
        f"--exclude-task zzz: matches no task; there are {', '.join(NAMES[:5])}, …",
    ]
