"""A Buzzbench of its own for tests: state, jobs and port apart from those of the person who runs the tests."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.settings import ENVIRONMENT, ROOT
from tests.ports import free_port

DATASET = ROOT / "buzz-dataset"
IMAGES = {"buzz_image", "postgres_image", "redis_image", "minio_image", "mc_image"}
"""Settings of who runs the tests that hold for the tests, too: stand-ins for what can't be pulled. No other does."""


@dataclass(frozen=True)
class Installation:
    """The project's code with a state directory, a jobs directory and a relay port of its own."""

    home: Path
    port: int
    project: Path = field(default=ROOT, kw_only=True)
    """The folder of the code, whose tasks are run."""

    @property
    def state_dir(self) -> Path:
        return self.home / "state"

    @property
    def jobs_dir(self) -> Path:
        return self.home / "jobs"

    @property
    def environment(self) -> dict[str, str]:
        left_out = {"PYTHONDONTWRITEBYTECODE", *(ENVIRONMENT[name] for name in ENVIRONMENT if name not in IMAGES)}
        kept = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY") and k not in left_out}
        return kept | {
            "BUZZBENCH_STATE_DIR": str(self.state_dir),
            "BUZZBENCH_JOBS_DIR": str(self.jobs_dir),
            "BUZZBENCH_RELAY_PORT": str(self.port),
        }

    def inv(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run one command line of tasks to its end."""
        return subprocess.run(
            [sys.executable, "-m", "invoke", *arguments],
            cwd=self.project,
            env=self.environment | more,
            capture_output=True,
            text=True,
            check=False,
            timeout=110,
        )

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start one command line of tasks."""
        return subprocess.Popen(
            [sys.executable, "-m", "invoke", *arguments],
            cwd=self.project,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def rehearse(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        """A rehearsal of buzz-dataset with these options: the exit code, and the first job of the JSON."""
        done = self.inv("bench", "--path", str(DATASET), "--rehearsal", "--json", *arguments)
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)["jobs"][0]

    def service(self, name: str) -> int:
        """The process id of a running service: postgres, relay or gateway."""
        services = json.loads(self.inv("status", "--json").stdout)["services"]
        return next(int(service["pid"]) for service in services if service["name"] == name)

    def job_processes(self) -> list[str]:
        """Those of `processes` that belong to a job: Harbor's child, sandboxes and what runs in them."""
        return [line for line in self.processes() if "bench.run" in line or "bwrap" in line or "nsenter" in line]

    def processes(self) -> list[str]:
        """The command lines of all living processes that know this home, by an argument or their environment."""
        mark = str(self.home).encode()
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdecimal() or int(entry.name) == os.getpid():
                continue
            try:
                text = (entry / "cmdline").read_bytes()
                if text and mark in text + (entry / "environ").read_bytes():
                    found.append(text.replace(b"\0", b" ").decode(errors="replace")[:200])
            except OSError:
                continue
        return found


def contents(directory: Path) -> dict[Path, bytes]:
    """Every file below the directory, with its content."""
    return {path: path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}


def new_installation(home: Path) -> Installation:
    """An installation under `home` on a port that is free now."""
    return Installation(home, free_port())


def wait_until(done: Callable[[], bool], *, seconds: float = 60.0) -> None:
    """Wait for a condition; a test fails here rather than hang."""
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def stop(process: subprocess.Popen[str], number: signal.Signals = signal.SIGINT) -> int:
    """Send a signal and wait for the end; the exit code."""
    process.send_signal(number)
    process.communicate(timeout=60)
    return process.returncode


def remove(installation: Installation) -> None:
    """Stop its stack and delete it."""
    installation.inv("down")
    shutil.rmtree(installation.home, ignore_errors=True)
