"""How the agents of an environment reach relay and gateway on this host (SEED.md row R2).

Containers of an engine of this machine do it by sockets that are mounted there, so that their tasks need no network;
those of an engine in a machine of its own, or elsewhere, by a name of this host.
"""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from bench.harness.buzz.fixed import DOORS

if TYPE_CHECKING:
    from bench.harness.buzz.kit import Routes
    from bench.trial.doors import Doors
    from bench.trial.session import Session

HOST_VARIABLE = "BUZZ_BENCHMARK_DOCKER_HOST"
"""The name or address by which containers reach this host; the reference's name for it."""

DEFAULT_HOST = "host.docker.internal"


class Container(Protocol):
    """The part of Harbor's BaseEnvironment that says where it is and what of this host is in it."""

    def type(self) -> str: ...
    def is_path_mounted(self, environment_path: str, host_path: Path) -> bool: ...


def is_local(environ: Mapping[str, str]) -> bool:
    """Whether the Docker engine is reached by a socket of this machine, so that what is mounted is this machine's."""
    return environ.get("DOCKER_HOST", "unix://").startswith("unix://")


def by_sockets(environment: str, environ: Mapping[str, str], doors: Path | None) -> bool:
    """Whether containers can be given sockets of this machine. Where its name is given, they are to go by that."""
    return environment == "docker" and doors is not None and is_local(environ) and not environ.get(HOST_VARIABLE)


async def routes(session: Session, environment: Container) -> Routes:
    """The routes for an environment. Raises DockerFailed where its engine does not answer."""
    from bench.harness.buzz.kit import Routes

    relay_url, gateway_url = session.provisioner.relay_ws_url, session.provisioner.gateway_url
    kind = environment.type()
    if kind == "sandbox":
        return Routes(relay_url, gateway_url)
    ports = {"relay": urlsplit(relay_url).port or 80, "gateway": urlsplit(gateway_url).port or 80}
    host = os.environ.get(HOST_VARIABLE)
    if host or kind != "docker":
        relay, gateway = (f"{host or DEFAULT_HOST}:{port}" for port in ports.values())
    else:
        address = await asyncio.to_thread(_bridge, os.environ.get("DOCKER_HOST"))
        relay, gateway = await dialled(session.doors, Path(session.provisioner.doors), environment, ports, address)
    return Routes(relay_url, gateway_url, relay, gateway)


async def gateway_url(session: Session, environment: Container, *, inside: bool) -> str:
    """Where an agent of Harbor's finds the gateway: one that is installed `inside` the environment, or in this process.

    Harbor gives each one address only, so that from inside a container it is a port of this host.
    """
    url, kind = session.provisioner.gateway_url, environment.type()
    if not inside or kind == "sandbox":
        return url
    port, host = urlsplit(url).port or 80, os.environ.get(HOST_VARIABLE)
    if host is None and kind == "docker":
        from bench.docker.engine import bridge_address

        address = await asyncio.to_thread(bridge_address)
        port = port if address is None else await session.doors.port(address, port)
    return f"http://{host or DEFAULT_HOST}:{port}"


@functools.cache
def _bridge(engine: str | None) -> str | None:
    """The address of the engine's bridge, asked for once: it stays where it is, and asking costs a process."""
    from bench.docker.engine import bridge_address

    return bridge_address()


async def dialled(
    doors: Doors, directory: Path, environment: Container, ports: Mapping[str, int], address: str | None
) -> list[str]:
    """What a container of this machine's engine dials for each of these ports of loopback.

    `directory` is that of the sockets, `address` that of the engine's bridge on this host. An engine that has none
    there is in a machine of its own, where the sockets of this one lead nowhere.
    """
    if address is None:
        return [f"{DEFAULT_HOST}:{port}" for port in ports.values()]
    if environment.is_path_mounted(DOORS, directory):
        return [f"unix:{DOORS}/{await doors.socket(directory, name, port)}" for name, port in ports.items()]
    return [f"{DEFAULT_HOST}:{await doors.port(address, port)}" for port in ports.values()]
