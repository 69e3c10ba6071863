"""Doors to relay and gateway for containers: sockets in a directory that is mounted there, or ports on a bridge.

Sockets need no network, so that a task may have none. Ports on the Docker engine's bridge are for where sockets can't
be mounted; the compose stack publishes both there, the embedded one listens on loopback alone. The process of a job
opens what is missing, and it is gone when that ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path

CHUNK_BYTES = 1 << 16
ANSWER_S = 2.0
LOOPBACK = "127.0.0.1"
FOR_ALL = 0o666
"""A container's user may be anybody; on this host the directory keeps others out."""


class Doors:
    """The doors that one job has opened."""

    def __init__(self) -> None:
        self._servers: dict[tuple[str, int], asyncio.Server] = {}
        self._sockets: dict[Path, asyncio.Server] = {}
        self._passing: set[asyncio.Task[None]] = set()
        self._one = asyncio.Lock()

    async def port(self, address: str, wanted: int) -> int:
        """The port on that address behind which is what listens on loopback's `wanted`; opened now if need be."""
        async with self._one:
            server = self._servers.get((address, wanted))
            if server is None:
                if await _answers(address, wanted):
                    return wanted
                server = await asyncio.start_server(lambda r, w: self._enter(r, w, wanted), address, 0)
                self._servers[address, wanted] = server
            port: int = server.sockets[0].getsockname()[1]
            return port

    async def socket(self, directory: Path, name: str, wanted: int) -> str:
        """The name, in that directory, of the socket behind which is what listens on loopback's `wanted`.

        Each process has its own, so that jobs don't take each other's; those of processes that are gone are removed.
        """
        async with self._one:
            path = directory / f"{name}-{os.getpid()}.sock"
            if path not in self._sockets:
                _sweep(directory)
                server = await asyncio.start_unix_server(lambda r, w: self._enter(r, w, wanted), path)
                path.chmod(FOR_ALL)
                self._sockets[path] = server
            return path.name

    async def close(self) -> None:
        """Close them, with what goes through them."""
        for server in (*self._servers.values(), *self._sockets.values()):
            server.close()
        for path in self._sockets:
            path.unlink(missing_ok=True)
        self._servers.clear()
        self._sockets.clear()
        for task in self._passing:
            task.cancel()
        await asyncio.gather(*self._passing, return_exceptions=True)

    def _enter(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
        task = asyncio.get_running_loop().create_task(_pass(reader, writer, port))
        self._passing.add(task)
        task.add_done_callback(self._passing.discard)


def _sweep(directory: Path) -> None:
    """Remove the sockets of processes that are gone: they were killed."""
    for path in directory.glob("*.sock"):
        owner = path.stem.rpartition("-")[2]
        if owner.isdecimal() and not Path(f"/proc/{owner}").exists():
            path.unlink(missing_ok=True)


async def _answers(address: str, port: int) -> bool:
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(address, port), ANSWER_S)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
    ends = [writer]
    try:
        inner_reader, inner_writer = await asyncio.open_connection(LOOPBACK, port)
        ends.append(inner_writer)
        await asyncio.gather(_copy(reader, inner_writer), _copy(inner_reader, writer))
    except OSError:
        pass  # nobody listens there any more: the door's own client sees its connection closed
    finally:
        for end in ends:
            end.close()
        await asyncio.gather(*(end.wait_closed() for end in ends), return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Until one end closes; then the other is told, and may still answer."""
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
