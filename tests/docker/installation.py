"""An installation whose compose stack has ports of its own and stand-ins for its images."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.docker import marks
from bench.settings import Settings
from tests.docker import images
from tests.docker.images import docker
from tests.pipeline import DATASET, Installation
from tests.ports import free_ports


@dataclass(frozen=True)
class DockerInstallation(Installation):
    """`postgres_port` and `metrics_port` are the compose stack's, `port` the relay's in either stack."""

    postgres_port: int = 0
    metrics_port: int = 0
    more: dict[str, str] = field(default_factory=dict, hash=False)

    @property
    def environment(self) -> dict[str, str]:
        return {
            **super().environment,
            "BUZZBENCH_POSTGRES_PORT": str(self.postgres_port),
            "BUZZBENCH_METRICS_PORT": str(self.metrics_port),
            **self.more,
        }

    @property
    def settings(self) -> Settings:
        return Settings(
            state_dir=self.state_dir,
            jobs_dir=self.jobs_dir,
            relay_port=self.port,
            postgres_port=self.postgres_port,
            metrics_port=self.metrics_port,
            compose_project=self.more.get("BUZZBENCH_COMPOSE_PROJECT"),
            buzz_image=images.of("relay"),
            postgres_image=images.of("postgres"),
            redis_image=images.of("redis"),
            minio_image=images.of("minio"),
            mc_image=images.of("mc"),
        )

    @property
    def with_stack(self) -> dict[str, str]:
        """The variables of the stand-ins' images."""
        return {variable: images.of(role) for role, variable in images.VARIABLES.items()}

    @property
    def compose_project(self) -> str:
        name: str = json.loads((self.state_dir / "compose.json").read_text(encoding="utf-8"))["name"]
        return name

    def rehearse_in_docker(self, *arguments: str, path: Path = DATASET, **more: str) -> tuple[int, dict[str, Any], str]:
        """The exit code, the job of the JSON, and what was said."""
        done = self.inv("bench", "--path", str(path), "--rehearsal", "-e", "docker", "--json", *arguments, **more)
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)["jobs"][0], done.stderr

    def database_volume(self, *options: str, state: str | None = None) -> str:
        """Make the volume of its database before the stack does, with `state` as its label; its name."""
        project = self.home.name
        self.more["BUZZBENCH_COMPOSE_PROJECT"] = project
        labels = {marks.PROJECT: project, "com.docker.compose.volume": "buzz-postgres-data"}
        if state is not None:
            labels[marks.STATE] = state
        marked = (f"--label={name}={value}" for name, value in labels.items())
        return docker("volume", "create", *marked, *options, f"{project}_buzz-postgres-data")

    def remove(self) -> None:
        """Its stack, its data, and what its trials left."""
        self.inv("down")
        for project in projects(f"label=buzzbench.state={self.state_dir}"):
            subprocess.run(
                ["docker", "compose", "-p", project, "down", "--volumes", "--remove-orphans", "-t", "1"],
                capture_output=True,
                check=False,
                cwd="/",
            )


def new(home: Path) -> DockerInstallation:
    ports = free_ports(3)
    return DockerInstallation(home, ports[0], ports[1], ports[2])


def room(megabytes: int) -> tuple[str, ...]:
    """The options of a volume with so much room."""
    return ("--opt=type=tmpfs", "--opt=device=tmpfs", f"--opt=o=size={megabytes}m")


def projects(*filters: str) -> set[str]:
    """The Compose projects of all containers, networks and volumes with these labels."""
    chosen = [part for each in filters for part in ("--filter", each)]
    label = '{{.Label "com.docker.compose.project"}}'
    listings = (["ps", "--all"], ["network", "ls"], ["volume", "ls"])
    found = {name for kind in listings for name in docker(*kind, *chosen, "--format", label).split()}
    return found - {""}


def containers(project: str) -> list[str]:
    """The names of a project's containers, running or not."""
    chosen = ["--filter", f"label=com.docker.compose.project={project}", "--format", "{{.Names}}"]
    return docker("ps", "--all", *chosen).split()
