"""Records a job's model calls on a cassette: what each agent asked and got, in the order of its trial.

A line is written when a call ends, so that what a killed gateway leaves is a cassette of what was answered until then.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import orjson

from bench.files import write_atomically
from bench.gateway import cassette, streams, upkeep
from bench.gateway.cassette import Address, Answer, Header, Timing
from bench.gateway.listener import Listener
from bench.gateway.normalise import Names, mapped
from bench.gateway.protocol import Issue
from bench.gateway.redaction import Redaction
from bench.gateway.take import Take, ms

KEPT_HEADERS = ("content-type", "retry-after")
"""What a client may act on; others tell of the upstream's day."""

log = logging.getLogger(__name__)


class Attempts:
    """Numbers the attempts at each task in the order in which they first come, after those that `counts` has."""

    def __init__(self, counts: Mapping[str, int] = MappingProxyType({})) -> None:
        self._numbers: dict[tuple[str, ...], int] = {}
        self._counts = dict(counts)

    def number(self, task: str, *key: str) -> int:
        """The attempt's number; `key` tells it from the task's others."""
        if (task, *key) not in self._numbers:
            self._counts[task] = self._counts.get(task, 0) + 1
            self._numbers[task, *key] = self._counts[task]
        return self._numbers[task, *key]


def run_of(issue: Issue) -> tuple[str, str]:
    """What tells one run of a trial from another: a trial that is run again has another channel."""
    return issue.trial, issue.context.channel if issue.context else ""


def names_of(issue: Issue) -> Names:
    """The names of what an agent is told from the start: its trial's channel and everybody's key."""
    context = issue.context
    if context is None:
        return Names({})
    return Names({context.channel: "channel", **{key: f"key {name}" for name, key in context.members.items()}})


@dataclass
class _Run:
    """One run of a trial: numbers what happens in it. `began` is when its first call came (monotonic seconds)."""

    trial: str
    began: float | None = None
    events: int = 0
    tapes: dict[str, Tape] = field(default_factory=dict)

    def event(self) -> int:
        self.events += 1
        return self.events

    def ms(self, at: float) -> float:
        """Milliseconds since the first call."""
        if self.began is None:
            self.began = at
        return ms(at - self.began)


class Recorder:
    """The cassette of one job, as it grows."""

    def __init__(self, path: Path, secrets: Iterable[str], attempts: Attempts) -> None:
        self._path, self._secrets, self._attempts = path, tuple(secrets), attempts
        self._file = path.open("ab", buffering=0)
        self._runs: dict[tuple[str, str], _Run] = {}

    @classmethod
    def begin(cls, path: Path, header: Header, secrets: Iterable[str]) -> Recorder:
        """The cassette at `path`, from which `secrets` are kept out. Raises OSError.

        One that is there already, of a job that goes on, keeps the trials whose directories are still beside it.
        """
        counts: dict[str, int] = {}
        lines = cassette.header_line(header)
        if path.exists() and (before := path.read_bytes()):
            lines, counts = upkeep.reopened(before, lambda trial: (path.parent / trial).is_dir())
        write_atomically(path, lines.decode())
        return cls(path, secrets, Attempts(counts))

    def tape(self, issue: Issue, token: str) -> Tape:
        """Where the calls of an agent that gets a token go; one that gets another goes on where it was."""
        run = self._runs.setdefault(run_of(issue), _Run(issue.trial))
        if issue.agent not in run.tapes:
            attempt = self._attempts.number(issue.task, *run_of(issue))
            redact = Redaction(self._secrets)
            run.tapes[issue.agent] = Tape(
                Address(issue.task, attempt, issue.agent, 0), run, names_of(issue), redact, self._write
            )
        run.tapes[issue.agent].redact.learn(token)
        return run.tapes[issue.agent]

    def close(self) -> None:
        """Finish the cassette, durable and in order. Where there is no room for that, it stays as it was written."""
        self._file.close()
        try:
            write_atomically(self._path, upkeep.tidied(self._path.read_bytes()).decode())
        except OSError as error:
            log.warning("%s stays unsorted: %s", self._path, error.strerror)

    def _write(self, lines: bytes) -> None:
        view = memoryview(lines)
        while view:
            view = view[self._file.write(view) :]


class Tape:
    """Records one agent of one trial."""

    def __init__(
        self, agent: Address, run: _Run, names: Names, redact: Redaction, write: Callable[[bytes], None]
    ) -> None:
        self.redact = redact
        self._agent, self._run, self._names, self._write = agent, run, names, write
        self._listener = Listener(names, redact)
        self._before: dict[str, Any] | None = None
        self._number = 0

    def asked(self, body: Mapping[str, Any]) -> Take:
        """A call begins."""
        self._number += 1
        at, request = time.monotonic(), self._listener.listen(body)
        address = Address(self._agent.task, self._agent.attempt, self._agent.agent, self._number)
        timing = Timing(self.event(), trial=self._run.trial, asked_ms=self._run.ms(at))
        take = Take(self, address, cassette.difference(self._before, request), timing, at)
        self._before = request
        return take

    def event(self) -> int:
        """The number of what happens now in the trial."""
        return self._run.event()

    def write(self, take: Take, answer: Answer | None, timing: Timing) -> None:
        """Write a call's lines. Raises OSError."""
        self._write(cassette.call_line(take.address, take.new, answer) + cassette.time_line(take.address, timing))

    def named(self, status: int, headers: Mapping[str, str], body: bytes) -> Answer:
        """An upstream's answer with names."""
        kept, text = _kept(headers), body.decode(errors="replace")
        try:
            parsed = orjson.loads(body)
        except orjson.JSONDecodeError:
            return Answer(status, kept, text=self._text(text))
        return Answer(status, kept, json=mapped(parsed, self._text, self._names.reference_shown))

    def named_stream(self, status: int, headers: Mapping[str, str], text: str) -> Answer:
        """A streamed answer with names."""
        return Answer(status, _kept(headers), chunks=streams.named(text, self._pieces, self._names.reference_shown))

    def _text(self, text: str) -> str:
        return self._pieces([text])[0]

    def _pieces(self, pieces: Sequence[str]) -> list[str]:
        return self._names.said_in_pieces(self.redact.in_pieces(pieces))


def _kept(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: headers[name] for name in KEPT_HEADERS if name in headers}
