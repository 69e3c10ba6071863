"""What is said of an upstream that doesn't answer: each timeout with its clock, its limit, and where that is set."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bench.gateway import upstream
from bench.gateway.dialects import WIRES
from bench.gateway.protocol import Endpoint
from bench.gateway.upstream import Outgoing, UpstreamFailed

CALL = Outgoing({}, "", b"{}")


async def failure(url: str) -> UpstreamFailed:
    """How one call to it fails."""
    async with upstream.session() as client:
        with pytest.raises(UpstreamFailed) as raised:
            opened = await upstream.opened(client, Endpoint("anthropic", url), WIRES["anthropic"], CALL)
            await opened.read()
    return raised.value


@asynccontextmanager
async def saying(*words: bytes) -> AsyncIterator[str]:
    """The address of a server that says this much to whoever comes, and then nothing."""

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.writelines(words)
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize("words", [(), (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n", b"{")])
async def test_a_silence_is_told_with_its_limit_and_is_not_tried_again(
    words: tuple[bytes, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upstream, "SILENCE_S", 0.05)
    async with saying(*words) as url:
        failed = await failure(url)
    assert str(failed) == "127.0.0.1 sent nothing for 0.05 s (bench.gateway.upstream.SILENCE_S)"
    assert (failed.status, failed.sent, failed.again) == (504, True, False)


async def test_a_connection_that_is_not_taken_is_told_with_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream, "CONNECT_S", 0.05)
    with socket.socket() as listener, socket.socket() as first, socket.socket() as second:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for waiting in (first, second):
            # Nobody accepts them: they fill the queue, and who comes now has no answer.
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        failed = await failure(f"http://127.0.0.1:{listener.getsockname()[1]}")
    assert str(failed) == "127.0.0.1 took no connection within 0.05 s (bench.gateway.upstream.CONNECT_S)"
    assert (failed.status, failed.sent, failed.again) == (504, False, True)


async def test_a_generation_may_take_as_long_as_it_says_something() -> None:
    """A reset after 240 s would cut a long one (issue 6, row 1): only silence has a limit."""
    async with upstream.session() as client:
        limits = client.timeout
    assert (limits.total, limits.connect, limits.sock_read) == (None, None, upstream.SILENCE_S)
    assert upstream.SILENCE_S > 240
