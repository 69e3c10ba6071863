"""A sandbox of this machine, and ways to look at it from outside."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bench.sandbox import command, probe
from bench.sandbox.command import Command
from bench.sandbox.instance import Instance
from bench.sandbox.layout import ENVIRON, Layout


class Shell:
    """A sandbox, with the one thing that most tests do in it."""

    def __init__(self, sandbox: Instance) -> None:
        self.sandbox = sandbox

    async def run(self, line: str, *, timeout_s: float | None = None) -> tuple[int, str, str]:
        """Code, standard output and standard error of a bash command line in `/app`."""
        asked = Command(bash=line, cwd="/app", environ=ENVIRON, timeout_s=timeout_s)
        return await command.output(self.sandbox, asked)

    async def say(self, line: str) -> str:
        """Standard output of a command line that succeeds without a word of complaint."""
        code, out, errors = await self.run(line)
        assert (code, errors) == (0, "")
        return out.strip()

    def living(self) -> list[str]:
        """The command lines of what lives in the sandbox, by the host's own book; its first process left out."""
        inside = Path(f"/proc/{self.sandbox.pid}/ns/pid").readlink()
        return [line for pid, line in _processes(inside) if pid != self.sandbox.pid]


def _processes(inside: Path) -> list[tuple[int, str]]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "ns" / "pid").readlink() == inside:
                found.append((int(entry.name), (entry / "cmdline").read_text().replace("\0", " ").strip()))
        except (FileNotFoundError, PermissionError, ProcessLookupError):
            continue
    return [(pid, line) for pid, line in found if line]


@pytest.fixture(autouse=True)
def _quiet_harbor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without this, Harbor starts a process of its own to report what was run (HARBOR.md section 9.5)."""
    monkeypatch.setenv("HARBOR_TELEMETRY", "off")


@pytest.fixture
async def shell() -> AsyncIterator[Shell]:
    """A sandbox without network, gone at the end."""
    sandbox = await Instance.start(probe.tools(), Layout(shared=("/logs/agent",)))
    try:
        yield Shell(sandbox)
    finally:
        await sandbox.stop()
