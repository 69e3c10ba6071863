"""One frozen Settings: flag > environment > invoke.yaml > default, each value with its origin."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from bench.errors import InvalidInput, Problem, raise_problems
from bench.nearest import did_you_mean

ROOT = Path(__file__).resolve().parent.parent
"""The project's folder. `.benchmark/`, `jobs/` and `buzz-dataset/` belong to it, not to the current one."""

PROJECT_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
"""What Compose takes (public case 40)."""

ENVIRONMENT = {
    "state_dir": "BUZZBENCH_STATE_DIR",
    "jobs_dir": "BUZZBENCH_JOBS_DIR",
    "relay_port": "BUZZBENCH_RELAY_PORT",
    "gateway_port": "BUZZBENCH_GATEWAY_PORT",
    "pg_bin": "BUZZBENCH_PG_BIN",
    "git_probe": "BUZZBENCH_GIT_PROBE",
    "compose_project": "BUZZBENCH_COMPOSE_PROJECT",
    "postgres_port": "BUZZBENCH_POSTGRES_PORT",
    "metrics_port": "BUZZBENCH_METRICS_PORT",
    "bridge": "BUZZBENCH_BRIDGE",
    "docker_starts": "BUZZBENCH_DOCKER_STARTS",
    "buzz_image": "BUZZ_IMAGE",
    "postgres_image": "BUZZBENCH_POSTGRES_IMAGE",
    "redis_image": "BUZZBENCH_REDIS_IMAGE",
    "minio_image": "BUZZBENCH_MINIO_IMAGE",
    "mc_image": "BUZZBENCH_MC_IMAGE",
    "buzz_source": "BUZZBENCH_BUZZ_SOURCE",
    "xbuild_image": "BUZZBENCH_XBUILD_IMAGE",
    "xbuild_arch": "BUZZBENCH_XBUILD_ARCH",
    "upstream_retries": "BUZZBENCH_UPSTREAM_RETRIES",
    "longest_wait_s": "BUZZBENCH_LONGEST_WAIT_S",
    "agent_programs": "BUZZBENCH_AGENT_PROGRAMS",
}


@dataclass(frozen=True)
class Settings:
    """What does not belong to a single run. Ports are TCP ports; `gateway_port` 0 lets the system choose.

    `buzz_source` is a checkout of Buzz; None stands for a clone of the public repository. `xbuild_arch` is that of the
    agents' binaries, as Docker names it, or a whole target triple; None stands for the Docker engine's.
    `agent_programs` is a directory that holds them already; None stands for what is built.

    Of the compose stack: `postgres_port` and `metrics_port` are its ports on the loopback address; `compose_project`
    None stands for a name found at the first `up`; an image None for the one in compose/compose.yaml; `bridge` is the
    host's address that containers reach, None for the engine's own. `docker_starts` is how many trials may start their
    containers at the same time, None for as many as the machine has processors, and at least two.

    Of model calls: one that an upstream is too busy for is made again up to `upstream_retries` times; an upstream that
    asks to wait longer than `longest_wait_s` stops the job, to be resumed later.
    """

    state_dir: Path = ROOT / ".benchmark"
    jobs_dir: Path = ROOT / "jobs"
    relay_port: int = 3600
    gateway_port: int = 0
    pg_bin: Path | None = None
    git_probe: bool = True
    compose_project: str | None = None
    postgres_port: int = 5633
    metrics_port: int = 9602
    bridge: str | None = None
    docker_starts: int | None = None
    buzz_image: str = "ghcr.io/block/buzz:main"
    postgres_image: str | None = None
    redis_image: str | None = None
    minio_image: str | None = None
    mc_image: str | None = None
    buzz_source: Path | None = None
    xbuild_image: str = "rust:1.98-alpine"
    xbuild_arch: str | None = None
    upstream_retries: int = 8
    longest_wait_s: int = 300
    agent_programs: Path | None = None
    origins: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def relay_url(self) -> str:
        """The relay's canonical address, the only authority that it answers to."""
        return f"ws://localhost:{self.relay_port}"


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
        Problem(f"{where}.{name}", "unknown field", did_you_mean(str(name), ENVIRONMENT) or "ARCHITECTURE.md has them")
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
    for spec in fields(Settings):
        if spec.name == "origins":
            continue
        variable = ENVIRONMENT[spec.name]
        sources = (
            (f"--{spec.name.replace('_', '-')}", (flags or {}).get(spec.name)),
            (variable, environ.get(variable) or None),
            (f"invoke.yaml: buzzbench.{spec.name}", from_file.get(spec.name)),
        )
        origin, given = next(((o, v) for o, v in sources if v is not None), ("default", None))
        origins[spec.name] = origin
        if given is None:
            continue
        try:
            values[spec.name] = _convert(spec.name, given)
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
