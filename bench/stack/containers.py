"""The containers of a Compose project, as the engine sees them."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from bench.docker import marks
from bench.docker.engine import docker, inspect

LAST_LINES = 10
"""Of a service that failed, so many are shown."""


@dataclass(frozen=True)
class Container:
    """One service's container. `ports` are those it holds on the host."""

    service: str
    id: str
    status: str
    """The engine's word: created, running, restarting, exited, dead."""
    health: str
    """starting, healthy, unhealthy; empty where it has no check."""
    exit_code: int
    restarts: int
    started_at: str
    ports: frozenset[int]

    @property
    def has_failed(self) -> bool:
        """Whether it won't come up: it ended badly, begins again and again, or its check has given up."""
        ended_badly = self.status in ("exited", "dead") and self.exit_code != 0
        loops = self.status == "restarting" and self.restarts > 1
        return ended_badly or loops or self.health == "unhealthy"

    @property
    def how(self) -> str:
        """How it is, in a few words."""
        if self.status == "exited":
            return f"ended with status {self.exit_code}"
        if self.status == "restarting":
            return f"ended with status {self.exit_code}, {self.restarts} times over"
        return f"is {self.health or self.status}"

    @property
    def age_s(self) -> float | None:
        """Seconds since it started; None where it doesn't run."""
        if self.status != "running":
            return None
        started = datetime.fromisoformat(self.started_at)
        return max(0.0, round((datetime.now(UTC) - started).total_seconds(), 2))

    def last_lines(self) -> str:
        """The last that it said, indented."""
        command = ["docker", "logs", "--tail", str(LAST_LINES), self.id]
        said = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False
        )
        return "\n".join(f"  {line}" for line in said.stdout.strip().splitlines()[-LAST_LINES:])


def containers(project: str) -> dict[str, Container]:
    """The project's containers by service. Raises DockerFailed."""
    ids = docker("container", "ls", "--all", "--quiet", "--filter", f"label={marks.PROJECT}={project}").split()
    found = (_read(raw) for raw in inspect("container", ids))
    return {container.service: container for container in found}


def publisher(port: int) -> str:
    """Who holds a port on the host, where it is a container, such as `the container shop-db-1`; else nothing."""
    names = docker("container", "ls", "--filter", f"publish={port}", "--format", "{{.Names}}").split()
    return f"the container {names[0]}" if names else ""


def _read(raw: Mapping[str, Any]) -> Container:
    state = raw["State"]
    bound = [binding for found in (raw["NetworkSettings"]["Ports"] or {}).values() for binding in found or []]
    return Container(
        service=raw["Config"]["Labels"][marks.SERVICE],
        id=raw["Id"],
        status=state["Status"],
        health=(state.get("Health") or {}).get("Status", ""),
        exit_code=state["ExitCode"],
        restarts=raw["RestartCount"],
        started_at=state["StartedAt"],
        ports=frozenset(int(binding["HostPort"]) for binding in bound),
    )
