"""A trial's model calls, read from the job's journal as it grows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.prices import Tokens
from bench.trial.calls import Calls


def receipt(trial: str = "t__1", **more: Any) -> str:
    given: dict[str, Any] = {
        "trial": trial,
        "agent": "orch",
        "started_at": "2026-01-31T23:59:59.500Z",
        "total_ms": 250.0,
        "outcome": "ok",
        "status": 200,
        "input_tokens": 5,
        "cache_read_tokens": 4,
        "cache_write_tokens": 3,
        "output_tokens": None,
        "tool_calls": 1,
        "reason": None,
    }
    return json.dumps({**given, **more}, separators=(",", ":")) + "\n"


def test_only_the_trials_own_calls_from_here_on_are_read_each_once(tmp_path: Path) -> None:
    journal = tmp_path / "receipts.jsonl"
    journal.write_text(receipt(agent="earlier"))
    calls = Calls(journal, "t__1")
    assert calls.read() == []
    with journal.open("a") as file:
        file.write(receipt() + receipt(trial="t__2") + receipt(agent="worker-1", reason="about t__1"))
    assert [call.agent for call in calls.read()] == ["orch", "worker-1"]
    assert calls.read() == []
    assert len(calls.all) == 2


def test_a_line_that_is_being_written_waits_for_its_end(tmp_path: Path) -> None:
    journal = tmp_path / "receipts.jsonl"
    calls = Calls(journal, "t__1")
    assert calls.read() == []
    line = receipt()
    journal.write_text(line[:50])
    assert calls.read() == []
    journal.write_text(line + '{"torn": "t__1"\n' + receipt())
    assert len(calls.read()) == 2


def test_times_are_seconds_and_what_is_unknown_stays_so(tmp_path: Path) -> None:
    journal = tmp_path / "receipts.jsonl"
    calls = Calls(journal, "t__1")
    journal.write_text(receipt() + receipt(tool_calls=0))
    first, second = calls.read()
    assert first.ended - first.began == 0.25
    assert first.tokens == Tokens(5, 4, 3, None)
    assert (first.ends_turn, second.ends_turn) == (False, True)
