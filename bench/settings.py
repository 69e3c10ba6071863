"""One frozen Settings: flag > environment > invoke.yaml > default, each value with its origin."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any

from bench.errors import InvalidInput, Problem, raise_problems
from bench.nearest import did_you_mean

ROOT = Path(__file__).resolve().parent.parent
"""The project's folder. `.benchmark/`, `jobs/` and `buzz-dataset/` belong to it, not to the current one."""

STACKS = ("embedded", "compose")
"""The kinds of stack: without Docker, and of production images."""

PROJECT_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
"""What Compose takes (public case 40)."""


@dataclass(frozen=True)
class Settings:
    """What does not belong to a single run. For people they are in SETTINGS.md, whose table is made from this."""

    state_dir: Annotated[Path, "Where keys, secrets and the stack's data are."] = ROOT / ".benchmark"
    jobs_dir: Annotated[Path, "Where jobs are written and looked for."] = ROOT / "jobs"
    relay_port: Annotated[int, "The relay's TCP port. Each checkout that runs needs its own."] = 3600
    gateway_port: Annotated[int, "The gateway's TCP port; 0 takes one that is free."] = 0
    pg_bin: Annotated[
        Path | None, "The directory of PostgreSQL's programs; without it those of the wheel, or of the system."
    ] = None
    git_probe: Annotated[
        bool, "Whether the compose stack's relay checks its storage for git when it starts, as Buzz's does."
    ] = True
    compose_project: Annotated[
        str | None, "The name of the compose stack's project; without it one is found at the first `up`, and kept."
    ] = None
    postgres_port: Annotated[int, "The TCP port of the compose stack's PostgreSQL, on the loopback address."] = 5633
    metrics_port: Annotated[int, "The TCP port of its relay's metrics, there too."] = 9602
    bridge: Annotated[
        str | None, "The host's address that containers reach; without it that of the engine's own bridge."
    ] = None
    docker_starts: Annotated[
        int | None,
        "How many trials may start their containers at once; without it as many as there are processors, 2 at least.",
    ] = None
    buzz_image: Annotated[str, "The image of Buzz's relay."] = "ghcr.io/block/buzz:main"
    postgres_image: Annotated[str | None, "That of PostgreSQL; without it, as of the next three, compose.yaml's."] = (
        None
    )
    redis_image: Annotated[str | None, "That of Redis."] = None
    minio_image: Annotated[str | None, "That of MinIO."] = None
    mc_image: Annotated[str | None, "That of MinIO's client."] = None
    buzz_source: Annotated[
        Path | None,
        "A checkout of Buzz, for `inv xbuild` and `inv gui`; without it `xbuild` clones the public repository.",
    ] = None
    xbuild_image: Annotated[str, "The image that the agents' programs are built in."] = "rust:1.98-alpine"
    xbuild_arch: Annotated[
        str | None,
        "What they are built for: `amd64`, `arm64` or a target triple; without it what the Docker engine is.",
    ] = None
    upstream_retries: Annotated[int, "How often a model call is made again while an upstream is busy."] = 8
    longest_wait_s: Annotated[
        int, "How many seconds an upstream may ask to wait; beyond that the job stops with 75, to go on later."
    ] = 300
    agent_programs: Annotated[
        Path | None, "A directory that has the agents' programs; without it those that `inv xbuild` built."
    ] = None
    origins: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def relay_url(self) -> str:
        """The relay's canonical address, the only authority that it answers to."""
        return f"ws://localhost:{self.relay_port}"


ENVIRONMENT = {spec.name: f"BUZZBENCH_{spec.name.upper()}" for spec in fields(Settings) if spec.name != "origins"}
"""The variable of each setting."""

ENVIRONMENT["buzz_image"] = "BUZZ_IMAGE"  # Buzz's own.

_configured: Mapping[str, Any] = {}


def configure(values: Any) -> None:
    """Take the `buzzbench` section of invoke.yaml, once, before any task runs (the executor does).

    Raises InvalidInput for what is no section, and for each field that there isn't.
    """
    global _configured
    where = "invoke.yaml: buzzbench"
    if not isinstance(values, Mapping):
        raise InvalidInput.of(where, f"{values!r} is no mapping of settings to values")
    raise_problems(
        Problem(f"{where}.{name}", "unknown field", did_you_mean(str(name), ENVIRONMENT) or "SETTINGS.md has them")
        for name in values
        if name not in ENVIRONMENT
    )
    _configured = dict(values)


def load(
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] = os.environ,
    configured: Mapping[str, Any] | None = None,
) -> Settings:
    """Settings from the three sources over the defaults. Raises InvalidInput naming each bad value and its origin."""
    from_file = _configured if configured is None else configured
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    problems: list[Problem] = []
    for name, variable in ENVIRONMENT.items():
        sources = (
            (f"--{name.replace('_', '-')}", (flags or {}).get(name)),
            (variable, environ.get(variable) or None),
            (f"invoke.yaml: buzzbench.{name}", from_file.get(name)),
        )
        origin, given = next(((o, v) for o, v in sources if v is not None), ("default", None))
        origins[name] = origin
        if given is None:
            continue
        try:
            values[name] = _convert(name, given)
        except ValueError as error:
            problems.append(Problem(origin, str(error)))
    raise_problems(problems)
    return Settings(**values, origins=origins)


def _convert(name: str, given: Any) -> Any:
    match name:
        case "state_dir" | "jobs_dir" | "pg_bin" | "buzz_source" | "agent_programs":
            try:
                return Path(_text(given)).expanduser().absolute()
            except RuntimeError:
                raise ValueError(f"{given!r} is in the home of a user whom this machine lacks") from None
        case "relay_port" | "gateway_port" | "postgres_port" | "metrics_port":
            lowest = 0 if name == "gateway_port" else 1
            if not _is_number(given, lowest, 65535):
                raise ValueError(f"{given!r} is no TCP port; give a number from {lowest} to 65535")
            return int(given)
        case "docker_starts":
            if not _is_number(given, 1, 999):
                raise ValueError(f"{given!r} is no number of trials; give one from 1 to 999")
            return int(given)
        case "upstream_retries" | "longest_wait_s":
            most = 99 if name == "upstream_retries" else 86_400
            if not _is_number(given, 0, most):
                raise ValueError(f"{given!r} is no whole number from 0 to {most}")
            return int(given)
        case "compose_project":
            if not PROJECT_NAME.fullmatch(str(given)):
                raise ValueError(f"{given!r} is no name of a Compose project: lower-case letters, digits, - and _")
            return str(given)
        case "bridge":
            try:
                return str(ipaddress.ip_address(str(given)))
            except ValueError:
                raise ValueError(f"{given!r} is no IP address") from None
        case "git_probe":
            words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
            if str(given).lower() not in words:
                raise ValueError(f"{given!r} is neither true nor false")
            return words[str(given).lower()]
        case _:
            return _text(given)


def _is_number(given: Any, least: int, most: int) -> bool:
    return bool(re.fullmatch(r"[0-9]{1,15}", str(given))) and least <= int(given) <= most


def _text(given: Any) -> str:
    if not isinstance(given, str | Path) or not str(given):
        raise ValueError("is empty" if given == "" else f"{given!r} is no text")
    return str(given)
