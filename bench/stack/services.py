"""The embedded stack's services, as these settings want them: PostgreSQL, relay and gateway."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from bench.keys import State
from bench.processes import age_s
from bench.settings import ENVIRONMENT, ROOT, Settings
from bench.stack import ServiceStatus, paths, pgprograms, ports, probe
from bench.stack.postgres import Postgres
from bench.stack.process import Ready, Service

LOOPBACK = "127.0.0.1"
SHARED_CODE = ("nostr.py", "prices.py")
"""What a result depends on outside of the services' own rooms."""


@dataclass(frozen=True)
class Wanted:
    """A service as it should run now."""

    service: Service
    config: Mapping[str, Any]
    """What it gets on standard input (ARCHITECTURE, "Services")."""
    port_setting: str
    """The environment variable that moves its port."""
    proof: Callable[[Ready], None]
    """Uses it, and raises probe.NotWorking where that fails."""

    @property
    def name(self) -> str:
        return self.service.name

    @property
    def port(self) -> int:
        """The TCP port asked for, 0 for any."""
        return int(self.config["port"])

    @property
    def fingerprint(self) -> str:
        """Names its settings and its code: a service of others than these is replaced."""
        digest = hashlib.sha256(json.dumps(self.config, sort_keys=True).encode())
        code = ROOT / "bench"
        own = sorted(path for path in (code / self.name).rglob("*") if path.suffix in (".py", ".sql"))
        for path in (*own, *(code / name for name in SHARED_CODE)):
            digest.update(path.read_bytes())
        return digest.hexdigest()


def postgres(settings: Settings) -> Postgres:
    """The server, running or not. Raises MachineLacks where its programs are missing or can't run."""
    mode = pgprograms.launch_mode()
    programs = pgprograms.find(settings.pg_bin)
    pgprograms.check_reachable(mode, programs)
    data_dir, socket_dir = paths.database_places(settings.state_dir, mode)
    server = Postgres(programs, data_dir, socket_dir, paths.log(settings.state_dir, "postgres"), mode)
    used = server.socket_dir_in_use()
    return replace(server, socket_dir=used) if used else server


def relay(settings: Settings) -> Service:
    """The relay, running or not."""
    return _service("relay", settings)


def gateway(settings: Settings) -> Service:
    """The gateway, running or not."""
    return _service("gateway", settings)


def status(service: Service, port: int) -> ServiceStatus:
    """The service as it is now; `port` is the one that it would hold, 0 for any."""
    ready = service.running()
    if ready is not None:
        pid = ready.process.pid
        return ServiceStatus(service.name, "running", pid, ready.port, age_s(pid))
    if port and ports.taken(port):
        holder = ports.holder(port)
        return ServiceStatus(service.name, "foreign", holder.pid, port, holder=str(holder))
    return ServiceStatus(service.name, "stopped")


def wanted_relay(settings: Settings, state: State, dsn: str) -> Wanted:
    """The relay on this database; its proof is a signed write read back."""
    service = relay(settings)
    authority = settings.relay_url.removeprefix("ws://")
    config = {
        "host": LOOPBACK,
        "port": settings.relay_port,
        "relay_url": settings.relay_url,
        "dsn": dsn,
        "relay_private_key": state.relay.secret,
        "owner_public": state.owner.public,
        "ready_file": str(service.ready_file),
    }

    def proof(ready: Ready) -> None:
        probe.write_and_read_back(ready.port, authority, state.owner)

    return Wanted(service, config, ENVIRONMENT["relay_port"], proof)


def wanted_gateway(settings: Settings, bridge: str | None = None) -> Wanted:
    """The gateway; its proof is a greeting over its control socket. On the bridge's address containers reach it."""
    service = gateway(settings)
    control = str(paths.socket_dir(settings.state_dir) / "gateway.sock")
    config = {
        "host": LOOPBACK,
        "port": settings.gateway_port,
        "control": control,
        "ready_file": str(service.ready_file),
        **({"bridge": bridge} if bridge else {}),
    }
    return Wanted(service, config, ENVIRONMENT["gateway_port"], lambda _: probe.greet_gateway(control))


def _service(name: str, settings: Settings) -> Service:
    return Service(name, f"bench.{name}", settings.state_dir / "services", paths.log(settings.state_dir, name))
