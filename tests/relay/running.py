"""A real relay process, and a bare websocket to it for what the client of `bench.channel` would hide."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import aiohttp
import orjson
import psycopg

from bench.nostr import Event, Key
from bench.stack.postgres import Postgres

START_S = 20.0
WAIT_S = 15.0


@dataclass
class RunningRelay:
    """`python -m bench.relay` on a port of the system's choice, which a restart keeps."""

    dsn: str
    owner: Key = field(default_factory=Key.generate)
    key: Key = field(default_factory=Key.generate)
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"ws://localhost:{self.port}"

    @property
    def http_url(self) -> str:
        return f"http://localhost:{self.port}"

    def config(self, ready_file: Path) -> dict[str, Any]:
        return {
            "host": "127.0.0.1",
            "port": self.port,
            "relay_url": f"ws://localhost:{self.port}",
            "dsn": self.dsn,
            "relay_private_key": self.key.secret,
            "owner_public": self.owner.public,
            "ready_file": str(ready_file),
        }

    def start(self) -> Self:
        with tempfile.TemporaryDirectory(prefix="bzb-relay-") as directory:
            ready = Path(directory) / "ready.json"
            self.process = subprocess.Popen([sys.executable, "-m", "bench.relay"], stdin=subprocess.PIPE)
            assert self.process.stdin is not None
            self.process.stdin.write(json.dumps(self.config(ready)).encode())
            self.process.stdin.close()
            give_up_at = time.monotonic() + START_S
            while not ready.exists():
                assert self.process.poll() is None, f"the relay ended with {self.process.returncode}"
                assert time.monotonic() < give_up_at, "the relay is not ready"
                time.sleep(0.01)
            told = json.loads(ready.read_text())
        assert told["pid"] == self.process.pid
        self.port = told["port"]
        return self

    def stop(self, number: int = signal.SIGTERM) -> int:
        """The exit code after a signal."""
        if self.process is None:
            return 0
        process, self.process = self.process, None
        if process.poll() is None:
            process.send_signal(number)
        return process.wait(WAIT_S)

    def pause(self) -> None:
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGSTOP)

    def proceed(self) -> None:
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGCONT)

    def agent(self) -> tuple[Key, list[str]]:
        """A new key with the owner's attestation."""
        key = Key.generate()
        return key, self.owner.attest(key.public)

    @asynccontextmanager
    async def socket(self, key: Key | None = None, tag: Sequence[str] | None = None) -> AsyncIterator[Wire]:
        """A websocket; authenticated where a key is given."""
        async with aiohttp.ClientSession() as session, session.ws_connect(self.url) as socket:
            wire = Wire(socket, self.url)
            wire.challenge = (await wire.receive())[1]
            if key is not None:
                answer = await wire.authenticate(key, tag)
                assert answer[2] is True, answer
            yield wire

    async def post(
        self,
        path: str,
        body: Any,
        key: Key,
        *,
        tag: Sequence[str] | None = None,
        headers: dict[str, str] | None = None,
    ) -> tuple[int, Any]:
        """(status, answer) of one call of the HTTP bridge."""
        raw = body if isinstance(body, bytes) else orjson.dumps(body)
        sent = {"Authorization": key.authorize("POST", f"{self.http_url}{path}", raw)}
        if tag is not None:
            sent["x-auth-tag"] = json.dumps(list(tag))
        async with (
            aiohttp.ClientSession() as session,
            session.post(
                f"{self.http_url}{path}", data=io.BytesIO(raw), headers={**sent, **(headers or {})}
            ) as response,
        ):
            return response.status, await response.json()

    async def get(self, path: str, **headers: str) -> tuple[int, bytes]:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{self.http_url}{path}", headers=headers) as response,
        ):
            return response.status, await response.read()


@dataclass
class Wire:
    """Frames as they are."""

    socket: aiohttp.ClientWebSocketResponse
    url: str
    challenge: str = ""

    async def send(self, *frame: Any) -> None:
        await self.socket.send_str(json.dumps(frame, ensure_ascii=False))

    async def receive(self) -> list[Any]:
        message = await self.socket.receive(WAIT_S)
        assert message.type is aiohttp.WSMsgType.TEXT, (message, self.socket.close_code)
        frame: list[Any] = json.loads(message.data)
        return frame

    async def authenticate(self, key: Key, tag: Sequence[str] | None = None) -> list[Any]:
        """The relay's answer to the AUTH."""
        await self.send("AUTH", key.answer_challenge(self.challenge, self.url, tag))
        return await self.receive()

    async def publish(self, event: Event) -> list[Any]:
        """[accepted, message] of the OK; EVENT frames before it are skipped."""
        await self.send("EVENT", event)
        while True:
            frame = await self.receive()
            if frame[:2] == ["OK", event["id"]]:
                return frame[2:]

    async def request(self, name: str, *filters: Any) -> list[Event]:
        """The stored events of a REQ, up to its EOSE."""
        await self.send("REQ", name, *filters)
        found: list[Event] = []
        while True:
            frame = await self.receive()
            if frame[:2] == ["EOSE", name]:
                return found
            assert frame[:2] == ["EVENT", name], frame
            found.append(frame[2])

    async def silent(self) -> None:
        """Nothing came before the answer to a request made now."""
        name = uuid.uuid4().hex
        assert await self.request(name, {"kinds": [0], "limit": 0}) == []


@contextmanager
def new_database(server: Postgres) -> Iterator[str]:
    """The DSN of an empty database on the server."""
    name = f"relay_{uuid.uuid4().hex}"
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        yield server.dsn.replace("dbname=postgres", f"dbname={name}")
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@contextmanager
def living_relay(dsn: str) -> Iterator[RunningRelay]:
    """A relay that is still there at the end, and then ends as it should."""
    running = RunningRelay(dsn).start()
    yield running
    assert running.stop() == 0


def create(key: Key, *, private: bool = True, name: str = "room") -> tuple[str, Event]:
    """A new channel's id, and the event that makes it."""
    channel = str(uuid.uuid4())
    tags = [["h", channel], ["name", name], ["visibility", "private" if private else "open"]]
    return channel, key.sign(9007, "", [*tags, ["channel_type", "stream"]])


def add(key: Key, channel: str, member: str, role: str | None = None) -> Event:
    """The event that adds a member."""
    tags = [["h", channel], ["p", member]] + ([["role", role]] if role else [])
    return key.sign(9000, "", tags)


async def within[T](awaitable: Awaitable[T]) -> T:
    """The result, or a failure after a generous while."""
    return await asyncio.wait_for(awaitable, WAIT_S)


async def until(condition: Callable[[], bool]) -> None:
    """Return when something outside of this process, which can't tell us, has become true."""
    async with asyncio.timeout(WAIT_S):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def room(wire: Wire, owner: Key, *members: Key, private: bool = True) -> str:
    """A new channel of the owner, who speaks on the wire, with these members."""
    channel, event = create(owner, private=private)
    assert await wire.publish(event) == [True, ""]
    for member in members:
        assert await wire.publish(add(owner, channel, member.public)) == [True, ""]
    return channel


def note(key: Key, channel: str, text: str = "hello", *tags: list[str]) -> Event:
    return key.sign(9, text, [["h", channel], *tags])
