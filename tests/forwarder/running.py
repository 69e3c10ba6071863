"""A running forwarder and what it leads to."""

from __future__ import annotations

import resource
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.pipeline import wait_until


@dataclass(frozen=True)
class Forwarder:
    process: subprocess.Popen[str]
    ready: tuple[str, ...]
    """Its ready lines, without the word."""

    @property
    def ports(self) -> tuple[int, ...]:
        """The TCP ports that it took, in the order of its pairs."""
        return tuple(int(line.partition("=")[0].rpartition(":")[2]) for line in self.ready if line[:5] != "unix:")

    def settles(self) -> None:
        """Wait until it has no thread and no descriptor more than it needs to listen: for a pair of one TCP or unix
        address an accepting thread, its socket and a spare descriptor; beside them the main thread and standard files.
        """
        pairs = len(self.ready)
        wait_until(lambda: (self._count("task"), self._count("fd")) == (1 + pairs, 3 + 2 * pairs))

    def _count(self, what: str) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/{what}").iterdir()))

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Its exit code, and what it said on standard error."""
        self.process.send_signal(number)
        _, said = self.process.communicate(timeout=20)
        return self.process.returncode, said


@contextmanager
def limited(kind: int, soft: int) -> Iterator[None]:
    """This process, and those that it starts meanwhile, have this soft limit, or what the hard one allows of it."""
    before = resource.getrlimit(kind)
    hard = before[1]
    resource.setrlimit(kind, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(kind, before)


@contextmanager
def forwarder(program: Path, *pairs: str, user: int | None = None) -> Iterator[Forwarder]:
    """The program with these pairs, ready; ended at the latest here."""
    with subprocess.Popen(
        [str(program), *pairs], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, user=user
    ) as process:
        assert process.stdout
        try:
            lines = [process.stdout.readline() for _ in pairs]
            assert all(line.startswith("ready ") for line in lines), process.communicate()
            yield Forwarder(process, tuple(line.split()[1] for line in lines))
        finally:
            process.kill()


def refused(program: Path, *pairs: str) -> tuple[int, str]:
    """Exit code and standard error of a start that fails."""
    done = subprocess.run([str(program), *pairs], capture_output=True, text=True, check=False, timeout=20)
    assert done.stdout == ""
    return done.returncode, done.stderr


class Echo:
    """A peer that sends everything back, and closes its half when it has read to the end."""

    def __init__(self, address: tuple[str, int] | Path) -> None:
        if isinstance(address, Path):
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(str(address))
        else:
            self._listener = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET)
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._listener.bind(address)
        self._listener.listen(512)
        self.ended = threading.Semaphore(0)
        """Released for each connection that is over."""

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=self._serve, args=self._listener.accept()[:1], daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            while received := connection.recv(1 << 16):
                connection.sendall(received)
        self.ended.release()


def dial(port: int, host: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection((host, port), timeout=20)


def dial_unix(path: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(20)
    connection.connect(str(path))
    return connection


def echoed(connection: socket.socket, sent: bytes) -> bytes:
    """What comes back for these bytes: as many, unless the connection ends before."""
    writer = threading.Thread(target=connection.sendall, args=(sent,), daemon=True)
    writer.start()
    received = b""
    while len(received) < len(sent) and (part := connection.recv(1 << 16)):
        received += part
    writer.join()
    return received


def ended(connection: socket.socket) -> bool:
    """Whether nothing more comes: its end, or that it was reset."""
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True
