"""The Docker engine that the `docker` command reaches: its commands, what it is, and what it lacks for a purpose.

The command finds the engine itself (DOCKER_HOST, contexts). Every call is bounded: an engine that hangs is one that
does not answer.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.errors import BuzzbenchError, Problem

ANSWER_S = 20.0
"""For a question about the engine or its objects."""

OLDEST_COMPOSE = (2, 20)
"""The first whose `up --wait` counts a one-shot service that ended well as done."""

QUICK = {"GOGC": "400"}
"""For the `docker` command, a Go program that lives for a tenth of a second: at its default the collector of garbage
takes a sixth of the CPU of a `docker compose exec` (62 ms, 52 with this, 48 without any; 2 cores, Docker 28.2)."""

GONE = re.compile(r"no such \w+|not found", re.I)
"""What the engine says of an object that is not there."""

ENGINE_AWAY = re.compile(r"cannot connect to the docker daemon|error during connect|is the docker daemon running", re.I)


class DockerFailed(BuzzbenchError):
    """A docker command failed. `output` is all that it said."""

    def __init__(self, command: str, output: str) -> None:
        self.output = output.strip()
        super().__init__(last_line(self.output) or "it said nothing", where=command)


@dataclass(frozen=True)
class Engine:
    """What answers. `architecture` is in Docker's words: amd64, arm64."""

    version: str
    architecture: str


def docker(
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    timeout_s: float = ANSWER_S,
) -> str:
    """What a docker command printed. Raises DockerFailed, also where it does not end in time or is not there."""
    done = _run(arguments, environment, timeout_s)
    if done.returncode:
        raise DockerFailed(_shown(arguments), done.stderr.strip() or done.stdout)
    return done.stdout


def inspect(kind: str, names: Sequence[str]) -> list[dict[str, Any]]:
    """`docker KIND inspect` of those among the names that are still there. Raises DockerFailed."""
    if not names:
        return []
    command = (kind, "inspect", *names)
    done = _run(command, None, ANSWER_S)
    if done.returncode and not all(GONE.search(line) for line in done.stderr.splitlines() if line.strip()):
        raise DockerFailed(_shown(command), done.stderr)
    found: list[dict[str, Any]] = json.loads(done.stdout or "[]")
    return found


def _run(
    arguments: Sequence[str], environment: Mapping[str, str] | None, timeout_s: float
) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            ["docker", *arguments],
            env={**QUICK, **os.environ, **(environment or {})},
            cwd="/",  # where there is no Compose file that it could pick up
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise DockerFailed(_shown(arguments), f"no answer within {timeout_s:g} s") from None
    except OSError as error:
        raise DockerFailed(_shown(arguments), f"docker can't be started: {error.strerror}") from None


def _shown(arguments: Sequence[str]) -> str:
    return " ".join(("docker", *arguments[:2]))


def engine() -> Engine:
    """The engine. Raises DockerFailed where it does not answer."""
    server = json.loads(docker("version", "--format", "{{json .Server}}"))
    if not server:
        raise DockerFailed("docker version", "the engine does not answer")
    return Engine(str(server["Version"]), str(server["Arch"]))


def problem(purpose: str, environ: Mapping[str, str] = os.environ, *, instead: str = "") -> Problem | None:
    """What stands between this machine and Docker with Compose, the cause before its symptoms; None if nothing does.

    `purpose` is the option that needs it, such as `--stack compose`, and `instead` what would do without.
    """
    if found := absence(purpose, environ, instead=instead):
        return found
    try:
        said = docker("compose", "version", "--short").strip()
    except DockerFailed:
        return _lacks(purpose, "there is no `docker compose`", "install Docker's Compose plugin", instead)
    oldest = ".".join(map(str, OLDEST_COMPOSE))
    if compose_version(said) < OLDEST_COMPOSE:
        return _lacks(purpose, f"Compose is {said}, and {oldest} is the oldest that will do", "renew it", instead)
    return None


def absence(purpose: str, environ: Mapping[str, str] = os.environ, *, instead: str = "") -> Problem | None:
    """That there is no engine, or none that answers; None if there is one. See `problem`."""
    if not shutil.which("docker", path=environ.get("PATH")):
        return _lacks(purpose, "there is no docker command", "install Docker with its Compose plugin", instead)
    try:
        engine()
    except DockerFailed as error:
        what = f"the Docker engine does not answer: {last_line(error.output)}"
        return _lacks(purpose, what, "start Docker, or set DOCKER_HOST to an engine that runs", instead)
    return None


def _lacks(purpose: str, what: str, fix: str, instead: str) -> Problem:
    return Problem(purpose, what, f"{fix}, or use {instead}" if instead else fix, lacks=True)


def compose_version(said: str) -> tuple[int, int]:
    """Major and minor of what Compose calls itself, such as `v2.30.3-desktop.1`; (0, 0) where that can't be told."""
    found = re.match(r"v?(\d+)\.(\d+)", said)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def bridge_address() -> str | None:
    """The host's address on the engine's default bridge, which `host-gateway` stands for; None where the host has none.

    Docker Desktop's engine is in a machine of its own: its bridge is not on this host, and containers reach the host's
    loopback address by the name host.docker.internal.
    """
    networks = inspect("network", ["bridge"])
    gateways = [pool.get("Gateway") for pool in networks[0]["IPAM"]["Config"] or []]
    return next((gateway for gateway in gateways if gateway and _is_ours(gateway)), None)


def _is_ours(address: str) -> bool:
    """Whether this host has the address: one can listen on it."""
    import socket

    try:
        with socket.create_server((address, 0)):
            return True
    except OSError:
        return False


def last_line(text: str) -> str:
    """The last line that says something."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
