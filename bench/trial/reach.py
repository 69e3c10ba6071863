"""How the agents of an environment reach relay and gateway on this host (SEED.md row R2)."""

from __future__ import annotations

import asyncio
import os
from urllib.parse import urlsplit

from bench.harness.buzz.kit import Routes
from bench.trial.session import Session

HOST_VARIABLE = "BUZZ_BENCHMARK_DOCKER_HOST"
"""The name or address by which containers reach this host; the reference's name for it."""

DEFAULT_HOST = "host.docker.internal"


async def routes(session: Session, environment: str) -> Routes:
    """The routes for an environment of that type. Raises DockerFailed where its engine does not answer."""
    relay_url, gateway_url = session.provisioner.relay_ws_url, session.provisioner.gateway_url
    if environment == "sandbox":
        return Routes(relay_url, gateway_url)
    ports = [urlsplit(relay_url).port or 80, urlsplit(gateway_url).port or 80]
    host = os.environ.get(HOST_VARIABLE)
    if not host and environment == "docker":
        ports = await _on_the_bridge(session, ports)
    relay, gateway = (f"{host or DEFAULT_HOST}:{port}" for port in ports)
    return Routes(relay_url, gateway_url, relay, gateway)


async def _on_the_bridge(session: Session, ports: list[int]) -> list[int]:
    """The ports behind which containers find ours. Without a bridge of this host they reach its loopback address."""
    from bench.docker.engine import bridge_address

    address = await asyncio.to_thread(bridge_address)
    return ports if address is None else [await session.doors.port(address, port) for port in ports]
