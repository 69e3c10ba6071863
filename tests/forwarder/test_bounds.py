"""What the forwarder does when descriptors, threads or places run out: it waits, it goes on, and it leaves nothing."""

from __future__ import annotations

import os
import resource
import shutil
import socket
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.forwarder.running import Echo, Forwarder, dial, echoed, ended, forwarder, limited

type Forward = Callable[..., Forwarder]

PLACES = 1000
"""MOST_CONNECTIONS of the forwarder."""
OTHER_USER = 64_123
"""A user id that nothing else on the machine has: a limit on its processes counts the forwarder's alone."""


def test_where_descriptors_run_out_clients_wait_and_are_served_in_turn(forward: Forward, echo: Echo) -> None:
    with limited(resource.RLIMIT_NOFILE, 40):
        running = forward(f"127.0.0.1:0=127.0.0.1:{echo.port}")
    with ExitStack() as held:
        connections = [held.enter_context(dial(running.ports[0])) for _ in range(60)]
        for number, connection in enumerate(connections):
            # The later ones are served only once the earlier ones have gone.
            assert echoed(connection, f"{number}".encode()) == f"{number}".encode()
            connection.close()
    running.settles()
    code, said = running.end()
    assert code == 0
    assert "can't accept on 127.0.0.1:" in said
    assert "Too many open files" in said


@pytest.mark.skipif(os.geteuid() != 0, reason="a limit on threads needs a user of its own, so root")
def test_where_threads_run_out_it_cuts_off_what_it_cannot_serve_and_goes_on(program: Path, echo: Echo) -> None:
    with tempfile.TemporaryDirectory() as shared, ExitStack() as held:
        Path(shared).chmod(0o755)
        copy = Path(shutil.copy(program, shared))
        with limited(resource.RLIMIT_NPROC, 20):
            running = held.enter_context(forwarder(copy, f"127.0.0.1:0=127.0.0.1:{echo.port}", user=OTHER_USER))
        connections = [held.enter_context(dial(running.ports[0])) for _ in range(30)]
        answers = {_answer(connection) for connection in connections}
        assert answers == {b"hello", b""}
        for connection in connections:
            connection.close()
        running.settles()
        with dial(running.ports[0]) as connection:
            assert echoed(connection, b"hello") == b"hello"
        code, said = running.end()
        assert code == 0
        assert "Resource temporarily unavailable" in said


def _answer(connection: socket.socket) -> bytes:
    try:
        return echoed(connection, b"hello")
    except ConnectionError:
        return b""


def test_one_pair_that_is_full_keeps_no_other_one_waiting(forward: Forward, echo: Echo) -> None:
    target = f"127.0.0.1:{echo.port}"
    with limited(resource.RLIMIT_NOFILE, 8192):
        running = forward(f"127.0.0.1:0={target}", f"127.0.0.1:0={target}")
        full, other = running.ports
        with ExitStack() as held:
            *served, waiting = [held.enter_context(dial(full)) for _ in range(PLACES + 1)]
            for connection in served:
                assert echoed(connection, b"x") == b"x"
            waiting.sendall(b"x")
            waiting.setblocking(False)
            with pytest.raises(BlockingIOError):
                waiting.recv(1)
            with dial(other) as connection:
                assert echoed(connection, b"hello") == b"hello"
            waiting.settimeout(20)
            served[0].close()
            assert waiting.recv(1) == b"x"


@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=[pytest.mark.stress, pytest.mark.timeout(600)])])
def test_many_brief_connections_leave_no_thread_and_no_descriptor(forward: Forward, echo: Echo, count: int) -> None:
    running = forward(f"127.0.0.1:0=127.0.0.1:{echo.port}")
    for number in range(count):
        with dial(running.ports[0]) as connection:
            if number % 3:
                assert echoed(connection, b"hello") == b"hello"
            if number % 3 == 2:
                connection.shutdown(1)
                assert ended(connection)
    running.settles()
