"""A small project to plan with: tasks, manifests and endpoint files in a directory of its own."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from bench.errors import BuzzbenchError
from bench.planning.options import Options
from bench.planning.plan import make
from bench.planning.planned import Plan
from bench.settings import ROOT

NOW = datetime(2026, 1, 31, 23, 59, 59, tzinfo=UTC)
SCRIPT = "orch:\n  - name: finish\n    do:\n      - done: finished\n"


@dataclass(frozen=True)
class Project:
    """A project's folder with the shipped manifests, and with whatever tasks a test writes into it."""

    root: Path

    @property
    def tasks(self) -> Path:
        return self.root / "buzz-dataset"

    def task(
        self,
        name: str,
        layer: str | None = "regression",
        *,
        folder: str = "buzz-dataset",
        full_name: str | None = None,
        script: str | None = SCRIPT,
        more: str = "",
    ) -> Path:
        """A task's directory. `more` is added to its task.toml."""
        directory = self.root / folder / name
        (directory / "environment").mkdir(parents=True)
        (directory / "tests").mkdir()
        (directory / "instruction.md").write_text("Do it.\n")
        (directory / "environment/Dockerfile").write_text("FROM scratch\n")
        (directory / "tests/test.sh").write_text("true\n")
        metadata = f'[metadata]\nevaluation_layer = "{layer}"\n' if layer else ""
        text = f'[task]\nname = "{full_name or f"buzz/{name}"}"\n{metadata}{more}'
        (directory / "task.toml").write_text(text)
        if script:
            (directory / "rehearsal").mkdir()
            (directory / "rehearsal/good.yaml").write_text(script)
        return directory

    def manifest(self, data: dict[str, Any], name: str = "team") -> Path:
        """A manifest file with that content."""
        path = self.root / "manifests" / f"{name}.yaml"
        path.write_text(yaml.safe_dump(data, sort_keys=False))
        return path

    def persona(self, text: str, name: str = "own") -> dict[str, str]:
        """A prompt file, and the reference to it that a manifest holds."""
        file = self.root / f"manifests/personas/{name}.md"
        file.write_text(text)
        return {"path": f"personas/{name}.md", "sha256": hashlib.sha256(text.encode()).hexdigest()}

    def team(self, **changes: Any) -> dict[str, Any]:
        """The data of a good manifest: a lead and two workers in our own loop."""
        persona = self.persona("Do what is asked.\n")
        member = {
            "endpoint": "claude-sonnet-4-6",
            "model_revision": "claude-sonnet-4-6",
            "harness": "builtin",
            "prompt": persona,
        }
        return {
            "schema_version": "1",
            "condition": "team",
            "roster": [
                {"id": "orch", "kind": "orchestrator", "role": "lead", **member},
                {"id": "worker", "kind": "worker", "role": "implementer", "count": 2, **member},
            ],
            "prices": {"claude-sonnet-4-6": {"input": 3, "cached_input": 0.3, "output": 15}},
            "trial_budget": {"timeout_seconds": 900},
        } | changes

    def options(self, **changes: Any) -> Options:
        """A dry run of a rehearsal of all Buzz tasks, but for the changes."""
        defaults: dict[str, Any] = {"root": self.root, "jobs_dir": self.root / "jobs", "now": NOW, "environ": {}}
        return Options(**defaults | {"path": self.tasks, "rehearsal": True, "dry_run": True} | changes)

    def plan(self, **changes: Any) -> Plan:
        return make(self.options(**changes))

    def files(self) -> set[Path]:
        """Everything under the project's folder."""
        return set(self.root.rglob("*"))


def project(root: Path) -> Project:
    """A project in an empty directory."""
    shutil.copytree(ROOT / "manifests", root / "manifests")
    (root / "buzz-dataset").mkdir()
    return Project(root)


def refused(home: Project, **changes: Any) -> str:
    """What is said of a plan that is refused."""
    with pytest.raises(BuzzbenchError) as caught:
        home.plan(**changes)
    return str(caught.value)


def real_team(project: Project, harness: str = "buzz-agent") -> Path:
    data = project.team()
    for member in data["roster"]:
        member["harness"] = harness
    return project.manifest(data)
