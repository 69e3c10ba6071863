"""Group commit on a real PostgreSQL: together or not at all, durable before anyone hears, and right after a crash."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import orjson
import psycopg
import pytest

from bench.nostr import Event, Key
from bench.relay import writer as writer_module
from bench.relay.writer import DatabaseInUse, Group, Row, Writer
from tests.relay.running import until, within

KEY = Key.generate()
NOW = int(time.time())


class Outcome:
    """A group, and what was heard of it."""

    def __init__(self, *events: Event, deletes: tuple[str, ...] = (), good: bool = True) -> None:
        self.applied: list[str] | None = None
        self.answer: asyncio.Future[bool | None] = asyncio.get_running_loop().create_future()
        rows = tuple(Row(event, "room", orjson.dumps(event).decode()) for event in events)
        self.group = Group(
            rows, deletes, on_stored=self._apply, still_good=lambda: good, watchers=[self.answer.set_result]
        )

    def _apply(self, new: list[Row]) -> None:
        assert not self.answer.done(), "state changes before the answer"
        self.applied = [row.event["id"] for row in new]


@pytest.fixture
def database(tables: str) -> str:
    return tables


@pytest.fixture
async def writer(database: str) -> AsyncIterator[Writer]:
    running = Writer(database)
    await running.connect()
    task = asyncio.create_task(running.run())
    yield running
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await running.close()


def note(text: str = "x", kind: int = 9, created_at: int = NOW, tags: list[list[str]] | None = None) -> Event:
    return KEY.sign(kind, text, tags or [], created_at)


async def write(writer: Writer, *outcomes: Outcome) -> list[bool | None]:
    for outcome in outcomes:
        writer.submit(outcome.group)
    return [await within(outcome.answer) for outcome in outcomes]


def rows(database: str, what: str = "id") -> list[Any]:
    with psycopg.connect(database) as connection:
        text = f"SELECT {what} FROM relay.events WHERE NOT deleted ORDER BY seq"
        return [row[0] for row in connection.execute(text.encode()).fetchall()]


async def test_what_is_queued_together_is_committed_together(writer: Writer, database: str) -> None:
    outcomes = [Outcome(note(str(i)), note(f"{i}b")) for i in range(20)]
    assert await write(writer, *outcomes) == [True] * 20
    assert rows(database) == [row.event["id"] for outcome in outcomes for row in outcome.group.rows]
    assert outcomes[3].applied == [row.event["id"] for row in outcomes[3].group.rows]
    assert len(set(rows(database, "xmin::text"))) <= 2, "one commit for the first, one for the rest"
    assert not writer.inflight


async def test_a_commit_is_durable_before_it_is_answered(writer: Writer) -> None:
    assert writer._connection is not None
    [(setting,)] = await (await writer._connection.execute("SHOW synchronous_commit")).fetchall()
    assert setting == "on"


async def test_a_duplicate_is_not_new_and_nobody_hears_of_it_again(writer: Writer, database: str) -> None:
    event = note()
    first, second, third = Outcome(event), Outcome(event), Outcome(event)
    assert await write(writer, first) == [True]
    assert await write(writer, second, third) == [False, False]
    assert (second.applied, third.applied) == ([], [])
    assert rows(database) == [event["id"]]


@pytest.mark.parametrize("together", [True, False])
async def test_the_newest_version_stays_whatever_the_order(writer: Writer, database: str, together: bool) -> None:
    old, new, newest = (note(f"v{i}", kind=0, created_at=NOW + i) for i in range(3))
    outcomes = [Outcome(each) for each in (old, newest, new)]
    if together:
        answers = await write(writer, *outcomes)
    else:
        answers = [(await write(writer, outcome))[0] for outcome in outcomes]
    assert answers == [True, True, False], "the last came too late"
    assert rows(database) == [newest["id"]]


async def test_of_one_second_the_lower_id_stays(writer: Writer, database: str) -> None:
    low, high = sorted((note("a", kind=0), note("b", kind=0)), key=lambda event: event["id"])
    assert await write(writer, Outcome(high)) == [True]
    assert await write(writer, Outcome(low)) == [True]
    assert await write(writer, Outcome(high)) == [False]
    assert rows(database) == [low["id"]]


async def test_addressable_events_are_replaced_by_their_d_tag(writer: Writer, database: str) -> None:
    one, two = (note(kind=30315, tags=[["d", name]]) for name in ("a", "b"))
    later = note(kind=30315, tags=[["d", "a"]], created_at=NOW + 1)
    await write(writer, Outcome(one), Outcome(two), Outcome(later))
    assert sorted(rows(database)) == sorted([two["id"], later["id"]])


async def test_a_deleted_event_is_gone_and_cannot_come_back(writer: Writer, database: str) -> None:
    event, deletion = note(), note(kind=5)
    await write(writer, Outcome(event))
    assert await write(writer, Outcome(deletion, deletes=(event["id"],))) == [True]
    assert rows(database) == [deletion["id"]]
    assert await write(writer, Outcome(event)) == [False]
    assert rows(database) == [deletion["id"]]


async def test_one_bad_event_does_not_take_the_others_along(writer: Writer, database: str) -> None:
    bad = Outcome(note("bad", tags=[["t", "a\0b"]]))
    good = [Outcome(note(str(i))) for i in range(3)]
    assert await write(writer, good[0], bad, good[1], good[2]) == [True, None, True, True]
    assert bad.applied is None
    assert len(rows(database)) == 3


async def test_a_group_whose_ground_has_changed_is_refused(writer: Writer, database: str) -> None:
    stale = Outcome(note(), good=False)
    assert await write(writer, stale) == [None]
    assert (stale.applied, rows(database)) == (None, [])


async def test_content_may_hold_a_nul_character(writer: Writer, database: str) -> None:
    event = note("a\0b")
    assert await write(writer, Outcome(event)) == [True]
    assert orjson.loads(rows(database, "raw")[0]) == event


def backend_of(writer: Writer) -> int | None:
    return writer._connection.info.backend_pid if writer._connection else None


def waits_for(admin: psycopg.Connection[Any], backend: int | None, event: str) -> bool:
    found = admin.execute("SELECT wait_event FROM pg_stat_activity WHERE pid = %s", (backend,)).fetchone()
    return found is not None and found[0] == event


async def test_a_write_whose_connection_breaks_is_written_again(writer: Writer, database: str) -> None:
    outcome = Outcome(note())
    with psycopg.connect(database, autocommit=True) as admin, psycopg.connect(database) as blocker:
        blocker.execute("LOCK TABLE relay.events IN ACCESS EXCLUSIVE MODE")
        writer.submit(outcome.group)
        backend = backend_of(writer)
        await until(lambda: waits_for(admin, backend, "relation"))
        admin.execute("SELECT pg_terminate_backend(%s)", (backend,))
        await until(lambda: backend_of(writer) not in (None, backend))
        blocker.rollback()
    assert await within(outcome.answer) is True
    assert rows(database) == outcome.applied


@contextmanager
def commits_that_wait(database: str) -> Iterator[psycopg.Connection[Any]]:
    """A server whose commits are done, but not answered: they wait for a standby that doesn't exist."""
    with psycopg.connect(database, autocommit=True) as admin:
        admin.execute("SET synchronous_commit TO local")
        admin.execute("ALTER SYSTEM SET synchronous_standby_names TO 'nobody'")
        admin.execute("SELECT pg_reload_conf()")
        try:
            yield admin
        finally:
            admin.execute("ALTER SYSTEM RESET synchronous_standby_names")
            admin.execute("SELECT pg_reload_conf()")


