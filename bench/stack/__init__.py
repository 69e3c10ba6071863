"""What a team talks through: relay, PostgreSQL and gateway. `address()` says where a running one is."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from bench.errors import InvalidInput


@dataclass(frozen=True)
class StackAddress:
    """Where the services of a running stack are."""

    kind: str
    """`embedded` or `compose`."""
    relay_url: str
    """The relay's canonical address, such as `ws://localhost:3600`."""
    dsn: str
    """A libpq connection string."""
    gateway_url: str
    """The model gateway's base, such as `http://127.0.0.1:41234`."""
    gateway_control: str
    """The path of the gateway's control socket."""


@dataclass(frozen=True)
class ServiceStatus:
    """One service as it is now."""

    name: str
    state: str
    """`running`, `stopped`, or `foreign`: its port is held by a process that isn't ours."""
    pid: int | None = None
    port: int | None = None
    uptime_s: float | None = None
    holder: str = ""
    """Who holds the port, where foreign."""


@dataclass(frozen=True)
class StackStatus:
    """The stack's services, and the jobs that use it."""

    services: tuple[ServiceStatus, ...]
    jobs: tuple[str, ...]
    address: StackAddress | None


def address(state_dir: Path) -> StackAddress | None:
    """The address that stack.json holds, or None where nothing runs. Raises InvalidInput if damaged."""
    path = state_dir / "stack.json"
    try:
        return StackAddress(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError):
        raise InvalidInput.of(
            str(path), "damaged: not the address of a stack", "run `inv down`, then `inv up`"
        ) from None
