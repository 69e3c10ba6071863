"""Receipts: what the gateway saw of each model call, on disk before the caller has its answer.

A job's journal is JSON lines, appended by one thread that makes whatever is queued durable with one fsync. A call to a
real upstream is noted before it goes out, by a receipt that is `open`; the receipt of its end has the same call id and
takes its place. A call without an end was cut by the gateway's own: it counts as unknown, at its reserved bound.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, BinaryIO, Literal

import orjson

from bench.gateway.ledger import Amount

type Outcome = Literal["open", "ok", "error", "refused", "unknown"]


@dataclass(frozen=True)
class Receipt:
    """One attempt at a call. Times in milliseconds, tokens in disjoint classes, None is unknown.

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


type _Batch = list[tuple[bytes, asyncio.Future[None]]]


class Journal:
    """The receipts of one job. Raises OSError from `open` where the file can't be appended to.

    The thread is its own, for an executor's way to a thread and back takes longer than the fsync on a good disk.
    """

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._file = file
        self._loop = asyncio.get_running_loop()
        self._waiting: _Batch = []
        self._orders: SimpleQueue[_Batch | None] = SimpleQueue()
        self._thread = Thread(target=self._write, name=f"journal {path.name}", daemon=True)
        self._thread.start()
        self._is_writing = False
        self._ended = asyncio.Event()
        self._ended.set()
        self._broken: OSError | None = None

    @classmethod
    def open(cls, path: Path) -> Journal:
        """The journal at `path`, made if missing. A torn last line is ended, so that the next is whole."""
        file = path.open("ab", buffering=0)
        if file.tell() and not _ends_with_newline(path):
            file.write(b"\n")
        return cls(path, file)

    def note(self, receipt: Receipt) -> None:
        """Write an open receipt at once, without fsync. Raises OSError: then the call must not go out.

        What was written survives the end of this process; an fsync would only help against the machine's, and each
        call would wait for one more (it is made durable by the next receipt that ends).
        """
        if self._broken is not None:
            raise self._broken
        self._write_all(_line(receipt))

    async def append(self, receipt: Receipt) -> None:
        """Write the receipt; on disk when this returns. Raises OSError when the journal can't be written."""
        if self._broken is not None:
            raise self._broken
        written: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append((_line(receipt), written))
        if not self._is_writing:
            self._is_writing = True
            self._ended.clear()
            # Not at once: the receipts of this moment go together.
            self._loop.call_soon(self._order)
        await written

    async def close(self) -> None:
        """Finish what is queued and close the file."""
        await self._ended.wait()
        self._orders.put(None)
        self._thread.join()
        self._file.close()

    def _order(self) -> None:
        batch, self._waiting = self._waiting, []
        self._orders.put(batch)

    def _write(self) -> None:
        """The thread: each batch on disk, one after the other."""
        while (batch := self._orders.get()) is not None:
            error: OSError | None = None
            try:
                self._write_all(b"".join(line for line, _ in batch))
                os.fsync(self._file.fileno())
            except OSError as failure:
                error = failure
            self._loop.call_soon_threadsafe(self._have_written, batch, error)

    def _have_written(self, batch: _Batch, error: OSError | None) -> None:
        self._broken = self._broken or error
        for _, written in batch:
            if written.done():
                continue
            if self._broken is None:
                written.set_result(None)
            else:
                written.set_exception(self._broken)
        if self._waiting:
            self._order()
        else:
            self._is_writing = False
            self._ended.set()

    def _write_all(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[self._file.write(view) :]


def charged(path: Path) -> dict[tuple[str, str], Amount]:
    """What the journal's earlier calls were charged, by trial and agent, for a job that goes on.

    An open call is charged its bound. Torn lines count nothing.
    """
    if not path.is_file():
        return {}
    latest: dict[str, dict[str, Any]] = {}
    for line in path.read_bytes().splitlines():
        try:
            receipt = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        latest[receipt["call_id"]] = receipt
    totals: dict[tuple[str, str], Amount] = {}
    for receipt in latest.values():
        if receipt["outcome"] != "refused":
            of = receipt["trial"], receipt["agent"]
            charge = Amount(receipt["charged_usd_micros"] or 0, receipt["charged_tokens"] or 0, 1)
            totals[of] = totals.get(of, Amount()) + charge
    return totals


def _line(receipt: Receipt) -> bytes:
    return orjson.dumps(receipt, option=orjson.OPT_APPEND_NEWLINE)


def _ends_with_newline(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
