"""What is recorded of one agent of a trial: each call, what came of it, and when."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from bench.gateway import cassette, streams
from bench.gateway.cassette import Address, Answer, Timing
from bench.gateway.listener import Listener
from bench.gateway.normalise import Names, mapped
from bench.gateway.redaction import Redaction
from bench.gateway.upstream import Answer as Given
from bench.gateway.upstream import UpstreamFailed

KEPT_HEADERS = ("content-type", "retry-after")
"""What a client may act on; others tell of the upstream's day."""


@dataclass
class Take:
    """A call that is being recorded. One of its methods ends it: for a whole answer before the client has it.

    `new` is its request as the cassette has it; `began` is in seconds of the monotonic clock.
    """

    tape: Tape
    address: Address
    new: Mapping[str, Any]
    timing: Timing
    began: float
    stream: Heard | None = None

    def answered(self, given: Given) -> None:
        """The upstream answered, whatever its status. Raises OSError."""
        answer = self.tape.named(given.status, given.headers, given.body)
        self._end(answer, first_byte_ms=ms(given.first_byte_at - self.began))

    def failed(self, error: UpstreamFailed) -> None:
        """No answer came. Raises OSError."""
        self._end(Answer(error.status, failed=str(error), failed_status=error.status, sent=error.sent))

    def cut(self) -> None:
        """The trial ended, or the client left, before an answer came. Raises OSError."""
        self._write(None, replace(self.timing, total_ms=self._now_ms()))

    def begins(self, status: int, headers: Mapping[str, str]) -> None:
        """A streamed answer begins."""
        self.stream = Heard(status, headers)

    def hears(self, chunk: bytes, *, is_last: bool) -> None:
        """A chunk came that is about to be passed on; with the last event the client has its answer."""
        assert self.stream is not None
        self.stream.chunks.append(chunk)
        self.stream.at_ms.append(self._now_ms())
        if is_last and self.stream.answered is None:
            self.stream.answered = self.tape.event()

    def streamed(self, failed: UpstreamFailed | None) -> None:
        """The stream is over, to its end or as far as it came. Raises OSError."""
        heard = self.stream
        assert heard is not None
        text = b"".join(heard.chunks).decode(errors="replace")
        answer = self.tape.named_stream(heard.status, heard.headers, text)
        if failed is not None:
            answer = replace(answer, failed=str(failed), failed_status=failed.status, sent=True)
        self._end(
            answer,
            answered=heard.answered,
            first_byte_ms=next(iter(heard.at_ms), None),
            chunks_ms=tuple(heard.times(streams.events_of(text))),
        )

    def _end(self, answer: Answer, *, answered: int | None = None, **timing: Any) -> None:
        number = self.tape.event() if answered is None else answered
        self._write(answer, replace(self.timing, answered=number, total_ms=self._now_ms(), **timing))

    def _write(self, answer: Answer | None, timing: Timing) -> None:
        self.tape.write(self, answer, timing)

    def _now_ms(self) -> float:
        return ms(time.monotonic() - self.began)


@dataclass
class Heard:
    """A stream as far as it has come: its chunks, when each came, and the number of its last event in the trial."""

    status: int
    headers: Mapping[str, str]
    chunks: list[bytes] = field(default_factory=list)
    at_ms: list[float] = field(default_factory=list)
    answered: int | None = None

    def times(self, events: Sequence[str]) -> Iterator[float]:
        """When each event was whole."""
        ends, begun = [], 0
        for chunk in self.chunks:
            begun += len(chunk)
            ends.append(begun)
        at = 0
        for event in events:
            at += len(event.encode())
            yield self.at_ms[min(bisect_left(ends, at), len(ends) - 1)]


@dataclass
class Run:
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


class Tape:
    """Records one agent of one trial."""

    def __init__(
        self, agent: Address, run: Run, names: Names, redact: Redaction, write: Callable[[bytes], None]
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


def ms(seconds: float) -> float:
    """Milliseconds, to the microsecond."""
    return round(seconds * 1000, 3)
