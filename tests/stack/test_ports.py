"""A taken port is noticed on either family of addresses, and its holder named."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

from bench.stack import ports
from tests.ports import free_port

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def listen(family: socket.AddressFamily, host: str, port: int = 0, *, reuse: bool = True) -> socket.socket:
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuse)
    listener.bind((host, port))
    listener.listen()
    return listener


def use_once(listener: socket.socket) -> None:
    """Take one connection and close it from the listener's side, which the kernel then remembers."""
    with listener, socket.create_connection(listener.getsockname()) as client:
        listener.accept()[0].close()
        client.recv(1)


def has_ipv6() -> bool:
    try:
        listen(socket.AF_INET6, "::1").close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize(
    ("family", "host"),
    [
        (socket.AF_INET, "127.0.0.1"),
        (socket.AF_INET, "0.0.0.0"),
        pytest.param(socket.AF_INET6, "::1", marks=pytest.mark.skipif(not has_ipv6(), reason="no IPv6 here")),
    ],
)
def test_a_listener_is_noticed_and_named(family: socket.AddressFamily, host: str) -> None:
    with listen(family, host) as listener:
        port = listener.getsockname()[1]
        assert ports.taken(port)
        holder = ports.holder(port)
        assert holder.pid == os.getpid()
        assert str(holder).startswith(f"process {os.getpid()} (")


def test_a_port_is_free_as_soon_as_its_listener_is_gone() -> None:
    port = free_port()
    use_once(listen(socket.AF_INET, "127.0.0.1", port))
    assert not ports.taken(port)


def test_connections_that_outlast_their_listener_are_told_apart_from_one() -> None:
    port = free_port()
    use_once(listen(socket.AF_INET, "127.0.0.1", port, reuse=False))
    assert ports.taken(port)
    assert str(ports.holder(port)) == "the last connections of a process that has ended"


@linux
def test_a_holder_is_shown_with_its_folder() -> None:
    with listen(socket.AF_INET, "127.0.0.1") as listener:
        assert str(ports.holder(listener.getsockname()[1])).endswith(f" in {Path.cwd()}")


def test_a_holder_is_told_on_one_line_whatever_it_is_called() -> None:
    holder = ports.Holder(7, "python -c 'import time\ntime.sleep(9)\t\x1b[31m'", "/a\nb")
    assert str(holder) == "process 7 (python -c 'import time time.sleep(9) [31m') in /a b"


def test_a_holder_that_cannot_be_seen_is_another_users() -> None:
    assert str(ports.Holder(None)) == "another user's process"
