"""Real services for a trial's tests: our relay and gateway as processes, and a workspace that runs commands here."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from bench.gateway.backoff import Patience
from bench.keys import State, ensure
from bench.settings import ROOT
from bench.stack import StackAddress
from bench.trial import provisioner

READY_S = 30.0

PATIENCE = Patience(retries=0, first_wait_s=0.01)
"""Upstreams fail for good here, where a test doesn't say otherwise."""


@dataclass
class Service:
    """One service, which may be stopped and started again on the same port."""

    module: str
    config: dict[str, Any]
    home: Path
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> int:
        """Start it and return its port once it serves."""
        ready = self.home / f"{self.module}.ready"
        ready.unlink(missing_ok=True)
        with (self.home / f"{self.module}.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", self.module], stdin=subprocess.PIPE, stdout=log, stderr=log, cwd=ROOT
            )
        assert self.process.stdin
        self.process.stdin.write(json.dumps({**self.config, "ready_file": str(ready)}).encode())
        self.process.stdin.close()
        until = time.monotonic() + READY_S
        while time.monotonic() < until:
            if ready.exists() and (text := ready.read_text()):
                return int(json.loads(text)["port"])
            assert self.process.poll() is None, (self.home / f"{self.module}.log").read_text()
            time.sleep(0.01)
        raise AssertionError(f"{self.module} did not get ready")

    def stop(self, *, kill: bool = False) -> None:
        if self.process is not None:
            self.process.kill() if kill else self.process.terminate()
            self.process.wait()
            self.process = None


@dataclass
class Stack:
    """A running stack with its own identities."""

    home: Path
    state: State
    relay: Service
    gateway: Service
    address: StackAddress

    @classmethod
    def start(cls, home: Path, dsn: str, port: int) -> Stack:
        state = ensure(home / "state")
        url = f"ws://localhost:{port}"
        relay = Service(
            "bench.relay",
            {
                "host": "127.0.0.1",
                "port": port,
                "relay_url": url,
                "dsn": dsn,
                "relay_private_key": state.relay.secret,
                "owner_public": state.owner.public,
            },
            home,
        )
        control = home / "control.sock"
        gateway = Service("bench.gateway", {"host": "127.0.0.1", "port": 0, "control": str(control)}, home)
        try:
            relay.start()
            gateway_port = gateway.start()
        except BaseException:
            relay.stop()
            gateway.stop()
            raise
        address = StackAddress("embedded", url, dsn, f"http://127.0.0.1:{gateway_port}", str(control))
        return cls(home, state, relay, gateway, address)

    def run_dir(self, job: str) -> Path:
        """A run directory as the parent of a job makes it."""
        path = self.home / "state" / "run" / job
        provisioner.write_provisioner(path, self.state, self.address, patience=PATIENCE)
        return path

    def stop(self) -> None:
        self.relay.stop()
        self.gateway.stop()


@dataclass
class Workspace:
    """An environment for trials without Harbor: commands run here in a directory, `/logs` is a directory beside it."""

    root: Path
    environment_dir: Path
    uploaded: dict[str, bytes] = field(default_factory=dict)
    task_env_config: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(workdir="/app"))

    @staticmethod
    def type() -> str:
        """Nothing is asked of it before: it is made so, as the sandbox is."""
        return "sandbox"

    async def exec(self, command: str, *, timeout_sec: int | None = None) -> SimpleNamespace:
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = await asyncio.create_subprocess_exec(
                *("bash", "-c", command), cwd=self.root, stdout=out, stderr=err, start_new_session=True
            )
            try:
                await asyncio.wait_for(process.wait(), timeout_sec)
            except BaseException as error:
                os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
                if isinstance(error, TimeoutError):
                    raise RuntimeError(f"Command timed out after {timeout_sec} seconds") from error
                raise
            out.seek(0)
            err.seek(0)
            said = out.read().decode(), err.read().decode()
        return SimpleNamespace(stdout=said[0], stderr=said[1], return_code=process.returncode)

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        self.uploaded[target_path] = Path(source_path).read_bytes()


async def appears(path: Path) -> None:
    """Wait for a file that a command makes. Nothing but the file system tells of it."""
    while not path.exists():  # noqa: ASYNC110
        await asyncio.sleep(0.01)


def remove(home: Path) -> None:
    shutil.rmtree(home, ignore_errors=True)
