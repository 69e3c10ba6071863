"""Receipts: what the gateway saw of each model call, written before the caller has its answer.

A job's journal is JSON lines. Those of many calls are made durable together, a moment later, and before anybody hears
what a trial used. A call to a real upstream is noted before it goes out, by a receipt that is `open`; the receipt of
its end has the same call id and takes its place. A call without an end was cut by the gateway's own: it counts as
unknown, at its reserved bound.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Literal

import orjson

from bench.gateway.ledger import Amount

type Outcome = Literal["open", "ok", "error", "refused", "unknown"]


@dataclass
class Receipt:
    """One attempt at a call. Times in milliseconds, tokens in disjoint classes, None is unknown.

    Nobody changes one; not being frozen makes two for each call five microseconds cheaper each.

    `outcome`: `open` (about to go out), `ok` and `error` (the upstream's answer), `refused` (the gateway's own, nothing
    went out), `unknown` (cut, or without an answer). `charged_*` is what the budgets counted: the cost where it is
    known, else the reserved bound; None where the call had no bound. `model` is None where the request named none.
    `reason` says in our own words why a call was refused or is unknown. `cassette_sha256` is of the cassette that a
    replay plays: it costs nothing, but is charged as the recording was, so that the same caps bite. `tool_calls` is how
    many tools the answer calls: none ends the agent's turn.

    All times count from `started_at`; `queue_ms` of them passed before the attempt went out: it waited for room in a
    budget, or for the end of the upstream's trouble. `retry` is 0 for a call's first attempt; `again` says that another
    one follows. `served_model` and `served_provider` are who the answer says it is from. `step` is the step of the
    trial's task in which the call came. The digests are of what the client sent and the upstream sent.
    """

    call_id: str
    job: str
    trial: str
    agent: str
    member: str
    endpoint: str
    provider: str
    model: str | None
    dialect: str
    started_at: str
    total_ms: float
    first_byte_ms: float | None
    status: int
    outcome: Outcome
    input_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    output_tokens: int | None
    cost_usd_micros: int | None
    charged_usd_micros: int | None
    charged_tokens: int | None
    prices_sha256: str
    usage: Any
    request_sha256: str | None
    response_sha256: str | None
    reason: str | None = None
    cassette_sha256: str | None = None
    tool_calls: int | None = None
    retry: int = 0
    again: bool = False
    queue_ms: float | None = None
    streamed: bool = False
    served_model: str | None = None
    served_provider: str | None = None
    step: str | None = None


SYNC_EVERY_S = 0.02
"""How soon what was written is made durable. A power cut may cost the receipts of so long, and of the sync's own time;
the gateway's death costs none."""


CHARGED = ("outcome", "trial", "agent", "charged_usd_micros", "charged_tokens")
"""What a receipt must have to be charged to anybody."""


class Journal:
    """The receipts of one job. Raises OSError from `open` where the file can't be appended to."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._file = file
        self._loop = asyncio.get_running_loop()
        self._is_dirty = False
        self._planned: asyncio.TimerHandle | None = None
        self._syncing: asyncio.Task[None] | None = None
        self._name = f"sync of {path.name}"
        self._broken: OSError | None = None

    @classmethod
    def open(cls, path: Path) -> Journal:
        """The journal at `path`, made if missing. A torn last line is ended, so that the next is whole."""
        file = path.open("ab", buffering=0)
        if file.tell() and not _ends_with_newline(path):
            file.write(b"\n")
        return cls(path, file)

    def write(self, receipt: Receipt) -> None:
        """Write a receipt: from now on it outlives this process, and soon the machine's end.

        Raises OSError, as from then on for every other: no call goes out or is answered without one. No call waits
        for the disk, which would keep each of many as long as all other calls together do.
        """
        if self._broken is not None:
            raise self._broken
        view = memoryview(_line(receipt))
        self._is_dirty = True
        try:
            while view:
                view = view[self._file.write(view) :]
        except OSError as error:
            # Half a line may stand there, which nothing may follow.
            self._broken = error
            raise
        if self._planned is None and self._syncing is None:
            self._planned = self._loop.call_later(SYNC_EVERY_S, self._sync)

    async def synced(self) -> None:
        """Return when all that is written is on disk. Raises OSError where that can't be."""
        while self._is_dirty or self._syncing is not None:
            if self._syncing is None:
                self._sync()
            assert self._syncing
            await asyncio.shield(self._syncing)
        if self._broken is not None:
            raise self._broken

    async def close(self) -> None:
        """Have all on disk and close the file. Whether that failed was said before, or is of no use any more."""
        with contextlib.suppress(OSError):
            await self.synced()
        self._file.close()

    def _sync(self) -> None:
        if self._planned is not None:
            self._planned.cancel()
            self._planned = None
        self._is_dirty = False
        self._syncing = self._loop.create_task(self._fsync(), name=self._name)

    async def _fsync(self) -> None:
        try:
            await asyncio.to_thread(os.fsync, self._file.fileno())
        except OSError as error:
            self._broken = self._broken or error
        self._syncing = None
        if self._is_dirty and self._planned is None:
            self._planned = self._loop.call_later(SYNC_EVERY_S, self._sync)


def _line(receipt: Receipt) -> bytes:
    try:
        return orjson.dumps(receipt, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:
        # What an upstream reports may be nested deeper than can be written. The sums of it are in other fields.
        return orjson.dumps(replace(receipt, usage=None), option=orjson.OPT_APPEND_NEWLINE)


def charged(path: Path) -> dict[tuple[str, str], Amount]:
    """What the journal's earlier calls were charged, by trial and agent, for a job that goes on.

    An open call is charged its bound. Torn lines, and what is no receipt, count nothing.
    """
    if not path.is_file():
        return {}
    latest: dict[str, dict[str, Any]] = {}
    for line in path.read_bytes().splitlines():
        try:
            receipt = orjson.loads(line)
            latest[receipt["call_id"]] = {name: receipt[name] for name in CHARGED}
        except (orjson.JSONDecodeError, TypeError, KeyError):
            continue
    totals: dict[tuple[str, str], Amount] = {}
    for receipt in latest.values():
        if receipt["outcome"] != "refused":
            of = str(receipt["trial"]), str(receipt["agent"])
            charge = Amount(_number(receipt["charged_usd_micros"]), _number(receipt["charged_tokens"]), 1)
            totals[of] = totals.get(of, Amount()) + charge
    return totals


def _number(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0


def _ends_with_newline(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
