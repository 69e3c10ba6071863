"""Ports of the loopback address that nobody listens on."""

from __future__ import annotations

import socket
from contextlib import ExitStack


def free_ports(count: int) -> list[int]:
    """So many, all different."""
    with ExitStack() as probes:
        taken = [probes.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [int(probe.getsockname()[1]) for probe in taken]


def free_port() -> int:
    """One of them."""
    return free_ports(1)[0]
