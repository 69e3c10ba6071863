"""A trial's model calls as the gateway books them, read from the job's journal as it grows.

The gateway has each receipt in the file before the agent has its answer, so that what is read here is never behind what
an agent can have done with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from bench.costs import tokens_of
from bench.prices import Tokens


@dataclass(frozen=True)
class Call:
    """One call. `began` and `ended` in Unix seconds; `tool_calls` is that of the answer, None where nobody knows."""

    agent: str
    began: float
    ended: float
    outcome: str
    status: int
    tokens: Tokens
    tool_calls: int | None = None
    reason: str = ""
    again: bool = False
    """Whether the gateway makes it again: the agent hears nothing of this one."""

    @property
    def ends_turn(self) -> bool:
        """Whether the agent has nothing more to do after the answer."""
        return self.outcome == "ok" and self.tool_calls == 0


class Calls:
    """The calls of one trial from here on. `all` are those read so far, in the order in which they were booked."""

    def __init__(self, journal: Path, trial: str) -> None:
        self._journal, self._trial = journal, trial
        self._mark = f'"{trial}"'.encode()
        self._offset = journal.stat().st_size if journal.exists() else 0
        self.all: list[Call] = []

    def read(self) -> list[Call]:
        """Those booked since the last time. What is only open has no end yet."""
        if not self._journal.exists() or self._journal.stat().st_size == self._offset:
            return []
        with self._journal.open("rb") as file:
            file.seek(self._offset)
            whole, newline, _ = file.read().rpartition(b"\n")
        self._offset += len(whole) + len(newline)
        new = [_call(receipt) for line in whole.splitlines() if (receipt := self._ours(line))]
        self.all += new
        return new

    def _ours(self, line: bytes) -> dict[str, Any] | None:
        if self._mark not in line:
            return None
        try:
            receipt = orjson.loads(line)
        except orjson.JSONDecodeError:
            return None  # torn by a gateway that was killed: it ended the line when it came back
        return receipt if receipt.get("trial") == self._trial and receipt.get("outcome") != "open" else None


def _call(receipt: dict[str, Any]) -> Call:
    began = datetime.fromisoformat(receipt["started_at"]).timestamp()
    return Call(
        agent=receipt["agent"],
        began=began,
        ended=began + receipt["total_ms"] / 1000,
        outcome=receipt["outcome"],
        status=receipt["status"],
        tokens=tokens_of(receipt),
        tool_calls=receipt.get("tool_calls"),
        reason=receipt.get("reason") or "",
        again=receipt.get("again") is True,
    )
