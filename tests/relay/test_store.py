"""What is read back: in which order, how much, and by whom."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import orjson
import psycopg
import pytest

from bench.nostr import Event, Key
from bench.relay.channels import Channel
from bench.relay.protocol import Filter
from bench.relay.rules import Stored
from bench.relay.store import Reader, Store, Unavailable
from bench.relay.writer import Group, Row, Writer
from tests.relay.running import within

RELAY, ALICE, BOB = Key.generate(), Key.generate(), Key.generate()
NOW = int(time.time())
IN_ROOM = Reader(ALICE.public, {"room"})
OUTSIDE = Reader(BOB.public, set())


@pytest.fixture
async def store(tables: str) -> AsyncIterator[Store]:
    opened = Store(tables)
    await opened.open(tables)
    yield opened
    await opened.close()


async def keep(dsn: str, *events: Event, channel: str | None = "room", deletes: tuple[str, ...] = ()) -> None:
    writer = Writer(dsn)
    await writer.connect()
    task = asyncio.create_task(writer.run())
    rows = tuple(Row(event, channel, orjson.dumps(event).decode()) for event in events)
    writer.submit(Group(rows, deletes))
    await within(writer.drain())
    task.cancel()
    await writer.close()


async def found(store: Store, reader: Reader = IN_ROOM, **wanted: Any) -> list[str]:
    keys = {"h": "#h", "p": "#p", "e": "#e", "d": "#d"}
    given = {keys.get(name, name): value for name, value in wanted.items()}
    return [identity for identity, _ in await store.select(Filter.parse(given), reader)]


def note(text: str = "x", kind: int = 9, at: int = NOW, tags: list[list[str]] | None = None, key: Key = ALICE) -> Event:
    return key.sign(kind, text, tags or [], at)


async def test_the_newest_come_first_and_those_of_one_second_by_id(store: Store, tables: str) -> None:
    events = [note(str(i), at=NOW + i // 3) for i in range(9)]
    await keep(tables, *events)
    expected = sorted(events, key=lambda event: (-event["created_at"], event["id"]))
    assert await found(store) == [event["id"] for event in expected]
    [(_, raw), *_] = await store.select(Filter.parse({}), IN_ROOM)
    assert orjson.loads(raw) == expected[0]


async def test_pages_join_without_gap_or_repeat(store: Store, tables: str) -> None:
    await keep(tables, *(note(str(i), at=NOW + i // 5) for i in range(20)))
    everything = await found(store)
    at = dict(await _times(tables))
    page = await found(store, limit=3)
    seen = list(page)
    while page:
        page = await found(store, limit=3, until=at[page[-1]], before_id=page[-1])
        seen += page
    assert seen == everything


async def _times(dsn: str) -> list[tuple[str, int]]:
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        return await (await connection.execute("SELECT id, created_at FROM relay.events")).fetchall()


async def test_every_part_of_a_filter_narrows(store: Store, tables: str) -> None:
    one = note("needle in Hay", tags=[["p", "bob"], ["e", "x"]])
    two = note("other", kind=7, at=NOW + 5, key=BOB)
    await keep(tables, one, two)
    only_one = [one["id"]]
    assert await found(store, kinds=[9]) == only_one
    assert await found(store, authors=[ALICE.public]) == only_one
    assert await found(store, ids=[one["id"], "f" * 64]) == only_one
    assert await found(store, until=NOW) == only_one
    assert await found(store, since=NOW + 1) == [two["id"]]
    assert await found(store, p=["bob", "carol"]) == only_one
    assert await found(store, p=["bob"], e=["y"]) == []
    assert await found(store, search="hay") == only_one
    assert await found(store, limit=1) == [two["id"]]
    assert await found(store, limit=0) == []
    assert await found(store, kinds=[]) == []


async def test_a_channel_is_seen_by_its_readers_only(store: Store, tables: str) -> None:
    inside, outside = note("in"), note("profile", kind=0)
    await keep(tables, inside)
    await keep(tables, outside, channel=None)
    assert set(await found(store)) == {inside["id"], outside["id"]}
    assert await found(store, OUTSIDE) == [outside["id"]]
    assert await found(store, OUTSIDE, h=["room"]) == []
    assert await found(store, h=["room", "elsewhere"]) == [inside["id"]]
    assert await store.count([Filter.parse({})], OUTSIDE) == 1
    assert await store.count([Filter.parse({"#h": ["room"]})], OUTSIDE) == 0


async def test_gated_kinds_are_seen_by_the_key_of_their_p_tag_only(store: Store, tables: str) -> None:
    metric = note(kind=44200, tags=[["p", BOB.public]])
    await keep(tables, metric, channel=None)
    assert await found(store, OUTSIDE) == [metric["id"]]
    assert await found(store, OUTSIDE, kinds=[44200]) == [metric["id"]]
    assert await found(store, IN_ROOM) == []
    assert await found(store, IN_ROOM, ids=[metric["id"]]) == []
    assert await store.count([Filter.parse({})], IN_ROOM) == 0


async def test_counts_ignore_limits_and_count_an_event_once(store: Store, tables: str) -> None:
    await keep(tables, *(note(str(i)) for i in range(5)), note(kind=7))
    filters = [Filter.parse({"kinds": [9], "limit": 1}), Filter.parse({"authors": [ALICE.public]})]
    assert await store.count(filters, IN_ROOM) == 6


async def test_a_deleted_event_is_not_found_but_known(store: Store, tables: str) -> None:
    event, deletion = note(), note(kind=5)
    await keep(tables, event)
    known = Stored(event["id"], ALICE.public, 9, "room", event["id"])
    assert await store.stored(event["id"]) == (known, False)
    await keep(tables, deletion, deletes=(event["id"],))
    assert await found(store) == [deletion["id"]]
    assert await store.stored(event["id"]) == (known, True)
    assert await store.stored("f" * 64) is None


async def test_channels_are_rebuilt_from_their_newest_announcements(store: Store, tables: str) -> None:
    old = Channel("room", "old", private=True, members={"aa": "owner"}, version=NOW)
    new = Channel("room", "new", private=True, members={"aa": "owner", "bb": "bot"}, version=NOW + 1)
    dead = Channel("dead", "dead", private=False, members={"aa": "owner"}, version=NOW)
    await keep(tables, *old.announcements(RELAY))
    await keep(tables, *new.announcements(RELAY))
    await keep(tables, *dead.announcements(RELAY), note(kind=9008), channel="dead")
    assert await store.channels() == {"room": new}
    assert await store.has_channel("dead")
    assert not await store.has_channel("never")


async def test_the_newest_profile_is_found(store: Store, tables: str) -> None:
    assert await store.newest(10100, ALICE.public) is None
    policy = note('{"channel_add_policy":"nobody"}', kind=10100)
    await keep(tables, policy, channel=None)
    assert await store.newest(10100, ALICE.public) == policy


async def test_the_first_owner_stays(store: Store) -> None:
    await store.remember_owner("agent", "first")
    await store.remember_owner("agent", "second")
    assert await store.owners() == {"agent": "first"}


async def test_a_store_survives_the_loss_of_its_connections(store: Store, tables: str) -> None:
    assert await store.alive()
    with psycopg.connect(tables, autocommit=True) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    assert await store.alive()


async def test_without_a_database_nothing_is_alive_and_reads_say_so(tables: str) -> None:
    store = Store(tables.replace("host=", "host=/nonexistent"))
    await store._pool.open()
    assert not await within(store.alive())
    with pytest.raises(Unavailable):
        await within(store.select(Filter.parse({}), IN_ROOM))
    await store.close()
