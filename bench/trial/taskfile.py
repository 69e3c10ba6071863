"""What a trial's agent reads of its task: its task.toml, and its name."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any


def definition(task_dir: Path) -> dict[str, Any]:
    """The task.toml. Raises OSError and TOMLDecodeError."""
    return tomllib.loads((task_dir / "task.toml").read_text(encoding="utf-8"))


def name(task_dir: Path) -> str:
    """`[task].name`, else the directory's name."""
    return str((definition(task_dir).get("task") or {}).get("name") or task_dir.name)
