"""Trials of real agents: the stand-ins' programs in a real sandbox, on a real stack."""

from __future__ import annotations

import asyncio
import logging
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from harbor.models.task.config import EnvironmentConfig as TaskEnvironment
from harbor.models.trial.paths import TrialPaths

from bench import manifest
from bench.sandbox.environment import SandboxEnvironment
from bench.trial.agent import TeamAgent
from tests.standins.programs import REAL_PROGRAMS
from tests.trial.left import Left

TRIED_SOON = "ENV STANDIN_TICK_S=1\n"
"""For an image: buzz-acp tries a failed turn again at its next tick of 30 s, the stand-in then at one of a second."""

TRIED_AGAIN_S = 7 if REAL_PROGRAMS is None else 31
"""So long at most a failed turn waits for its second try, then: its own pause is 4 to 6 s."""

OURS = r"buzz-acp|buzz-agent|buzz-dev-mcp"


@dataclass
class RealTrial(Left):
    """One trial and what it left."""

    agent: TeamAgent
    environment: SandboxEnvironment
    instruction: str

    async def run(self) -> None:
        """As Harbor does it, but for the verifier."""
        await self.agent.setup(self.environment)
        await self.agent.run(self.instruction, self.environment, self.context)

    async def begun(self) -> None:
        """Return when its script has made the file `begun`, of which nothing else tells."""
        while await self.say("ls /app") != "begun":  # noqa: ASYNC110
            await asyncio.sleep(0.05)

    async def say(self, command: str) -> str:
        """What a command says in the environment."""
        result = await self.environment.exec(command)
        return (result.stdout or "").strip()

    async def processes(self) -> list[str]:
        """Those of the agents that live in the environment."""
        return (await self.say(f"pgrep -af '{OURS}' | grep -v pgrep")).splitlines()


@dataclass
class RealBench:
    """Makes trials of one job whose agents are real, and stops their environments."""

    bench: Any
    home: Path
    monkeypatch: pytest.MonkeyPatch
    made: list[SandboxEnvironment] = field(default_factory=list)

    def use(self, programs: Path) -> None:
        """Play with these programs from here on."""
        self.monkeypatch.setenv("BUZZBENCH_AGENT_PROGRAMS", str(programs))
        self.bench.stack.run_dir(self.bench.job_dir.name)

    def manifest(self, harness: str = "buzz-agent") -> Path:
        """The rehearsal's team as real agents."""
        given = Path(self.bench.manifest)
        text = given.read_text().replace("harness: builtin", f"harness: {harness}")
        path = self.home / "real.yaml"
        path.write_text(text)
        shutil.copytree(given.parent / "personas", self.home / "personas", dirs_exist_ok=True)
        return path

    async def trial(
        self,
        task: Path,
        *,
        manifest_path: Path | None = None,
        dockerfile: str = "",
        network: str = "host",
        **options: Any,
    ) -> RealTrial:
        """A trial that is ready to run, its environment up."""
        trial_dir = self.bench.job_dir / f"{task.name}__{next(self.bench.numbers)}"
        (trial_dir / "agent").mkdir(parents=True)
        (trial_dir / "config.json").write_text("{}")
        (task / "environment" / "Dockerfile").write_text(f"FROM debian\nWORKDIR /app\n{dockerfile}")
        environment = SandboxEnvironment(
            environment_dir=task / "environment",
            environment_name=task.name,
            session_id=f"{trial_dir.name}__env",
            trial_paths=TrialPaths(trial_dir),
            task_env_config=TaskEnvironment.model_validate({}),
            logger=logging.getLogger("test"),
            auto_mounts=[
                {"type": "bind", "source": "/x", "target": f"/logs/{name}"} for name in ("agent", "artifacts")
            ],
            network=network,
        )
        await environment.start(force_build=False)
        self.made.append(environment)
        path = manifest_path or self.manifest()
        terms = {"manifest": str(path), "condition_sha256": manifest.load(path).sha256, "rehearsal": "good", **options}
        agent = TeamAgent(logs_dir=trial_dir / "agent", logger=logging.getLogger("test"), **terms)
        return RealTrial(agent, environment, (task / "instruction.md").read_text(), directory=trial_dir)

    async def close(self) -> None:
        for environment in self.made:
            await environment.stop(delete=True)
