"""What a trial may rely on of its environment: that work can be done in it, and that its engine is still there.

A task whose container can run no command, or an engine that goes away, says nothing about the team.
"""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.docker import engine
from bench.docker.marks import PROJECT, SERVICE, project_name
from bench.errors import BuzzbenchError
from bench.files import write_atomically
from bench.scoring.outcome import Fault

if TYPE_CHECKING:
    from harbor.environments.base import BaseEnvironment

PROBE = "mkdir -p /logs/artifacts && test -w /logs/artifacts"
PROBE_S = 60
NOT_RUNNING = re.compile(r"is not running|no such container|no container found", re.I)

STOP_S = 120.0
"""What the stop of an environment may take: ten times Docker's own grace. What it leaves is found by its label."""

FAULT_FILE = "buzzbench-fault.json"
"""Beside a trial's result.json: a fault that was seen after the agents' part, {`kind`, `reason`}."""


_usable: set[Path] = set()


class EnvironmentUnusable(BuzzbenchError):
    """No work can be done in the task's environment, whoever does it."""


class EngineGone(BuzzbenchError):
    """The engine went away while the trial was under way."""


class ContainerGone(BuzzbenchError):
    """The trial's container was stopped by somebody outside of it."""


class StopTimedOut(BuzzbenchError):
    """The environment could not be stopped in time."""


def bound_stop(environment: BaseEnvironment) -> None:
    """Let no stop of the environment keep its trial, and the job with it, for ever: Harbor sets none (public case 18).

    Harbor then notes StopTimedOut beside what the trial is worth, and goes on.
    """
    stop = environment.stop

    async def bounded(delete: bool) -> None:
        try:
            async with asyncio.timeout(STOP_S):
                await stop(delete)
        except TimeoutError:
            left = "what is left of it goes with `inv down` or the next run"
            raise StopTimedOut(f"the environment was not stopped within {STOP_S:g} s; {left}") from None

    environment.stop = bounded


async def check_usable(environment: BaseEnvironment) -> None:
    """See that a command runs where the task has its working directory, and that logs can be written.

    Raises EnvironmentUnusable. Asked once for a task and process, since its attempts are alike. Our own sandbox is not
    asked: it is made so.
    """
    task = environment.environment_dir
    if environment.type() == "sandbox" or task in _usable:
        return
    result = await environment.exec(PROBE, user="root", timeout_sec=PROBE_S)
    if result.return_code:
        said = engine.last_line(f"{result.stdout or ''}\n{result.stderr or ''}") or "it said nothing"
        raise EnvironmentUnusable(f"no work can be done in it (exit code {result.return_code}): {said}")
    _usable.add(task)


class Watched:
    """Harbor's environment, with its engine asked when a command fails as it would without one.

    What a command says can be forged by who runs in the container, so it is only the reason for asking.
    """

    def __init__(self, environment: BaseEnvironment) -> None:
        self._environment = environment
        self._asks = environment.type() == "docker"
        self.gone: EngineGone | ContainerGone | None = None
        """Why the environment is known to be gone."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._environment, name)

    async def exec(self, *arguments: Any, **options: Any) -> Any:
        """Harbor's `exec`. Raises EngineGone, ContainerGone, or what Harbor's raises."""
        try:
            result = await self._environment.exec(*arguments, **options)
        except RuntimeError as error:
            await self._ask(str(error))
            raise
        if result.return_code:
            await self._ask(f"{result.stdout or ''}\n{result.stderr or ''}")
        return result

    async def upload_file(self, *arguments: Any, **options: Any) -> None:
        """Harbor's `upload_file`. Raises EngineGone, ContainerGone, or what Harbor's raises."""
        try:
            await self._environment.upload_file(*arguments, **options)
        except RuntimeError as error:
            await self._ask(str(error))
            raise

    async def _ask(self, said: str) -> None:
        if not self._asks or not (engine.ENGINE_AWAY.search(said) or NOT_RUNNING.search(said)):
            return
        self.gone = await asyncio.to_thread(_gone, project_name(self._environment.session_id))
        if self.gone:
            raise self.gone


def note_if_gone(trial_dir: Path) -> None:
    """Write down that the engine is gone, for a trial that ended with an error: nobody can say what it is worth."""
    if problem := engine.absence("Docker"):
        text = json.dumps(asdict(Fault("engine_gone", problem.what)), indent=2)
        write_atomically(trial_dir / FAULT_FILE, text + "\n")


def _gone(project: str) -> EngineGone | ContainerGone | None:
    """Why the project's main container is not there; None where it is, or where its own doings ended it."""
    if problem := engine.absence("Docker"):
        return EngineGone(problem.what)
    filters = ["--filter", f"label={PROJECT}={project}", "--filter", f"label={SERVICE}=main"]
    try:
        found = engine.inspect("container", engine.docker("container", "ls", "--all", "--quiet", *filters).split())
    except engine.DockerFailed as error:
        return EngineGone(str(error))
    if not found:
        return ContainerGone("it was removed from outside")
    state = found[0]["State"]
    if state["Running"] or state["OOMKilled"]:
        return None
    return ContainerGone(f"it was stopped from outside (exit code {state['ExitCode']})")
