"""The compose stack as one Compose project: its name, its files, its variables, and whose its data are.

The project is called `buzz-benchmark`, as in the reference (row U1), unless another checkout's is already: then its
name also says which checkout it is. What it was is kept: two checkouts never take each other's (public case 40).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from bench import env
from bench.docker import marks
from bench.docker.engine import docker, inspect
from bench.errors import InvalidInput
from bench.files import write_private
from bench.keys import State
from bench.settings import ROOT, Settings

DEFAULT_NAME = "buzz-benchmark"
PRODUCTION_FILE = Path("deploy", "compose", "compose.yml")
"""In a checkout of Buzz."""

REMOVE_S = 120.0
"""For stopping and removing containers: each has ten seconds to end by itself."""


@dataclass(frozen=True)
class Project:
    """The project of an installation. `bridge` is the host's address for containers, where it has one."""

    name: str
    settings: Settings
    state: State
    bridge: str | None

    @cached_property
    def files(self) -> tuple[Path, ...]:
        """Compose's files, the production one first. Raises InvalidInput where the checkout named has none."""
        own = ROOT / "compose"
        bridge = (own / "bridge.yaml",) if self.bridge else ()
        return (production_file(self.settings), own / "benchmark.yaml", *bridge)

    @cached_property
    def variables(self) -> dict[str, str]:
        """All that the files need: what `.env` says, whatever the caller's environment has by these names, and more."""
        settings = self.settings
        more = {
            marks.STATE_VARIABLE: marks.state_label(settings.state_dir),
            "BUZZBENCH_RELAY_PORT": str(settings.relay_port),
            "BUZZBENCH_BRIDGE": self.bridge,
            "BUZZBENCH_POSTGRES_IMAGE": settings.postgres_image,
            "BUZZBENCH_REDIS_IMAGE": settings.redis_image,
            "BUZZBENCH_MINIO_IMAGE": settings.minio_image,
            "BUZZBENCH_MC_IMAGE": settings.mc_image,
            # Buzz's own file publishes this on every address of the machine, unless an address is in it.
            "BUZZ_HTTP_PORT": f"127.0.0.1:{settings.relay_port}" if settings.buzz_source else None,
        }
        return env.variables(settings, self.state) | {name: value for name, value in more.items() if value}

    @property
    def fingerprint(self) -> str:
        """Names everything that the containers are made from."""
        made_from: list[Any] = [self.name, self.variables]
        made_from += [path.read_text(encoding="utf-8") for path in self.files]
        return hashlib.sha256(json.dumps(made_from).encode()).hexdigest()

    def command(self, *arguments: str) -> list[str]:
        """A `docker compose` command of the project."""
        state_dir = self.settings.state_dir
        command = ["docker", "compose", "--project-name", self.name, "--project-directory", str(state_dir)]
        command += ["--env-file", str(state_dir / ".env"), "--progress", "plain"]
        for path in self.files:
            command += ["--file", str(path)]
        return [*command, *arguments]

    def begin(self, *arguments: str, output: int) -> subprocess.Popen[bytes]:
        """Start a compose command that writes both its streams to the descriptor `output`."""
        environment = {**os.environ, **self.variables}
        command = self.command(*arguments)
        return subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output)

    def images(self) -> dict[str, str]:
        """The image of each service that the relay needs, itself included. Raises DockerFailed."""
        shown = docker(*self.command("config", "--format", "json")[1:], environment=self.variables)
        services = json.loads(shown)["services"]
        needed: set[str] = set()
        left = {"relay"}
        while left:
            name = left.pop()
            needed.add(name)
            left |= set(services[name].get("depends_on", {})) - needed
        return {name: services[name]["image"] for name in sorted(needed)}


def remove(name: str, *, volumes: bool = False) -> None:
    """Remove a project's containers and network, and with `volumes` its data. Raises DockerFailed.

    By its name alone: that works whatever has become of its files and of the keys.
    """
    arguments = ["--project-name", name, "down", "--remove-orphans", *(["--volumes"] if volumes else [])]
    docker("compose", *arguments, timeout_s=REMOVE_S)


def production_file(settings: Settings) -> Path:
    """Buzz's own file where a checkout is named, else ours. Raises InvalidInput where the checkout has none."""
    if settings.buzz_source is None:
        return ROOT / "compose" / "compose.yaml"
    path = settings.buzz_source / PRODUCTION_FILE
    if not path.is_file():
        named = settings.origins.get("buzz_source", "buzz_source")
        raise InvalidInput.of(str(path), f"no such file in the checkout that {named} names", "name a whole checkout")
    return path


def name_for(settings: Settings, kept_name: str | None) -> str:
    """The project's name: as set, as it was before, or found now. Raises DockerFailed."""
    if given := settings.compose_project or kept_name:
        return given
    return own_name(settings.state_dir) if anothers(DEFAULT_NAME, settings.state_dir) else DEFAULT_NAME


def own_name(state_dir: Path) -> str:
    """The default name and whose it is: `buzz-benchmark-buzz-bench-1a2b3c` in a checkout `/home/me/Buzz.Bench`."""
    slug = re.sub(r"[^a-z0-9]+", "-", state_dir.absolute().parent.name.lower()).strip("-")[:30]
    digest = hashlib.sha256(os.fsencode(state_dir.absolute())).hexdigest()[:6]
    return "-".join(filter(None, [DEFAULT_NAME, slug, digest]))


def anothers(name: str, state_dir: Path) -> str | None:
    """Whose a project of that name is, if another installation's label is on its volumes or network.

    Raises DockerFailed. What has no label, as of the reference tool, is nobody's.
    """
    ours = marks.state_label(state_dir)
    for kind in ("volume", "network"):
        names = docker(kind, "ls", "--quiet", "--filter", f"label={marks.PROJECT}={name}").split()
        for thing in inspect(kind, names):
            label: str = (thing["Labels"] or {}).get(marks.STATE, ours)
            if label != ours:
                return label
    return None


@dataclass(frozen=True)
class Kept:
    """What an `up` leaves for the next one: the project's name, its bridge, and, once it is up, its fingerprint."""

    name: str
    bridge: str | None
    fingerprint: str | None = None


def kept(state_dir: Path) -> Kept | None:
    """What the last `up` left, None where there was none, or where it is damaged."""
    try:
        return Kept(**json.loads((state_dir / "compose.json").read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, RecursionError, TypeError):
        return None


def keep(state_dir: Path, what: Kept) -> None:
    """Keep it for the next one."""
    write_private(state_dir / "compose.json", json.dumps(asdict(what), indent=2) + "\n")
