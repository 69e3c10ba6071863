"""The mentions of one agent: each once, in order of arrival, none lost while it is at work (public case 35)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from bench.channel import RelayClient, RelayGone, RelayRefused, Subscription
from bench.channel.errors import is_trouble
from bench.harness.events import ADDED_NOTICE, MESSAGE, MESSAGE_V2, REMOVED_NOTICE
from bench.harness.pace import Pace
from bench.nostr import Event, tag_value, tag_values


class Inbox:
    """What mentions the client's identity, from every channel that it is in."""

    def __init__(self, client: RelayClient, joined: Callable[[str], Awaitable[None]] | None = None) -> None:
        """`joined` is called with every channel that the identity is added to, beyond the first."""
        self._client, self._joined = client, joined
        self._me = client.key.public
        self._waiting: deque[Event] = deque()
        self._seen: set[str] = set()
        self._awaited: dict[str, asyncio.Event] = {}
        self._arrived = asyncio.Event()
        self._prodded = False
        self.pace = Pace()
        self._channels: dict[str, Subscription] = {}
        self._moves: set[asyncio.Task[None]] = set()
        self._one_move = asyncio.Lock()

    async def open(self, channel: str) -> None:
        """Listen to the channel, and from now on to every channel that the agent is added to."""
        notices = {"kinds": [ADDED_NOTICE, REMOVED_NOTICE], "#p": [self._me]}
        await asyncio.gather(self._listen(channel), self._client.subscribe(notices, self._moved))

    async def batch(self) -> tuple[Event, ...]:
        """All mentions that wait, as far as the pace has it; waits for the first. Empty where one was only prodded."""
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            prodded, self._prodded = self._prodded, False
            taken = self.pace.take(self._waiting, prodded=prodded)
            if taken is not None:
                if self._waiting:
                    self._arrived.set()
                return taken

    def take(self, event: Event) -> None:
        """An event that may be a mention."""
        if event["id"] in self._seen or event["pubkey"] == self._me or self._me not in tag_values(event, "p"):
            return
        self._seen.add(event["id"])
        if (awaited := self._awaited.pop(event["id"], None)) is not None:
            awaited.set()
        self._waiting.append(event)
        self._arrived.set()

    async def hears(self, event: Event, within_s: float) -> bool:
        """Whether the event comes within the time, or has come."""
        came = self._awaited.setdefault(event["id"], asyncio.Event())
        if event["id"] in self._seen:
            came.set()
        try:
            async with asyncio.timeout(within_s):
                await came.wait()
        except TimeoutError:
            return False
        return True

    def prod(self) -> None:
        """Let `batch` return although nothing has come, or not all that its pace waits for."""
        self._prodded = True
        self._arrived.set()

    @property
    def waiting(self) -> int:
        """How many mentions nobody has looked at yet."""
        return len(self._waiting)

    @property
    def deaf(self) -> str:
        """Why the relay itself ended a subscription (its text), empty where it didn't."""
        reasons = (s.closed for s in self._channels.values() if s.closed and is_trouble(s.closed))
        return next(reasons, "")

    def close(self) -> None:
        """Stop joining and leaving channels."""
        for task in self._moves:
            task.cancel()

    async def _listen(self, channel: str) -> None:
        # One REQ for one channel: over several, Buzz's relay sends nothing live (BUZZ.md section 0).
        wanted = {"kinds": [MESSAGE, MESSAGE_V2], "#h": [channel], "#p": [self._me]}
        self._channels[channel] = await self._client.subscribe(wanted, self.take)

    def _moved(self, notice: Event) -> None:
        task = asyncio.get_running_loop().create_task(self._follow(notice))
        self._moves.add(task)
        task.add_done_callback(self._moves.discard)

    async def _follow(self, notice: Event) -> None:
        channel = tag_value(notice, "h") or ""
        async with self._one_move:
            subscription = self._channels.get(channel)
            try:
                if notice["kind"] == REMOVED_NOTICE and subscription is not None:
                    del self._channels[channel]
                    await self._client.unsubscribe(subscription)
                elif notice["kind"] == ADDED_NOTICE and (subscription is None or subscription.closed):
                    await self._listen(channel)
                    if self._joined is not None:
                        await self._joined(channel)
            except (RelayRefused, RelayGone):
                # Moved on before this was answered: a later notice says how. A relay that is gone ends the trial
                # through `wait_gone`.
                self._channels.pop(channel, None)
