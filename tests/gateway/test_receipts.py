"""A receipt is on disk before its caller goes on; a crash costs at most the line that was being written."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from bench.gateway.receipts import Journal, charged
from tests.gateway.test_ledger import made


async def test_many_receipts_share_few_writes_and_none_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs = 0
    really = os.fsync

    def fsync(descriptor: int) -> None:
        nonlocal syncs
        syncs += 1
        really(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    journal = Journal.open(tmp_path / "r")
    await asyncio.gather(*(journal.append(made("ok", n, n)) for n in range(200)))
    await journal.close()
    written = [json.loads(line)["charged_tokens"] for line in (tmp_path / "r").read_text().splitlines()]
    assert written == list(range(200))
    assert syncs < 20


async def test_a_torn_line_is_ended_and_counts_nothing(tmp_path: Path) -> None:
    path = tmp_path / "r"
    journal = Journal.open(path)
    await journal.append(made("ok", 3, 4))
    await journal.close()
    with path.open("a") as file:
        file.write('{"charged_usd_mi')
    journal = Journal.open(path)
    await journal.append(made("unknown", 5, 6))
    await journal.append(made("refused", 0, 0))
    await journal.close()
    assert len(path.read_text().splitlines()) == 4
    (total,) = charged(path).values()
    assert (total.usd_micros, total.tokens, total.calls) == (8, 10, 2)


async def test_a_full_disk_is_told_to_every_waiting_call() -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full on this system")
    journal = Journal.open(full)
    with pytest.raises(OSError, match="No space left"):
        await journal.append(made("ok", 1, 1))
    with pytest.raises(OSError, match="No space left"):
        await journal.append(made("ok", 1, 1))
    await journal.close()


def test_a_journal_that_is_not_there_yet_has_charged_nothing(tmp_path: Path) -> None:
    assert charged(tmp_path / "none") == {}
