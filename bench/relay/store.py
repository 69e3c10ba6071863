"""What the relay reads from PostgreSQL, and what it keeps besides events. Writing events: `writer`."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import psycopg
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from bench.nostr import Event
from bench.relay.channels import MEMBERS, METADATA, Channel, from_announcements
from bench.relay.protocol import FAR_FUTURE, SEARCHED, Filter
from bench.relay.rules import GATED, Stored, emoji_of

SCHEMA = Path(__file__).with_name("schema.sql").read_bytes()
POOL_SIZE = 6
POOL_WAIT_S = 2.0
PING_S = 1.0

Unavailable = (psycopg.OperationalError, psycopg.InterfaceError)
"""What a read raises while the database is away."""


@dataclass(frozen=True)
class Reader:
    """Who reads: a key, and the channels that it may read. Sees no other channel, and no event gated to others."""

    public: str
    channels: Collection[str]


class Store:
    """Reads over a pool of connections. Every method may raise one of `Unavailable`."""

    def __init__(self, dsn: str) -> None:
        self._pool: AsyncConnectionPool[psycopg.AsyncConnection[Any]] = AsyncConnectionPool(
            dsn,
            min_size=1,
            max_size=POOL_SIZE,
            open=False,
            timeout=POOL_WAIT_S,
            kwargs={"autocommit": True},
            reconnect_timeout=1.0,
        )

    async def open(self, dsn: str) -> None:
        """Make the tables where they are missing, and open the pool."""
        async with await psycopg.AsyncConnection.connect(dsn) as connection:
            await connection.execute(SCHEMA)
        await self._pool.open()

    async def close(self) -> None:
        await self._pool.close(timeout=0.5)

    async def alive(self) -> bool:
        """Whether the database answers within a second."""
        try:
            async with asyncio.timeout(PING_S):
                await self._rows("SELECT 1")
        except (*Unavailable, TimeoutError):
            return False
        return True

    async def select(self, wanted: Filter, reader: Reader) -> list[tuple[str, str]]:
        """(id, raw) of the stored events that the reader may see, newest first, then by id."""
        if wanted.limit == 0:
            return []
        where, values = _where(wanted, reader)
        text = f"SELECT id, raw FROM relay.events WHERE {where} ORDER BY created_at DESC, id LIMIT %s"  # noqa: S608
        return await self._rows(text, (*values, wanted.limit))

    async def count(self, filters: Iterable[Filter], reader: Reader) -> int:
        """How many different events match, whatever the limits."""
        parts = [_where(each, reader) for each in filters]
        union = " UNION ".join(f"SELECT id FROM relay.events WHERE {where}" for where, _ in parts)  # noqa: S608
        values = [value for _, each in parts for value in each]
        [(number,)] = await self._rows(f"SELECT count(*) FROM ({union}) AS found", values)  # noqa: S608
        return int(number)

    async def stored(self, identity: str) -> tuple[Stored, bool] | None:
        """What is known of an event, and whether it was deleted."""
        found = await self._rows("SELECT raw, channel, deleted FROM relay.events WHERE id = %s", (identity,))
        if not found:
            return None
        raw, channel, deleted = found[0]
        return Stored.of(orjson.loads(raw), channel), deleted

    async def has_reaction(self, reaction: Event, target: str) -> bool:
        """Whether the author's reaction to the target with the same emoji is there."""
        found = await self._rows(
            "SELECT raw FROM relay.events WHERE pubkey = %s AND kind = %s AND tags @> %s AND NOT deleted",
            (reaction["pubkey"], reaction["kind"], [f"e:{target}"]),
        )
        return emoji_of(reaction) in {emoji_of(orjson.loads(raw)) for (raw,) in found}

    async def newest(self, kind: int, public: str) -> Event | None:
        """The author's newest event of a replaceable kind."""
        found = await self._rows(
            "SELECT raw FROM relay.events WHERE pubkey = %s AND kind = %s AND replaces = '' AND NOT deleted",
            (public, kind),
        )
        return orjson.loads(found[0][0]) if found else None

    async def has_channel(self, channel: str) -> bool:
        """Whether anything was ever stored under the channel."""
        return bool(await self._rows("SELECT 1 FROM relay.events WHERE channel = %s LIMIT 1", (channel,)))

    async def channels(self) -> dict[str, Channel]:
        """Every channel that wasn't deleted, from its newest announcements."""
        found = await self._rows(
            "SELECT kind, replaces, raw FROM relay.events WHERE kind IN (39000, 39002)"
            " AND replaces NOT IN (SELECT channel FROM relay.events WHERE kind = 9008)"
        )
        events = {(kind, channel): orjson.loads(raw) for kind, channel, raw in found}
        return {
            channel: from_announcements(event, events[MEMBERS, channel])
            for (kind, channel), event in events.items()
            if kind == METADATA
        }

    async def owners(self) -> dict[str, str]:
        """Every key's proven owner."""
        return dict(await self._rows("SELECT agent, owner FROM relay.owners"))

    async def remember_owner(self, agent: str, owner: str) -> None:
        """Keep a proof; the first one stays."""
        async with self._pool.connection() as connection:
            await connection.execute(
                "INSERT INTO relay.owners (agent, owner) VALUES (%s, %s) ON CONFLICT DO NOTHING", (agent, owner)
            )

    async def _rows(self, text: str, values: Iterable[Any] = ()) -> list[Any]:
        try:
            return await self._fetch(text, tuple(values))
        except PoolTimeout:
            raise
        except Unavailable:
            # The server was restarted: no connection of the pool is good any more.
            await self._pool.drain()
            return await self._fetch(text, tuple(values))

    async def _fetch(self, text: str, values: tuple[Any, ...]) -> list[Any]:
        async with self._pool.connection() as connection:
            cursor = await connection.execute(text.encode(), values)
            return await cursor.fetchall()


def _where(wanted: Filter, reader: Reader) -> tuple[str, list[Any]]:
    parts = ["NOT deleted"]
    values: list[Any] = []

    def add(condition: str, *given: Any) -> None:
        parts.append(condition)
        values.extend(given)

    if wanted.channels is None:
        add("(channel IS NULL OR channel = ANY (%s))", list(reader.channels))
    else:
        add("channel = ANY (%s)", [c for c in wanted.channels if c in reader.channels])
    if wanted.kinds is None or not wanted.kinds.isdisjoint(GATED):
        add("(kind <> ALL (%s) OR tags @> %s)", sorted(GATED), [f"p:{reader.public}"])
    for column, among in (("id", wanted.ids), ("pubkey", wanted.authors), ("kind", wanted.kinds)):
        if among is not None:
            add(f"{column} = ANY (%s)", list(among))
    for letter, among in wanted.tags:
        add("tags && %s", [f"{letter}:{value}" for value in among])
    if wanted.since:
        add("created_at >= %s", wanted.since)
    if wanted.before_id is not None and wanted.until < FAR_FUTURE:
        add("(created_at < %s OR (created_at = %s AND id > %s))", wanted.until, wanted.until, wanted.before_id)
    elif wanted.until < FAR_FUTURE:
        add("created_at <= %s", wanted.until)
    if wanted.search is not None:
        add("kind = ANY (%s)", sorted(SEARCHED))
        add("to_tsvector('simple', raw::json ->> 'content') @@ websearch_to_tsquery('simple', %s)", wanted.search)
    return " AND ".join(parts), values
