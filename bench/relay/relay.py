"""The relay as a whole: its parts, started and stopped together, and what both edges ask of it."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Protocol

from bench.nostr import Event, Key
from bench.relay.access import Authority, Members, RequestProofs
from bench.relay.fanout import Fanout, Live
from bench.relay.ingest import Ingest
from bench.relay.limits import Limits, What, refusal
from bench.relay.protocol import Filter, Refused, named_channels
from bench.relay.rules import GATED, NO_ID_OPENS, NOT_IN_CHANNEL, PRESENCE, PRESENCE_QUERY
from bench.relay.store import Reader, Store
from bench.relay.writer import Writer

CLOSE_S = 0.3


@dataclass(frozen=True)
class Identity:
    """What a relay is: the URL that clients dial, its own key, its owner's public key, its database."""

    url: str
    key: Key
    owner: str
    dsn: str


class Session(Protocol):
    """A connection, as the relay knows it."""

    async def close(self) -> None: ...

    def revoke(self, live: Live, reason: str) -> None: ...


class Relay:
    """One relay over one database."""

    def __init__(self, identity: Identity, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.key = identity.key
        self.authority = Authority.of(identity.url)
        self.proofs = RequestProofs(self.authority)
        self.members = Members(identity.owner)
        self.fanout = Fanout()
        self.store, self.writer = Store(identity.dsn), Writer(identity.dsn)
        self.ingest = Ingest(self.key, self.store, self.writer, self.members, self.fanout)
        self.ingest.on_revoked = self._on_revoked
        self.sessions: set[Session] = set()
        self.closing = False
        self._dsn = identity.dsn

    async def start(self) -> asyncio.Task[None]:
        """Make the tables, take the right to write, rebuild the state; returns the task that writes, which ends
        only by an error or by `stop`."""
        await self.store.open(self._dsn)
        await self.writer.connect()
        self.ingest.channels = await self.store.channels()
        self.members.owners = await self.store.owners()
        self._writing = asyncio.create_task(self.writer.run())
        return self._writing

    async def stop(self) -> None:
        """Answer what is queued, tell the clients, close. Takes a second at most."""
        self.closing = True
        try:
            async with asyncio.timeout(CLOSE_S):
                await self.writer.drain()
        except TimeoutError:
            pass
        closes = [asyncio.create_task(session.close()) for session in self.sessions]
        if closes:
            _, late = await asyncio.wait(closes, timeout=CLOSE_S)
            for task in late:
                task.cancel()
        self._writing.cancel()
        await self.writer.close()
        await self.store.close()

    async def ready(self) -> bool:
        """Whether it serves: the database answers, and it is not shutting down."""
        return not self.closing and await self.store.alive()

    async def admit(self, public: str, attestation: str | None) -> None:
        """Raise Refused unless the key is a member; a proof of an owner is remembered for good."""
        if owner := self.members.admit(public, attestation):
            await self.store.remember_owner(public, owner)
            self.members.owners.setdefault(public, owner)

    def too_much(self, public: str, *asked: What) -> str | None:
        """The text by which a key is told to wait; None where it may ask that now, which is counted."""
        agent = public in self.members.owners
        waits = (self.limits.wait_s(public, what, agent=agent) for what in asked)
        wait_s = next((seconds for seconds in waits if seconds), 0)
        return refusal(wait_s) if wait_s else None

    def check_readable(self, public: str, filters: tuple[Filter, ...]) -> None:
        """Raise Refused where a subscription's filter names what the key may not read."""
        named = named_channels(filters)
        if not (len(named) == 1 and all(each.channels for each in filters)):
            # One channel's never get what is no channel's, which all gated kinds are.
            check_gates(public, filters)
        channels = self.ingest.channels
        for identity in named:
            channel = channels.get(identity)
            if channel is None or not channel.may_read(public):
                raise Refused(NOT_IN_CHANNEL, 403)

    async def select(self, wanted: Filter, public: str) -> list[tuple[str, str]]:
        """(id, raw) of the stored events that the key may see."""
        return await self.store.select(wanted, Reader(public, self.ingest.readable(public)))

    async def count(self, filters: tuple[Filter, ...], public: str) -> int:
        """How many stored events the key may see of those."""
        return await self.store.count(filters, Reader(public, self.ingest.readable(public)))

    def presences(self, filters: tuple[Filter, ...]) -> list[Event] | None:
        """The answer to a query for presences, which are not stored: one event by the relay for each that is
        known. None where something else is asked for."""
        asked = (frozenset({PRESENCE}), frozenset({PRESENCE_QUERY}))
        if any(each.kinds not in asked for each in filters):
            return None
        now = int(time.time())
        authors = {author for each in filters for author in each.authors or ()}
        known = {author: self.ingest.presence(author) for author in sorted(authors)}
        return [self.key.sign(PRESENCE, text, [["p", who]], now) for who, text in known.items() if text]

    def _on_revoked(self, live: Live) -> None:
        for session in self.sessions:
            session.revoke(live, "restricted: channel access revoked")


def check_gates(public: str, filters: tuple[Filter, ...]) -> None:
    """Raise Refused where a filter asks for gated kinds without naming the key itself (BUZZ.md section 3).

    One without kinds asks for all. Whoever knows an event's id may read it, but for kinds that lay bare what was done.
    """
    for each in filters:
        gated = GATED if each.kinds is None else each.kinds & GATED
        if each.ids and not (each.kinds and each.kinds & NO_ID_OPENS):
            continue
        if gated and dict(each.tags).get("p") != frozenset({public}):
            raise Refused("restricted: p-gated kinds require #p tag matching your pubkey", 403)
