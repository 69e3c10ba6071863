"""A receipt is written before its caller goes on; a crash costs at most the line that was being written."""

from __future__ import annotations

import asyncio
import errno
import json
import os
from pathlib import Path

import pytest

from bench.gateway.receipts import Journal, charged
from tests.gateway.test_ledger import made


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How much of the file was there at each fsync."""
    sizes: list[int] = []
    really = os.fsync

    def fsync(descriptor: int) -> None:
        sizes.append(os.fstat(descriptor).st_size)
        really(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    return sizes


async def test_a_receipt_is_in_the_file_at_once_and_many_are_made_durable_together(
    tmp_path: Path, syncs: list[int]
) -> None:
    path = tmp_path / "r"
    journal = Journal.open(path)
    for number in range(200):
        journal.write(made("ok", number, number))
        assert len(path.read_bytes().splitlines()) == number + 1
    await journal.synced()
    assert syncs == [path.stat().st_size]
    await journal.close()
    assert [json.loads(line)["charged_tokens"] for line in path.read_text().splitlines()] == list(range(200))
    assert len(syncs) == 1, "there was nothing more"


async def test_what_nobody_waits_for_is_made_durable_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, synced = asyncio.get_running_loop(), asyncio.Event()
    really = os.fsync

    def fsync(descriptor: int) -> None:
        really(descriptor)
        loop.call_soon_threadsafe(synced.set)

    monkeypatch.setattr(os, "fsync", fsync)
    journal = Journal.open(tmp_path / "r")
    for _ in range(3):
        journal.write(made("ok", 1, 1))
        await asyncio.wait_for(synced.wait(), 10)
        synced.clear()
    await journal.close()


async def test_what_is_written_during_a_sync_is_waited_for_too(
    tmp_path: Path, syncs: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r"
    journal = Journal.open(path)
    journal.write(made("ok", 1, 1))
    first = asyncio.create_task(journal.synced())
    await asyncio.sleep(0)
    journal.write(made("ok", 1, 1))
    await asyncio.gather(first, journal.synced())
    assert syncs[-1] == path.stat().st_size
    await journal.close()


async def test_a_disk_that_fails_later_is_told_to_who_waits_and_to_every_further_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", failing)
    journal = Journal.open(tmp_path / "r")
    journal.write(made("ok", 1, 1))
    with pytest.raises(OSError, match="Input/output error"):
        await journal.synced()
    with pytest.raises(OSError, match="Input/output error"):
        journal.write(made("ok", 1, 1))
    await journal.close()


async def test_a_torn_line_is_ended_and_counts_nothing(tmp_path: Path) -> None:
    path = tmp_path / "r"
    journal = Journal.open(path)
    journal.write(made("ok", 3, 4))
    await journal.close()
    with path.open("a") as file:
        file.write('{"charged_usd_mi')
    journal = Journal.open(path)
    journal.write(made("unknown", 5, 6))
    journal.write(made("refused", 0, 0))
    await journal.close()
    assert len(path.read_text().splitlines()) == 4
    (total,) = charged(path).values()
    assert (total.usd_micros, total.tokens, total.calls) == (8, 10, 2)


async def test_a_full_disk_is_told_to_every_call() -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full on this system")
    journal = Journal.open(full)
    for _ in range(2):
        with pytest.raises(OSError, match="No space left"):
            journal.write(made("ok", 1, 1))
    with pytest.raises(OSError, match="No space left"):
        await journal.synced()
    await journal.close()


@pytest.mark.parametrize(
    "line", ["[]", "{}", "7", "null", '"call_id"', '{"call_id": []}', '{"call_id": "x", "trial": "t"}']
)
def test_what_is_no_receipt_counts_nothing(tmp_path: Path, line: str) -> None:
    """A job with a damaged line goes on."""
    path = tmp_path / "receipts.jsonl"
    path.write_text(line + "\n")
    assert charged(path) == {}


def test_a_journal_that_is_not_there_yet_has_charged_nothing(tmp_path: Path) -> None:
    assert charged(tmp_path / "none") == {}
