"""A real stack for the trial's tests, once for all of them, and trials on it."""

from __future__ import annotations

import logging
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest

from bench import manifest
from bench.settings import ROOT
from bench.stack.postgres import Postgres
from bench.trial import session
from bench.trial.agent import TeamAgent
from tests.ports import free_port
from tests.standins.programs import REAL_PROGRAMS
from tests.standins.programs import make as make_programs
from tests.trial.harborjobs import HarborJobs
from tests.trial.left import Left
from tests.trial.realteams import RealBench
from tests.trial.services import Stack, Workspace, remove


@pytest.fixture(scope="session")
def shared_stack(postgres_server: Postgres) -> Iterator[Stack]:
    """Relay and gateway for tests that don't hurt them."""
    yield from _stack(postgres_server)


@pytest.fixture
def own_stack(postgres_server: Postgres) -> Iterator[Stack]:
    """Relay and gateway that a test may stop."""
    yield from _stack(postgres_server)


def _stack(server: Postgres) -> Iterator[Stack]:
    home = Path(tempfile.mkdtemp(prefix="bzb-test-"))
    database = f"trial_{uuid.uuid4().hex}"
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {database}".encode())
    stack = Stack.start(home, server.dsn.replace("dbname=postgres", f"dbname={database}"), free_port())
    try:
        yield stack
    finally:
        stack.stop()
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {database} WITH (FORCE)".encode())
        remove(home)


GOOD = """
orch:
  - name: delegate
    expect: ["make the file"]
    do:
      - send: {mention: [worker-1], text: "please write part 1"}
      - send: {mention: [worker-2], text: "please write part 2"}
  - name: merge
    expect: ["REPORT 1", "REPORT 2"]
    do:
      - run: "cat part1 part2 > out"
  - name: finish
    on: result
    do:
      - done: "merged"
worker:
  - name: write
    expect: ["please write part {{index}}"]
    do:
      - run: "echo {{index}} > part{{index}}"
  - name: report
    on: result
    do:
      - send: {mention: [orch], text: "REPORT {{index}}", reply: true}
"""


@dataclass
class Bench:
    """Makes trials of one job on a stack."""

    stack: Stack
    job_dir: Path
    tasks: Path
    manifest: Path = ROOT / "manifests" / "rehearsal.yaml"
    numbers: Iterator[int] = field(default_factory=lambda: iter(range(1, 1000)))

    def task(
        self, name: str, script: str = GOOD, *, agent_timeout_s: float = 60, instruction: str = "make the file"
    ) -> Path:
        """A task directory with a script `good`."""
        path = self.tasks / name
        for part in ("environment", "rehearsal", "tests"):
            (path / part).mkdir(parents=True)
        (path / "task.toml").write_text(f'[task]\nname = "buzz/{name}"\n[agent]\ntimeout_sec = {agent_timeout_s}\n')
        (path / "instruction.md").write_text(instruction)
        (path / "rehearsal" / "good.yaml").write_text(script)
        return path

    def trial(self, task: Path, *, manifest_path: Path | None = None, **options: Any) -> Trial:
        """A trial that is ready to run."""
        trial_dir = self.job_dir / f"{task.name}__{next(self.numbers)}"
        (trial_dir / "agent").mkdir(parents=True)
        (trial_dir / "config.json").write_text("{}")
        workspace = self.tasks / f"workspace-{trial_dir.name}"
        workspace.mkdir()
        path = manifest_path or self.manifest
        terms = {
            "manifest": str(path),
            "condition_sha256": manifest.load(path).sha256,
            "rehearsal": "good",
            **options,
        }
        agent = TeamAgent(logs_dir=trial_dir / "agent", logger=logging.getLogger("test"), **terms)
        place, instruction = Workspace(workspace, task / "environment"), (task / "instruction.md").read_text()
        return Trial(agent, place, instruction, directory=trial_dir)


@dataclass
class Trial(Left):
    """One trial and what it left."""

    agent: TeamAgent
    workspace: Workspace
    instruction: str

    async def run(self) -> None:
        await self.agent.run(self.instruction, self.workspace, self.context)


@pytest.fixture
async def bench(shared_stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Trials on the shared stack."""
    async for made in _bench(shared_stack, tmp_path, monkeypatch):
        yield made


@pytest.fixture
async def own_bench(own_stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Trials on a stack that the test may hurt."""
    async for made in _bench(own_stack, tmp_path, monkeypatch):
        yield made


@pytest.fixture
async def harbor(shared_stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Real Harbor jobs on the shared stack."""
    monkeypatch.setenv("HARBOR_TELEMETRY", "off")
    yield HarborJobs(shared_stack, tmp_path, monkeypatch)
    await session.close()


@pytest.fixture(scope="session")
def standins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stand-ins for Buzz's programs."""
    return make_programs(tmp_path_factory.mktemp("programs"))


@pytest.fixture(scope="session")
def programs(standins: Path) -> Path:
    """Buzz's own programs where BUZZBENCH_REAL_PROGRAMS names a directory with them, else the stand-ins."""
    return REAL_PROGRAMS or standins


@pytest.fixture
async def real(bench: Any, programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Trials of real agents on the shared stack."""
    async for made in _real(bench, programs, tmp_path, monkeypatch):
        yield made


@pytest.fixture
async def own_real(own_bench: Any, programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Trials of real agents on a stack that the test may hurt."""
    async for made in _real(own_bench, programs, tmp_path, monkeypatch):
        yield made


async def _real(bench: Bench, programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("HARBOR_TELEMETRY", "off")
    made = RealBench(bench, tmp_path, monkeypatch)
    made.use(programs)
    yield made
    await made.close()


async def _bench(stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    job = f"job-{tmp_path.name}"
    monkeypatch.setenv("BUZZBENCH_RUN_DIR", str(stack.run_dir(job)))
    made = Bench(stack, tmp_path / job, tmp_path / "tasks")
    made.job_dir.mkdir()
    yield made
    await session.close()
