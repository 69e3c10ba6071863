"""The forwarder carries bytes faithfully, between every kind of address, and lets each end close its half alone."""

from __future__ import annotations

import os
import signal
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.forwarder.running import Echo, Forwarder, dial, dial_unix, echoed, ended, refused

type Forward = Callable[..., Forwarder]

needs_ipv6 = pytest.mark.skipif(not Path("/proc/net/if_inet6").exists(), reason="this machine has no IPv6")


def test_what_is_sent_comes_through_unchanged_both_ways(forward: Forward, echo: Echo) -> None:
    (port,) = forward(f"127.0.0.1:0=127.0.0.1:{echo.port}").ports
    sent = os.urandom(3_000_001)
    with dial(port) as connection:
        assert echoed(connection, b"small") == b"small"
        assert echoed(connection, sent) == sent
        assert echoed(connection, b"small again") == b"small again"


def test_a_client_that_has_sent_all_still_gets_the_answer(forward: Forward, echo: Echo) -> None:
    (port,) = forward(f"127.0.0.1:0=127.0.0.1:{echo.port}").ports
    with dial(port) as connection:
        connection.sendall(b"question")
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(100) == b"question"
        assert ended(connection)


def test_a_target_that_has_sent_all_is_still_sent_to(forward: Forward) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        (port,) = forward(f"127.0.0.1:0=127.0.0.1:{listener.getsockname()[1]}").ports
        with dial(port) as client:
            target, _ = listener.accept()
            with target:
                target.sendall(b"all that I say")
                target.shutdown(socket.SHUT_WR)
                assert client.recv(100) == b"all that I say"
                assert ended(client)
                client.sendall(b"go on, I listen")
                assert target.recv(100) == b"go on, I listen"


def test_a_client_that_does_not_read_can_still_send(forward: Forward) -> None:
    sent = os.urandom(64_000_000)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        (port,) = forward(f"127.0.0.1:0=127.0.0.1:{listener.getsockname()[1]}").ports
        with dial(port) as client:
            target, _ = listener.accept()
            with target:
                writer = threading.Thread(target=target.sendall, args=(sent,), daemon=True)
                writer.start()
                writer.join(timeout=0.2)
                assert writer.is_alive(), "more fits between the two than this test sends"
                client.sendall(b"I am full")
                assert target.recv(100) == b"I am full"
                received = b""
                while len(received) < len(sent):
                    received += client.recv(1 << 20)
                assert received == sent


def test_a_client_that_is_cut_off_takes_its_other_side_with_it(forward: Forward, echo: Echo) -> None:
    running = forward(f"127.0.0.1:0=127.0.0.1:{echo.port}")
    with dial(running.ports[0]) as connection:
        assert echoed(connection, b"hello") == b"hello"
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert echo.ended.acquire(timeout=20)
    running.settles()


def test_a_target_that_cuts_off_takes_the_client_with_it(forward: Forward) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        (port,) = forward(f"127.0.0.1:0=127.0.0.1:{listener.getsockname()[1]}").ports
        with dial(port) as client:
            target, _ = listener.accept()
            target.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            target.close()
            assert ended(client)


def test_each_pair_has_its_line_and_its_target(forward: Forward, tmp_path: Path, echo: Echo) -> None:
    with Echo(tmp_path / "target") as other:
        running = forward(
            f"127.0.0.1:0=127.0.0.1:{echo.port}",
            f"unix:{tmp_path}/listen=127.0.0.1:{echo.port}",
            f"127.0.0.1:0=unix:{tmp_path}/target",
        )
        first, third = running.ports
        assert running.ready == (
            f"127.0.0.1:{first}=127.0.0.1:{echo.port}",
            f"unix:{tmp_path}/listen=127.0.0.1:{echo.port}",
            f"127.0.0.1:{third}=unix:{tmp_path}/target",
        )
        for connection in (dial(first), dial_unix(tmp_path / "listen"), dial(third)):
            with connection:
                assert echoed(connection, b"x" * 100_000) == b"x" * 100_000
        assert other.ended.acquire(timeout=20)


@needs_ipv6
def test_both_sides_can_be_ipv6(forward: Forward) -> None:
    with Echo(("::1", 0)) as echo:
        running = forward(f"[::1]:0=[::1]:{echo.port}")
        assert running.ready[0] == f"[::1]:{running.ports[0]}=[::1]:{echo.port}"
        with dial(running.ports[0], "::1") as connection:
            assert echoed(connection, b"six") == b"six"


def test_a_name_listens_on_all_of_its_addresses(forward: Forward, echo: Echo) -> None:
    (port,) = forward(f"localhost:0=localhost:{echo.port}").ports
    addresses = {entry[4][0] for entry in socket.getaddrinfo("localhost", port, type=socket.SOCK_STREAM)}
    for address in addresses:
        with dial(port, str(address)) as connection:
            assert echoed(connection, b"hello") == b"hello"


