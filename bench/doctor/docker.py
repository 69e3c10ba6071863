"""Docker, which `-e docker` and `--stack compose` need and nothing else does: engine, plugins, room for networks."""

from __future__ import annotations

import platform
import shutil

from bench.docker import engine as engines
from bench.docker.engine import OLDEST_COMPOSE, DockerFailed, compose_version, docker, last_line
from bench.doctor.check import Check, Context, Found
from bench.doctor.machine import ARCHITECTURES

DEFAULT_POOLS = 31
"""Bridge networks that an engine has room for unless told otherwise: 15 from 172.17.0.0/16, 16 from 192.168.0.0/20."""

WITHOUT = "without it, -e sandbox and the embedded stack run all that needs no image"


def engine(context: Context) -> Found:
    """An engine that answers."""
    if not shutil.which("docker", path=context.environ.get("PATH")):
        return Found("fail", f"there is no docker command; {WITHOUT}", "install Docker with its Compose plugin")
    try:
        found = engines.engine()
    except DockerFailed as error:
        what = f"it does not answer: {last_line(error.output)}; {WITHOUT}"
        return Found("fail", what, "start Docker, or set DOCKER_HOST to the engine that runs")
    here = ARCHITECTURES.get(platform.machine().lower())
    if here and found.architecture != here:
        what = f"{found.version} on {found.architecture}, and this machine is {here}: agents are built for the engine"
        return Found("ok", what)
    return Found("ok", f"{found.version} on {found.architecture}")


def compose(context: Context) -> Found:
    """Compose, new enough to wait for what it starts."""
    oldest = ".".join(map(str, OLDEST_COMPOSE))
    try:
        said = docker("compose", "version", "--short").strip()
    except DockerFailed:
        return Found("fail", "there is no `docker compose`", "install the plugin docker-compose-plugin")
    if compose_version(said) < OLDEST_COMPOSE:
        return Found("fail", f"{said}, and {oldest} is the oldest that will do", "renew it")
    return Found("ok", said)


def buildx(context: Context) -> Found:
    """Harbor builds the proxy of tasks with an allowlist of hosts with it (HARBOR.md section 6)."""
    try:
        said = docker("buildx", "version")
    except DockerFailed:
        what = "there is no `docker buildx`, which tasks with a network of named hosts need"
        return Found("warn", what, "install the plugin docker-buildx")
    words = said.split()
    return Found("ok", words[1] if len(words) > 1 else said.strip())


def networks(context: Context) -> Found:
    """Each trial in Docker makes a network of its own."""
    try:
        used = len(docker("network", "ls", "--quiet", "--filter", "driver=bridge").split())
    except DockerFailed as error:
        return Found("warn", f"can't be counted: {last_line(error.output)}")
    return pools(used, context.n_concurrent)


def pools(used: int, n_concurrent: int) -> Found:
    """Whether so many trials find a free range of addresses (public case 40)."""
    free = max(0, DEFAULT_POOLS - used)
    if free < n_concurrent:
        fix = "remove unused ones (`docker network prune`), lower -n, or widen default-address-pools"
        return Found("warn", f"{free} more can be made by default, and {n_concurrent} trials at once need as many", fix)
    return Found("ok", f"{used} there, {free} more can be made by default")


CHECKS = (
    Check("engine", engine, required=False),
    Check("compose", compose, needs=("engine",), required=False),
    Check("buildx", buildx, needs=("engine",), required=False),
    Check("networks", networks, needs=("engine",), required=False),
)
