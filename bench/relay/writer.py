"""Group commit: one task takes whatever is queued, writes it in one statement and one durable commit.

SPIKE.md section 1 has the figures. Nothing is answered, and no state changes, before the commit. Where the
connection breaks during a commit nobody knows what became of it: the groups are refused, and looked up on the next
connection; those that were stored after all take effect then.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import orjson
import psycopg

from bench.nostr import Event
from bench.relay.protocol import replaceable_key

WRITE = Path(__file__).with_name("write.sql").read_bytes()
MAX_EVENTS = 512
MAX_QUEUED_GROUPS = 4096
RECONNECT_S = 0.2
LOCK = 0x627A62  # "bzb": one relay writes a database
LOCK_S = 10.0

LOST = (psycopg.OperationalError, psycopg.InterfaceError)

log = logging.getLogger("buzzbench.relay")


class DatabaseInUse(Exception):
    """Another relay writes this database."""


@dataclass(frozen=True, slots=True)
class Row:
    """One event to store; `raw` is how it is stored and sent, serialised once."""

    event: Event
    channel: str | None
    raw: str

    def record(self) -> dict[str, object]:
        event = self.event
        return {
            "id": event["id"],
            "pubkey": event["pubkey"],
            "kind": event["kind"],
            "created_at": event["created_at"],
            "channel": self.channel,
            "tags": [f"{t[0]}:{t[1]}" for t in event["tags"] if len(t) > 1 and len(t[0]) == 1 and t[0] != "h"],
            "replaces": replaceable_key(event),
            "raw": self.raw,
        }


@dataclass(eq=False, slots=True)
class Group:
    """Events that are stored together or not at all.

    `on_stored` gets the rows that are new, once they are durable. `watchers` then hear whether the main event, the
    last, is new (True) or was there before (False), or None where it was not stored. `still_good` is asked right
    before the write.
    """

    rows: tuple[Row, ...]
    deletes: tuple[str, ...] = ()
    on_stored: Callable[[list[Row]], None] = lambda _: None
    still_good: Callable[[], bool] = lambda: True
    watchers: list[Callable[[bool | None], None]] = field(default_factory=list)

    @property
    def id(self) -> str:
        return str(self.rows[-1].event["id"])


class Writer:
    """The only one who writes events. `inflight` maps the id of every event not yet answered for to its group."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._queue: deque[Group] = deque()
        self._wake = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._connection: psycopg.AsyncConnection | None = None
        self._uncertain: list[Group] = []
        self.inflight: dict[str, Group] = {}

    async def connect(self) -> None:
        """Take the connection, and the right to write. Raises psycopg.OperationalError, DatabaseInUse."""
        connection = await psycopg.AsyncConnection.connect(self._dsn, autocommit=True)
        try:
            await connection.execute("SET synchronous_commit TO on")
            async with asyncio.timeout(LOCK_S):
                # Waits for a killed predecessor's last commit, so that what is read next holds it.
                await connection.execute("SELECT pg_advisory_lock(%s)", (LOCK,))
            self._connection = connection
            await self._settle()
        except BaseException as error:
            self._connection = None
            await connection.close()
            if isinstance(error, TimeoutError):
                raise DatabaseInUse("another relay writes this database; stop it first") from None
            raise

    async def room(self) -> None:
        """Wait while too much is queued."""
        await self._room.wait()

    def submit(self, group: Group) -> None:
        """Queue the group; its watchers hear of it."""
        for row in group.rows:
            self.inflight[row.event["id"]] = group
        self._queue.append(group)
        self._idle.clear()
        if len(self._queue) >= MAX_QUEUED_GROUPS:
            self._room.clear()
        self._wake.set()

    async def run(self) -> None:
        """Write until cancelled, reconnecting where the database went away."""
        while True:
            if self._connection is None:
                try:
                    await self.connect()
                    log.warning("the database is back")
                except (*LOST, DatabaseInUse):
                    self._refuse(self._take())
                    await asyncio.sleep(RECONNECT_S)
                    continue
            if not self._queue:
                self._wake.clear()
                await self._wake.wait()
            if groups := self._take():
                await self._write(groups)

    async def drain(self) -> None:
        """Wait until everything queued is answered."""
        await self._idle.wait()

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()

    def _take(self) -> list[Group]:
        groups: list[Group] = []
        count = 0
        while self._queue and count < MAX_EVENTS:
            group = self._queue.popleft()
            if self._is_good(group):
                groups.append(group)
                count += len(group.rows)
        self._room.set()
        return groups

    async def _write(self, groups: list[Group], *, again: bool = True) -> None:
        assert self._connection is not None
        rows, superseded = _newest([row for group in groups for row in group.rows])
        parameters = {
            "rows": orjson.dumps([row.record() for row in rows]).decode(),
            "deletes": [identity for group in groups for identity in group.deletes],
        }
        try:
            cursor = await self._connection.execute(WRITE, parameters, prepare=True)
            new = {identity for (identity,) in await cursor.fetchall()} | superseded
        except LOST as error:
            log.warning("the database went away: %s", error)
            await self._connection.close()
            self._connection = None
            if again:
                await self._recover(groups)
            else:
                self._give_up(groups)
        except psycopg.Error as error:
            if len(groups) > 1:  # so that one bad event doesn't take the others along
                for group in groups:
                    await self._write([group])
                return
            log.exception("not stored: %s", groups[0].id, exc_info=error)
            self._refuse(groups)
        else:
            for group in groups:
                self._stored(group, new)

    async def _recover(self, groups: list[Group]) -> None:
        """After a broken commit: if the database is there, find out what was stored and write the rest again."""
        try:
            await self.connect()
            there = await self._present(groups)
        except (*LOST, DatabaseInUse):
            self._give_up(groups)
            return
        for group in groups:
            if group.id in there:
                self._stored(group, there)
        if rest := [group for group in groups if group.id not in there and self._is_good(group)]:
            await self._write(rest, again=False)

    def _give_up(self, groups: list[Group]) -> None:
        self._uncertain += groups
        self._refuse(groups)

    async def _settle(self) -> None:
        """Let those refused groups take effect that a broken commit has stored after all."""
        groups, self._uncertain = self._uncertain, []
        if groups:
            there = await self._present(groups)
            for group in groups:
                if group.id in there:
                    group.on_stored([row for row in group.rows if row.event["id"] in there])

    async def _present(self, groups: list[Group]) -> set[str]:
        assert self._connection is not None
        ids = [row.event["id"] for group in groups for row in group.rows]
        cursor = await self._connection.execute("SELECT id FROM relay.events WHERE id = ANY (%s)", (ids,))
        return {identity for (identity,) in await cursor.fetchall()}

    def _is_good(self, group: Group) -> bool:
        if group.still_good():
            return True
        self._refuse([group])
        return False

    def _stored(self, group: Group, new: set[str]) -> None:
        group.on_stored([row for row in group.rows if row.event["id"] in new])
        self._answer(group, group.id in new)

    def _refuse(self, groups: list[Group]) -> None:
        for group in groups:
            self._answer(group, None)

    def _answer(self, group: Group, stored: bool | None) -> None:
        for row in group.rows:
            if self.inflight.get(row.event["id"]) is group:
                del self.inflight[row.event["id"]]
        if not self.inflight:
            self._idle.set()
        for watcher in group.watchers:
            watcher(stored)


def _newest(rows: list[Row]) -> tuple[list[Row], set[str]]:
    """The rows to insert, and the ids of those that a newer version in the same commit replaces at once."""
    best: dict[tuple[str, int, str], Row] = {}
    superseded: set[str] = set()
    for row in rows:
        key = replaceable_key(row.event)
        if key is None:
            continue
        slot = (row.event["pubkey"], row.event["kind"], key)
        held = best.get(slot)
        if held is None or _rank(row) > _rank(held):
            best[slot] = row
            if held is not None:
                superseded.add(held.event["id"])
    if not best:
        return rows, superseded
    chosen = {row.event["id"] for row in best.values()}
    return [r for r in rows if replaceable_key(r.event) is None or r.event["id"] in chosen], superseded


def _rank(row: Row) -> tuple[int, int]:
    """Newer is greater; of one second, the lower id (NIP-01)."""
    return row.event["created_at"], -int(row.event["id"], 16)
