"""Real Harbor jobs of one trial each, with a team of ours in the sandbox on a shared stack."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from harbor.job import Job
from harbor.models.job.config import JobConfig

from bench import manifest, records
from bench.records.job import TrialRecord
from bench.records.planrecord import JobPlanRecord
from bench.settings import ROOT
from tests.trial.services import Stack

MANIFEST = ROOT / "manifests" / "rehearsal.yaml"


@dataclass(frozen=True)
class Ran:
    """One trial: Harbor's result, its directory, and what the records make of it."""

    result: Any
    directory: Path
    record: TrialRecord

    def told(self, step: int | None = None) -> dict[str, Any]:
        """What our agent says of the trial, or of one step of its task."""
        part = self.result if step is None else self.result.step_results[step]
        found: dict[str, Any] = part.agent_result.metadata["buzzbench"]
        return found


@dataclass
class HarborJobs:
    """Runs jobs of one trial."""

    stack: Stack
    home: Path
    monkeypatch: pytest.MonkeyPatch
    numbers: Any = field(default_factory=lambda: count(1))

    async def run(self, task: Path, script: str | None = "good", **options: Any) -> Ran:
        """A team's trial. `options`: `manifest_path`, `endpoints`, and `environment` for the sandbox's own."""
        path = options.get("manifest_path", MANIFEST)
        kwargs = {
            "manifest": str(path),
            "condition_sha256": manifest.load(path).sha256,
            "endpoints": options.get("endpoints"),
            "rehearsal": script,
        }
        agent = {"name": "bench.trial.agent:TeamAgent", "kwargs": kwargs}
        return await self.play(task, agent, options.get("environment", {}), script)

    async def play(
        self, task: Path, agent: dict[str, Any], environment: dict[str, Any], script: str | None = None
    ) -> Ran:
        """The trial of any agent, given in Harbor's terms."""
        name = f"job-{next(self.numbers)}"
        self.monkeypatch.setenv("BUZZBENCH_RUN_DIR", str(self.stack.run_dir(f"{self.home.name}-{name}")))
        config = {
            "job_name": name,
            "jobs_dir": str(self.home),
            "quiet": True,
            "agents": [agent],
            "environment": {
                "import_path": "bench.sandbox.environment:SandboxEnvironment",
                "kwargs": environment,
            },
            "tasks": [{"path": str(task)}],
        }
        created = await Job.create(JobConfig.model_validate(config))
        (result,) = (await created.run()).trial_results
        directory = self.home / name / result.trial_name
        plan = JobPlanRecord(name, script, "test", "", "embedded", "sandbox", 1, {result.task_name: task})
        return Ran(result, directory, records.read_trial(directory, plan))
