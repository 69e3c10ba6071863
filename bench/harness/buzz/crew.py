"""A team's processes in one environment: brought in, started by one command, looked at, ended by one command."""

from __future__ import annotations

import asyncio
import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench.harness.buzz import kit
from bench.harness.buzz.failures import AgentsNotReady, EnvironmentGone
from bench.harness.buzz.fixed import TEAM
from bench.harness.buzz.programs import Environment, is_root

LOOK_S = 10
STOP_S = 5
FRAMES, IN, OUT = f"{TEAM}/frames", ".in.jsonl", ".out.jsonl"


@dataclass(frozen=True)
class Look:
    """What was seen of a team: whose process has ended, `forwarder` among them, and what is out of their reach."""

    dead: tuple[str, ...] = ()
    unreachable: tuple[str, ...] = ()


@dataclass(frozen=True)
class Crew:
    """The processes of one team. `owner` is the user that the agents run as, None for root."""

    environment: Environment
    owner: str | int | None = None

    async def bring(self, directory: Path) -> None:
        """Bring a kit in."""
        await self.environment.upload_dir(directory, TEAM)
        if not is_root(self.owner):
            whose = shlex.quote(str(self.owner))
            await self.environment.exec(f"chown -R {whose} {TEAM}", timeout_sec=LOOK_S, user="root")

    async def start(self) -> None:
        """Start everybody; all have subscribed when this returns. Raises AgentsNotReady with what was said inside."""
        result = await self.environment.exec(f"sh {TEAM}/start.sh {TEAM}", timeout_sec=kit.READY_S + LOOK_S)
        if result.return_code:
            said = [line for line in (result.stdout or "").splitlines() if not line.startswith("ready ")]
            raise AgentsNotReady("; ".join(said) or (result.stderr or "").strip() or "the start script said nothing")

    async def look(self) -> Look:
        """How they are. Raises EnvironmentGone."""
        try:
            result = await self.environment.exec(f"sh {TEAM}/alive.sh {TEAM}", timeout_sec=LOOK_S)
        except Exception as error:
            raise EnvironmentGone(f"the environment runs no command any more: {error}") from error
        if result.return_code:
            said = (result.stderr or result.stdout or "").strip()
            raise EnvironmentGone(f"the environment runs no command any more (code {result.return_code}): {said}")
        return Look(_said(result.stdout, "dead"), _said(result.stdout, "unreachable"))

    async def stop(self) -> tuple[str, ...]:
        """End everybody, with what they have started; who had ended before. Raises EnvironmentGone."""
        return _said(await self._command(f"stop.sh {TEAM}", "the agents could not be stopped"), "dead")

    async def halt(self) -> None:
        """Stop everybody, with what they have started, until `go_on`. Raises EnvironmentGone."""
        await self._command(f"stop.sh {TEAM} halt", "the agents could not be halted")

    async def go_on(self) -> None:
        """Let everybody go on. Raises EnvironmentGone."""
        await self._command(f"go_on.sh {TEAM}", "the agents could not go on")

    async def _command(self, command: str, failed: str) -> str:
        """What it says."""
        try:
            result = await self.environment.exec(f"sh {TEAM}/{command}", timeout_sec=STOP_S, user="root")
        except Exception as error:
            raise EnvironmentGone(f"{failed}: {error}") from error
        if result.return_code:
            said = (result.stdout or result.stderr or "").strip()
            raise EnvironmentGone(f"{failed}: {said}")
        return result.stdout or ""

    async def frames(self, directory: Path) -> dict[str, tuple[str, str]]:
        """What each agent and its buzz-acp said to each other: by name (to the agent, from the agent), JSON lines."""
        with tempfile.TemporaryDirectory(dir=directory) as brought:
            await self.environment.download_dir(FRAMES, brought)
            return await asyncio.to_thread(_frames, Path(brought))


def _said(output: str | None, word: str) -> tuple[str, ...]:
    """What follows the word, of each line that begins with it."""
    return tuple(line.removeprefix(f"{word} ") for line in (output or "").splitlines() if line.startswith(f"{word} "))


def _frames(directory: Path) -> dict[str, tuple[str, str]]:
    said = {path.name.removesuffix(OUT): path for path in sorted(directory.glob(f"*{OUT}"))}
    return {name: (_read(directory / f"{name}{IN}"), _read(path)) for name, path in said.items()}


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
