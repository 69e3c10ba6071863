"""What a person sees while a job runs, on standard error: one live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import sys
import time
from types import TracebackType
from typing import Any, Self, TextIO

SIGNS = {"passed": "✓", "failed": "✗", "unscored": "–"}


class Progress:
    """Shows the events of a Harbor child: `created`, `phase`, `ended`, `done`, `failed`."""

    def __init__(self, job: str, trials: int | None, *, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._live = self._stream.isatty() and os.environ.get("TERM") != "dumb"
        self._job = job
        self._total = trials
        self._counts = dict.fromkeys(SIGNS, 0)
        self._phases: dict[str, str] = {}
        self._started = time.monotonic()
        self._drawn = False

    def __enter__(self) -> Self:
        of = f"{self._total} trial{'' if self._total == 1 else 's'}" if self._total is not None else "trials"
        self.note(f"job {self._job}: {of}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._erase()

    def note(self, text: str) -> None:
        """A line that stays."""
        self._erase()
        print(text, file=self._stream, flush=True)
        self._draw()

    def show(self, event: dict[str, Any]) -> None:
        match event["event"]:
            case "created":
                self._total = event["trials"]
                for line in event.get("selection", ()):
                    self.note(line)
            case "note":
                self.note(event["text"])
            case "phase":
                self._phases[event["trial"]] = event["phase"]
            case "stopping":
                self.note(f"stopping: {event['reason']}; trials under way come to their end, no other begins")
            case "ended":
                self._phases.pop(event["trial"], None)
                self._counts[event["outcome"]] += 1
                reason = f"  {event['reason']}" if event["outcome"] != "passed" else ""
                self.note(f"{SIGNS[event['outcome']]} {event['task']}  {event['seconds']:.1f} s{reason}")
        self._draw()

    def _draw(self) -> None:
        if not self._live:
            return
        self._erase()
        ended = sum(self._counts.values())
        running = len(self._phases)
        counts = ", ".join(f"{n} {name}" for name, n in self._counts.items() if n)
        line = f"{ended}/{self._total if self._total is not None else '?'} ended, {running} running" + (
            f" ({counts})" if counts else ""
        )
        self._stream.write(f"{line}  {time.monotonic() - self._started:.0f} s")
        self._stream.flush()
        self._drawn = True

    def _erase(self) -> None:
        if self._drawn:
            self._stream.write("\r\x1b[2K")
            self._stream.flush()
            self._drawn = False
