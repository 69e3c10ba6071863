"""What the tests of a relay's client share: whoever listens, and a channel with members."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from bench.channel import RelayClient
from bench.nostr import Event, Key
from tests.relay.running import add, create


class Inbox(list[Event]):
    """Received events, and a way to wait for them."""

    def __init__(self) -> None:
        super().__init__()
        self._came = asyncio.Event()

    def put(self, event: Event) -> None:
        self.append(event)
        self._came.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not condition():
                self._came.clear()
                await self._came.wait()

    @property
    def texts(self) -> list[str]:
        return [event["content"] for event in self]


async def room(client: RelayClient, *members: Key) -> str:
    channel, event = create(client.key)
    await client.publish(event)
    for member in members:
        await client.publish(add(client.key, channel, member.public))
    return channel