async def became_done(outcome: Outcome, waits: Callable[[], bool]) -> bool:
    await until(lambda: waits() or outcome.answer.done())
    return outcome.answer.done()


async def write_until(writer: Writer, waits: Callable[[], bool]) -> Outcome:
    """A write that doesn't get through: the server's new setting takes hold a moment after it was made."""
    while True:
        outcome = Outcome(note(str(time.monotonic_ns())))
        writer.submit(outcome.group)
        if not await became_done(outcome, waits):
            return outcome


async def test_a_commit_that_was_made_though_the_connection_broke_is_found_and_answered(
    writer: Writer, database: str
) -> None:
    with commits_that_wait(database) as admin:
        backend = backend_of(writer)
        outcome = await write_until(writer, lambda: waits_for(admin, backend, "SyncRep"))
        admin.execute("SELECT pg_terminate_backend(%s)", (backend,))
        assert await within(outcome.answer) is True
    assert outcome.applied == [outcome.group.id]
    assert rows(database)[-1] == outcome.group.id


async def test_while_the_database_is_away_writes_are_refused_and_then_go_on(
    writer: Writer, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, away = writer._dsn, database.replace("host=", "host=/nonexistent")
    monkeypatch.setattr(writer_module, "RECONNECT_S", 0.01)
    writer._dsn = away
    with psycopg.connect(database, autocommit=True) as admin:
        admin.execute("SELECT pg_terminate_backend(%s)", (backend_of(writer),))
    first, second = Outcome(note("1")), Outcome(note("2"))
    assert await write(writer, first) == [None]
    assert await write(writer, second) == [None]
    assert (first.applied, second.applied) == (None, None)
    writer._dsn = real
    await until(lambda: writer._connection is not None)
    assert await write(writer, Outcome(second.group.rows[0].event)) == [True]
    assert len(rows(database)) == 1


async def test_a_refused_group_that_was_stored_after_all_takes_effect_on_the_next_connection(
    writer: Writer, database: str
) -> None:
    lost, stored = Outcome(note("lost")), Outcome(note("stored"))
    await write(writer, Outcome(stored.group.rows[0].event))
    writer._uncertain = [lost.group, stored.group]
    other = Writer(database)
    other._uncertain = writer._uncertain
    await writer.close()
    await other.connect()
    await other.close()
    assert (lost.applied, stored.applied) == (None, [stored.group.id])


async def test_two_relays_do_not_write_one_database(
    writer: Writer, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "LOCK_S", 0.1)
    with pytest.raises(DatabaseInUse, match="another relay writes this database; stop it first"):
        await Writer(database).connect()


async def test_too_much_in_the_queue_makes_senders_wait(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "MAX_QUEUED_GROUPS", 3)
    writer = Writer(database)
    await writer.connect()
    outcomes = [Outcome(note(str(i))) for i in range(3)]
    for outcome in outcomes:
        await within(writer.room())
        writer.submit(outcome.group)
    waiting = asyncio.create_task(writer.room())
    await asyncio.sleep(0)
    assert not waiting.done()
    task = asyncio.create_task(writer.run())
    await within(waiting)
    await within(writer.drain())
    assert [outcome.answer.result() for outcome in outcomes] == [True] * 3
    task.cancel()
    await writer.close()
