"""The forwarder beside a direct connection to the same peer, in turns; client and peer are in Python on both sides."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

from bench.errors import BuzzbenchError
from bench.perf import Figure
from bench.perf.timing import quantile
from bench.settings import ROOT
from bench.xbuild.forwarder import build_here

PASSES = 5
ROUND_TRIPS = 2000
MESSAGE = b"x" * 200
BLOCK = b"z" * (1 << 18)
STREAM_S = 1.0
IDLE_CONNECTIONS = 200
BRIEF_CONNECTIONS = 10_000
OF_ONE_CONNECTION = 3
"""Its thread and its two descriptors."""
IN_THROUGHPUT = 0.4
"""2 GB/s where a direct connection does 5 (issue 7)."""


def measure() -> Iterator[Figure]:
    """Round trip and throughput as ratios to direct, memory of idle connections, and what many brief ones leave."""
    with tempfile.TemporaryDirectory() as home, _peer() as direct:
        program = build_here(Path(home))
        with _forwarder(program, direct) as (process, forwarded):
            ports = {"direct": direct, "forwarded": forwarded}
            trips: dict[str, list[float]] = {name: [] for name in ports}
            rates: dict[str, list[float]] = {name: [] for name in ports}
            for _ in range(PASSES):
                for name, port in ports.items():
                    trips[name].append(_round_trip_us(port))
                for name, port in ports.items():
                    rates[name].append(_gigabytes_per_s(port))
            yield _ratio("a round trip of 200 bytes, p50, / direct", trips, 2.0, unit="us")
            yield _ratio("bytes one way / direct", rates, IN_THROUGHPUT, unit="GB/s", at_least=True)
        with _forwarder(program, direct) as (process, forwarded):
            with ExitStack() as held:
                with _connect(forwarded, b"E") as connection:
                    _exchange(connection)
                    before = _load(process.pid) - OF_ONE_CONNECTION
                for _ in range(IDLE_CONNECTIONS):
                    _exchange(held.enter_context(_connect(forwarded, b"E")))
                idle = _resident_bytes(process.pid)
            yield Figure(f"memory with {IDLE_CONNECTIONS} idle connections", idle / 1e6, "MB", 8.0)
            for _ in range(BRIEF_CONNECTIONS):
                with _connect(forwarded, b"E") as connection:
                    _exchange(connection)
            left = _settled(process.pid, before)
            yield Figure(f"threads and descriptors left by {BRIEF_CONNECTIONS} connections", left, "", 0)


def _ratio(name: str, values: dict[str, list[float]], target: float, *, unit: str, at_least: bool = False) -> Figure:
    """Forwarded over direct, pass by pass; the median."""
    pairs = list(zip(values["forwarded"], values["direct"], strict=True))
    note = f"{median(f for f, _ in pairs):.2f} and {median(d for _, d in pairs):.2f} {unit}"
    return Figure(name, median(f / d for f, d in pairs), "x", target, at_least=at_least, note=note)


@contextmanager
def _peer() -> Iterator[int]:
    with subprocess.Popen(
        [sys.executable, "-m", "bench.perf.peer"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        try:
            yield int(process.stdout.readline())
        finally:
            process.stdin.close()


@contextmanager
def _forwarder(program: Path, target: int) -> Iterator[tuple[subprocess.Popen[str], int]]:
    with subprocess.Popen(
        [str(program), f"127.0.0.1:0=127.0.0.1:{target}"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        try:
            listen = process.stdout.readline().removeprefix("ready ").partition("=")[0]
            yield process, int(listen.rpartition(":")[2])
        finally:
            process.terminate()


@contextmanager
def _connect(port: int, kind: bytes) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(kind)
        yield connection


def _exchange(connection: socket.socket) -> None:
    connection.sendall(MESSAGE)
    missing = len(MESSAGE)
    while missing:
        missing -= len(connection.recv(missing))


def _round_trip_us(port: int) -> float:
    taken = []
    with _connect(port, b"E") as connection:
        for _ in range(ROUND_TRIPS):
            began = time.perf_counter()
            _exchange(connection)
            taken.append((time.perf_counter() - began) * 1e6)
    return quantile(taken, 0.5)


def _gigabytes_per_s(port: int) -> float:
    """Raises BuzzbenchError if a byte is lost."""
    sent = 0
    with _connect(port, b"S") as connection:
        began = time.perf_counter()
        while time.perf_counter() - began < STREAM_S:
            connection.sendall(BLOCK)
            sent += len(BLOCK)
        connection.shutdown(socket.SHUT_WR)
        received = int(connection.recv(64))
        taken = time.perf_counter() - began
    if received != sent:
        raise BuzzbenchError(f"{sent} bytes were sent and {received} came", where="the forwarder")
    return sent / taken / 1e9


def _resident_bytes(pid: int) -> int:
    return _status(pid, "VmRSS") * 1024


def _load(pid: int) -> int:
    """Threads and descriptors."""
    return _status(pid, "Threads") + len(list(Path(f"/proc/{pid}/fd").iterdir()))


def _settled(pid: int, before: int) -> int:
    """How many threads and descriptors there are more than before, once that is none or five seconds are over."""
    end = time.monotonic() + 5
    while _load(pid) > before and time.monotonic() < end:
        time.sleep(0.01)
    return _load(pid) - before


def _status(pid: int, field: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0])
    raise BuzzbenchError(f"no {field} of process {pid}")