def test_a_target_may_come_up_later_and_again(forward: Forward, tmp_path: Path) -> None:
    running = forward(f"127.0.0.1:0=unix:{tmp_path}/target")
    (port,) = running.ports
    for _ in range(2):
        with dial(port) as connection:
            assert ended(connection)
        with Echo(tmp_path / "target"), dial(port) as connection:
            assert echoed(connection, b"there you are") == b"there you are"
        (tmp_path / "target").unlink()
    running.settles()
    code, said = running.end()
    assert code == 0
    assert f"relay-forwarder: can't reach unix:{tmp_path}/target: No such file" in said


def test_a_target_that_stays_down_does_not_fill_the_log(forward: Forward) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        target = free.getsockname()[1]
    running = forward(f"127.0.0.1:0=127.0.0.1:{target}")
    for _ in range(50):
        with dial(running.ports[0]) as connection:
            assert ended(connection)
    _, said = running.end()
    assert 1 <= said.count(f"can't reach 127.0.0.1:{target}: Connection refused") < 50


def test_a_name_is_looked_up_when_it_is_dialled(forward: Forward) -> None:
    running = forward("127.0.0.1:0=no-such-host.invalid:80")
    with dial(running.ports[0]) as connection:
        assert ended(connection)
    assert "can't reach no-such-host.invalid:80" in running.end()[1]


def test_a_socket_that_nobody_listens_on_is_replaced(forward: Forward, tmp_path: Path, echo: Echo) -> None:
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(tmp_path / "listen"))
    forward(f"unix:{tmp_path}/listen=127.0.0.1:{echo.port}")
    with dial_unix(tmp_path / "listen") as connection:
        assert echoed(connection, b"hello") == b"hello"


def test_a_socket_in_use_and_a_plain_file_are_left_alone(program: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with Echo(tmp_path / "used"):
        for name in ("used", "file"):
            code, said = refused(program, f"unix:{tmp_path}/{name}=127.0.0.1:1")
            assert code == 1
            assert said.startswith(f"relay-forwarder: can't listen on unix:{tmp_path}/{name}: Address already in use")
        with dial_unix(tmp_path / "used") as connection:
            assert echoed(connection, b"still here") == b"still here"
    assert (tmp_path / "file").read_text() == "mine"


def test_a_port_that_is_taken_is_named(program: Path, echo: Echo) -> None:
    code, said = refused(program, f"127.0.0.1:{echo.port}=127.0.0.1:1")
    assert code == 1
    assert said.startswith(f"relay-forwarder: can't listen on 127.0.0.1:{echo.port}: Address already in use")


@pytest.mark.parametrize(
    ("pairs", "what"),
    [
        ([], "usage: relay-forwarder LISTEN=TARGET"),
        (["127.0.0.1:80"], '"127.0.0.1:80" is no LISTEN=TARGET; usage:'),
        (["localhost=127.0.0.1:80"], '"localhost" is neither host:port nor unix:/path'),
        (["localhost:80=:80"], '":80" is neither host:port nor unix:/path'),
        (["localhost:99999=a:1"], '"localhost:99999" is neither host:port nor unix:/path'),
        (["unix:here=a:1"], '"unix:here" has no absolute path'),
    ],
)
def test_wrong_arguments_are_named(program: Path, pairs: list[str], what: str) -> None:
    code, said = refused(program, *pairs)
    assert (code, said.count("\n")) == (2, 1)
    assert what in said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_at_once_and_takes_its_sockets_along(
    forward: Forward, tmp_path: Path, echo: Echo, number: signal.Signals
) -> None:
    running = forward(f"unix:{tmp_path}/listen=127.0.0.1:{echo.port}", f"127.0.0.1:0=127.0.0.1:{echo.port}")
    with dial(running.ports[0]) as connection:
        assert echoed(connection, b"hello") == b"hello"
        assert running.end(number) == (0, "")
        assert ended(connection)
    assert not (tmp_path / "listen").exists()


def test_nobody_has_to_read_what_it_says(forward: Forward, echo: Echo) -> None:
    running = forward(f"127.0.0.1:0=127.0.0.1:{echo.port}", "127.0.0.1:0=127.0.0.1:1")
    assert running.process.stderr
    running.process.stderr.close()
    good, bad = running.ports
    for _ in range(3):
        with dial(bad) as connection:
            assert ended(connection)
    with dial(good) as connection:
        assert echoed(connection, b"hello") == b"hello"


def test_many_connections_at_once_are_kept_apart(forward: Forward, echo: Echo) -> None:
    running = forward(f"127.0.0.1:0=127.0.0.1:{echo.port}")
    with ExitStack() as held:
        connections = [held.enter_context(dial(running.ports[0])) for _ in range(200)]
        texts = [f"{number} ".encode() * 500 for number in range(200)]
        got: dict[int, bytes] = {}

        def talk(number: int) -> None:
            got[number] = echoed(connections[number], texts[number])

        talkers = [threading.Thread(target=talk, args=(number,), daemon=True) for number in range(200)]
        for talker in talkers:
            talker.start()
        for talker in talkers:
            talker.join(timeout=60)
        assert got == dict(enumerate(texts))
    running.settles()
