"""Live delivery: who hears of an event, each over a bounded queue of its own.

An event is serialised once; a subscription only puts its own head before it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field

import orjson

from bench.nostr import Event, tag_values
from bench.relay.channels import Channel
from bench.relay.protocol import Filter
from bench.relay.rules import GATED

SEND_BUFFER = 1000
"""Messages that may wait for one client before it is cut as too slow (BUZZ.md section 1)."""


SEND_TOGETHER = 64


class Outbox:
    """The frames that wait for one client. `overflow` is called once, when there are too many."""

    def __init__(self, overflow: Callable[[], None]) -> None:
        self._frames: deque[str] = deque()
        self._overflow = overflow
        self._closed = False
        self._filled = asyncio.Event()
        self._empty = asyncio.Event()
        self._half_empty = asyncio.Event()
        self._half_empty.set()

    def push(self, frame: str) -> None:
        """Queue a frame; never waits."""
        if len(self._frames) >= SEND_BUFFER:
            self.cut()
        if self._closed:
            return
        self._frames.append(frame)
        self._filled.set()
        self._empty.clear()
        if len(self._frames) >= SEND_BUFFER // 2:
            self._half_empty.clear()

    def cut(self) -> None:
        """Too much waits: drop it, take nothing more, and say so."""
        if not self._closed:
            self._closed = True
            self._frames.clear()
            self._half_empty.set()
            self._overflow()

    async def push_stored(self, frame: str) -> None:
        """Queue a frame of a stored answer, leaving half the queue to live events."""
        await self._half_empty.wait()
        self.push(frame)

    async def flushed(self) -> None:
        """Wait until everything queued so far is with the transport."""
        await self._empty.wait()

    async def pump(self, send: Callable[[list[str]], Awaitable[None]]) -> None:
        """Send what is queued, as many frames at once as there are up to `SEND_TOGETHER`, for ever."""
        while True:
            while self._frames:
                together = min(len(self._frames), SEND_TOGETHER)
                frames = [self._frames.popleft() for _ in range(together)]
                if len(self._frames) < SEND_BUFFER // 2:
                    self._half_empty.set()
                await send(frames)
            self._empty.set()
            self._filled.clear()
            await self._filled.wait()


@dataclass(eq=False)
class Live:
    """One REQ. Until `settle`, live events wait."""

    name: str
    public: str
    filters: tuple[Filter, ...]
    channel: str | None
    outbox: Outbox
    waiting: list[tuple[str, str]] | None = field(default_factory=list)
    answered: set[str] = field(default_factory=set)
    head: str = ""

    def __post_init__(self) -> None:
        self.head = f'["EVENT",{orjson.dumps(self.name).decode()},'

    def frame(self, raw: str) -> str:
        return f"{self.head}{raw}]"

    def deliver(self, identity: str, raw: str) -> None:
        """A new event for this subscription."""
        if self.waiting is not None:
            self.waiting.append((identity, raw))
            if len(self.waiting) > SEND_BUFFER:
                self.outbox.cut()
        elif identity in self.answered:
            self.answered.discard(identity)
        else:
            self.outbox.push(self.frame(raw))

    def settle(self, answered: set[str], inflight: Collection[str]) -> None:
        """The stored answer is out: live from now on. An event that it held, but whose commit hasn't been heard
        of yet, is still to come and must not be sent again."""
        waiting, self.waiting = self.waiting or [], None
        self.outbox.push(f'["EOSE",{orjson.dumps(self.name).decode()}]')
        for identity, raw in waiting:
            if identity not in answered:
                self.outbox.push(self.frame(raw))
        self.answered = {identity for identity in answered if identity in inflight}


class Fanout:
    """All live subscriptions, by the channel whose events they get (None: only what is in no channel)."""

    def __init__(self) -> None:
        self._by_channel: dict[str | None, set[Live]] = {}

    def add(self, live: Live) -> None:
        self._by_channel.setdefault(live.channel, set()).add(live)

    def remove(self, live: Live) -> None:
        group = self._by_channel.get(live.channel)
        if group is not None:
            group.discard(live)
            if not group:
                del self._by_channel[live.channel]

    def send(self, event: Event, raw: str, channel: str | None) -> None:
        """Hand an event to every subscription that asks for it and may see it."""
        gate = set(tag_values(event, "p")) if event["kind"] in GATED else None
        for live in self._by_channel.get(channel, ()):
            if gate is not None and live.public not in gate:
                continue
            if any(each.matches(event, channel) for each in live.filters):
                live.deliver(event["id"], raw)

    def revoked(self, channel: Channel) -> list[Live]:
        """The subscriptions to a channel whose keys may not read it any more; they are removed."""
        lost = [live for live in self._by_channel.get(channel.id, ()) if not channel.may_read(live.public)]
        for live in lost:
            self.remove(live)
        return lost
