"""The websocket edge: frames in, frames out, and the authentication of one connection (BUZZ.md sections 1 and 2)."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Coroutine
from typing import Any

import orjson
from aiohttp import WSMsgType, web

from bench.nostr import Event
from bench.relay.access import attestation_of, check_answer
from bench.relay.fanout import Live, Outbox
from bench.relay.ingest import Answer
from bench.relay.protocol import (
    MAX_FRAME_BYTES,
    MAX_SUBSCRIPTION_NAME,
    MAX_SUBSCRIPTIONS,
    Filter,
    Refused,
    decode,
    lenient_event_id,
    live_channel,
    parse_event,
    parse_filters,
)
from bench.relay.relay import Relay
from bench.relay.store import Unavailable

AUTH_S = 5.0
PING_S = 30.0
RESTARTING = 1012
NOT_AUTHENTICATED = "auth-required: not authenticated"
UNAVAILABLE = "error: the database does not answer; try again"


def text_frame(text: str) -> bytes:
    """One unmasked text frame (RFC 6455, section 5.2)."""
    payload = text.encode()
    size = len(payload)
    if size < 126:
        return b"\x81" + size.to_bytes(1) + payload
    if size < 1 << 16:
        return b"\x81\x7e" + size.to_bytes(2) + payload
    return b"\x81\x7f" + size.to_bytes(8) + payload


class Session:
    """One websocket of one client."""

    def __init__(self, relay: Relay, request: web.Request) -> None:
        self.relay, self._request = relay, request
        self.socket = web.WebSocketResponse(heartbeat=PING_S, max_msg_size=MAX_FRAME_BYTES, compress=False)
        self.challenge = secrets.token_hex(32)
        self.public: str | None = None
        self._auth_failed = False
        self._outbox = Outbox(self._cut)
        self._lives: dict[str, Live] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self) -> web.WebSocketResponse:
        """Speak with the client until it leaves."""
        await self.socket.prepare(self._request)
        self.relay.sessions.add(self)
        self._spawn(self._pump())
        self._push("AUTH", self.challenge)
        deadline = asyncio.get_running_loop().call_later(AUTH_S, lambda: self._spawn(self._expire()))
        try:
            async for message in self.socket:
                if message.type is WSMsgType.TEXT:
                    await self._on_text(message.data)
                elif message.type is WSMsgType.BINARY:
                    self._notice("invalid message: not a text frame")
        finally:
            deadline.cancel()
            self.relay.sessions.discard(self)
            for live in self._lives.values():
                self.relay.fanout.remove(live)
            for task in self._tasks:
                task.cancel()
        return self.socket

    async def close(self) -> None:
        """Tell the client that the relay restarts."""
        await self.socket.close(code=RESTARTING, message=b"the relay restarts")

    def revoke(self, live: Live, reason: str) -> None:
        """End a subscription of this session."""
        if self._lives.get(live.name) is live:
            del self._lives[live.name]
            self._push("CLOSED", live.name, reason)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _pump(self) -> None:
        try:
            await self._outbox.pump(self._send)
        except ConnectionError:
            self._cut()  # the client left; the reader hears of it, too

    async def _send(self, frames: list[str]) -> None:
        """Write the frames in one piece. `send_str` costs a system call each, and wakes the client for each: of
        8000 events in flight by 64, it made 8000 writes where this makes 300, and took 8 % more of the relay's
        CPU. A server's frames are not masked, and ours not compressed, so that they simply join."""
        transport = self._request.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client left")
        transport.write(b"".join(map(text_frame, frames)))
        await self._request.writer.drain()

    def _cut(self) -> None:
        if self._request.transport is not None:
            self._request.transport.abort()

    async def _expire(self) -> None:
        if self.public is None:
            self._notice(f"{NOT_AUTHENTICATED} within {AUTH_S:g} s")
            await self._outbox.flushed()
            await self.socket.send_frame(b"", WSMsgType.CLOSE)

    def _push(self, *frame: Any) -> None:
        self._outbox.push(orjson.dumps(frame).decode())

    def _notice(self, text: str) -> None:
        self._push("NOTICE", text)

    async def _on_text(self, text: str) -> None:
        try:
            frame = decode(text)
        except Refused as refusal:
            identity = lenient_event_id(text)
            if identity is not None:
                self._push("OK", identity, False, refusal.text)
            else:
                self._notice(f"invalid message: {refusal.text.removeprefix('invalid: ')}")
            return
        match frame:
            case ["EVENT", event]:
                await self._on_event(event)
            case ["AUTH", answer]:
                await self._on_auth(answer)
            case ["REQ" | "COUNT" as what, str(name), *filters]:
                self._on_request(what, name, filters)
            case ["CLOSE", str(name)]:
                self._drop(name)
                self._push("CLOSED", name, "")
            case _:
                self._notice("invalid message: neither EVENT, REQ, COUNT, CLOSE nor AUTH in its form")

    async def _on_event(self, given: Any) -> None:
        identity = given.get("id") if isinstance(given, dict) else None
        if not isinstance(identity, str):
            self._notice("invalid message: an event without an id")
            return
        if self.public is None:
            self._push("OK", identity, False, NOT_AUTHENTICATED)
            return
        if refused := self.relay.too_much(self.public, "frame", "message"):
            self._notice(refused)  # As Buzz does it: an event that is too much gets no OK.
            return
        try:
            event = parse_event(given)
        except Refused as refusal:
            self._push("OK", identity, False, refusal.text)
            return

        def reply(answer: Answer) -> None:
            self._push("OK", identity, answer.accepted, answer.message)

        await self.relay.ingest.submit(event, self.public, reply, websocket=True)

    async def _on_auth(self, given: Any) -> None:
        try:
            event = parse_event(given)
        except Refused as refusal:
            self._notice(f"invalid message: AUTH: {refusal.text.removeprefix('invalid: ')}")
            return
        try:
            await self._authenticate(event)
        except Refused as refusal:
            self._auth_failed = True
            self._push("OK", event["id"], False, refusal.text)
        except Unavailable:
            self._push("OK", event["id"], False, UNAVAILABLE)
        else:
            self._push("OK", event["id"], True, "")

    async def _authenticate(self, event: Event) -> None:
        if self.public is not None:
            raise Refused("auth-required: already authenticated")
        if self._auth_failed:
            raise Refused("auth-required: authentication already failed")
        check_answer(event, self.challenge, self.relay.authority, time.time())
        await self.relay.admit(event["pubkey"], attestation_of(event))
        self.public = event["pubkey"]

    def _on_request(self, what: str, name: str, given: list[Any]) -> None:
        if not 0 < len(name) <= MAX_SUBSCRIPTION_NAME:
            self._notice(f"invalid message: a subscription's id has 1 to {MAX_SUBSCRIPTION_NAME} characters")
            return
        if self.public is None:
            if what == "REQ":
                self._notice(NOT_AUTHENTICATED)
            self._push("CLOSED", name, NOT_AUTHENTICATED)
            return
        if refused := self.relay.too_much(self.public, "frame"):
            self._push("CLOSED", name, refused)
            return
        if what == "REQ" and name not in self._lives and len(self._lives) >= MAX_SUBSCRIPTIONS:
            self._push("CLOSED", name, f"error: more than {MAX_SUBSCRIPTIONS} subscriptions")
            return
        try:
            filters = parse_filters(given)
            self.relay.check_readable(self.public, filters)
        except Refused as refusal:
            self._push("CLOSED", name, refusal.text)
            return
        if what == "COUNT":
            self._spawn(self._count(name, self.public, filters))
            return
        self._drop(name)
        live = Live(name, self.public, filters, live_channel(filters), self._outbox)
        # Registered before the query: what is stored while it runs waits, so that nothing is lost.
        self._lives[name] = live
        self.relay.fanout.add(live)
        self._spawn(self._answer(live))

    async def _answer(self, live: Live) -> None:
        answered: set[str] = set()
        try:
            for wanted in live.filters:
                for identity, raw in await self.relay.select(wanted, live.public):
                    if identity not in answered and self._lives.get(live.name) is live:
                        answered.add(identity)
                        await self._outbox.push_stored(live.frame(raw))
        except Unavailable:
            if self._lives.get(live.name) is live:
                self._drop(live.name)
                self._push("CLOSED", live.name, UNAVAILABLE)
            return
        if self._lives.get(live.name) is live:
            live.settle(answered, self.relay.writer.inflight)

    async def _count(self, name: str, public: str, filters: tuple[Filter, ...]) -> None:
        try:
            self._push("COUNT", name, {"count": await self.relay.count(filters, public)})
        except Unavailable:
            self._push("CLOSED", name, UNAVAILABLE)

    def _drop(self, name: str) -> None:
        if live := self._lives.pop(name, None):
            self.relay.fanout.remove(live)
