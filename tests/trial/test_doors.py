"""Doors from another address of this host to what listens on loopback alone."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bench.trial.doors import Doors

ELSEWHERE = "127.0.0.9"


async def upper(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers with what it was told, once the other has closed its half."""
    with contextlib.suppress(ConnectionError):
        writer.write((await reader.read()).upper())
        await writer.drain()
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


@pytest.fixture
async def port() -> AsyncIterator[int]:
    server = await asyncio.start_server(upper, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
        # Its handlers end with their connections, a moment later.
        while len(asyncio.all_tasks()) > 1:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def ask(port: int, text: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(ELSEWHERE, port)
    writer.write(text)
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


async def test_what_goes_in_comes_out_and_each_half_closes_alone(port: int) -> None:
    doors = Doors()
    door = await doors.port(ELSEWHERE, port)
    text = b"hello" * 200_000
    assert await ask(door, text) == text.upper()
    assert await doors.port(ELSEWHERE, port) == door
    await doors.close()


async def test_what_listens_there_already_needs_no_door() -> None:
    server = await asyncio.start_server(upper, ELSEWHERE, 0)
    async with server:
        there = server.sockets[0].getsockname()[1]
        doors = Doors()
        assert await doors.port(ELSEWHERE, there) == there
        await doors.close()


async def test_a_socket_leads_there_for_any_user_of_a_container_and_is_gone_when_closed(
    port: int, tmp_path: Path
) -> None:
    doors = Doors()
    name = await doors.socket(tmp_path, "relay", port)
    assert await doors.socket(tmp_path, "relay", port) == name
    assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o666
    reader, writer = await asyncio.open_unix_connection(tmp_path / name)
    writer.write(b"hello")
    writer.write_eof()
    assert await reader.read() == b"HELLO"
    writer.close()
    await writer.wait_closed()
    await doors.close()
    assert [*tmp_path.iterdir()] == []


async def test_sockets_of_processes_that_were_killed_are_removed_and_others_stay(port: int, tmp_path: Path) -> None:
    ended = await asyncio.create_subprocess_exec("true")
    await ended.wait()
    for name in (f"relay-{ended.pid}.sock", f"relay-{os.getppid()}.sock"):
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(tmp_path / name))
    doors = Doors()
    own = await doors.socket(tmp_path, "gateway", port)
    assert {path.name for path in tmp_path.iterdir()} == {own, f"relay-{os.getppid()}.sock"}
    await doors.close()


async def test_closing_ends_what_goes_through(port: int) -> None:
    doors = Doors()
    reader, writer = await asyncio.open_connection(ELSEWHERE, await doors.port(ELSEWHERE, port))
    writer.write(b"x")
    await writer.drain()
    await doors.close()
    with contextlib.suppress(ConnectionError):
        assert await reader.read() == b""
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()
