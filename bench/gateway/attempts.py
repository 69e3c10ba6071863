"""One attempt at a call: how it was answered, or how it failed. A stream is passed on as it comes."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import aiohttp
import orjson
from multidict import CIMultiDict

from bench.gateway import metering, streamed, trouble, upstream
from bench.gateway.metering import NO_REPORT, Reported, StreamMeter
from bench.gateway.player import Player, ScriptFault
from bench.gateway.protocol import Endpoint, FaultKind
from bench.gateway.receipts import Outcome
from bench.gateway.refusals import Refused
from bench.gateway.replayer import Miss, NotPlayed, Part, Turn
from bench.gateway.sink import ClientGone, Sink
from bench.gateway.tape import Take
from bench.gateway.trouble import Trouble
from bench.gateway.upstream import Answer, Opening, Outgoing, UpstreamFailed
from bench.gateway.wire import Request, Wire
from bench.prices import NONE_USED

_MAYBE_BILLED = frozenset((408, 499, 502, 504, *range(520, 528)))
"""Statuses by which something between us and the model says that it gave up: the model may have gone on."""

_BUSY = Trouble("busy")
_NOTHING = Reported(tokens=NONE_USED)
_CUT = "the token died during the call"


@dataclass
class Attempt:
    """An attempt as it goes. `number` counts from 0; times are seconds of the monotonic clock.

    `started` is when it began to wait for its turn (`started_at` by the wall clock, in ISO 8601), `sent_at` when it
    went out.
    """

    number: int = 0
    started_at: str = field(default_factory=lambda: _iso(datetime.now(UTC)))
    started: float = field(default_factory=time.monotonic)
    sent_at: float | None = None
    step: int | None = None
    """Of its endpoint's back-off when it went out; None where no upstream is asked."""
    again: bool = False
    """Whether another attempt follows it."""
    stream: Stream | None = None


@dataclass(frozen=True)
class Ended:
    """How an attempt ended: what is booked, and what the client gets.

    That is `answer`, or what `refused` says, or what was streamed already.
    """

    outcome: Outcome
    status: int
    reported: Reported = NO_REPORT
    first_byte_at: float | None = None
    response_sha256: str | None = None
    answer: Answer | None = None
    reason: str | None = None
    refused: Refused | None = None
    failed: UpstreamFailed | None = None
    trouble: Trouble | None = None
    streamed: bool = False
    to_its_end: bool = False
    """Of a stream: whether the client has all that came."""
    is_between_events: bool = True
    """Whether what was streamed are whole events."""
    unfit: FaultKind | None = None
    """Where a script or a recording doesn't fit what happened."""


class Stream:
    """A streamed answer on its way. What of it has come is known at any moment, however it ends."""

    def __init__(self, opened: Opening, meter: StreamMeter, sink: Sink, take: Take | None = None) -> None:
        self._opened, self._meter, self._sink, self._take = opened, meter, sink, take
        self._first_byte_at: float | None = None

    async def run(self) -> Ended:
        """Pass it on, each chunk at once. Raises UpstreamFailed where it breaks off."""
        if self._take is not None:
            self._take.begins(self._opened.status, self._opened.headers)
        try:
            await self._sink.begin(self._opened.status, self._opened.headers)
            async with aclosing(self._opened.chunks()) as chunks:
                async for chunk in chunks:
                    if self._first_byte_at is None:
                        self._first_byte_at = time.monotonic()
                    passed = self._meter.feed(chunk)
                    if self._take is not None:
                        self._take.hears(chunk, is_last=self._meter.is_whole)
                    await self._pass(passed)
            await self._pass(self._meter.end())
        except ClientGone:
            return self.ended("unknown", "the client left before the stream's end")
        if self._meter.reported.failed:
            return replace(self.ended("error", "the stream reported an error", to_its_end=True), trouble=_BUSY)
        if not self._meter.is_whole:
            return self.ended("unknown", "the stream ended before its last event", to_its_end=True)
        return self.ended("ok", to_its_end=True)

    def ended(
        self, outcome: Outcome, reason: str | None = None, refused: Refused | None = None, *, to_its_end: bool = False
    ) -> Ended:
        """How it ended, with what it has reported by now; `to_its_end` says that the client has all that came."""
        return Ended(
            outcome,
            self._opened.status,
            self._meter.reported,
            self._first_byte_at,
            self._meter.sha256,
            reason=reason,
            refused=refused,
            streamed=True,
            to_its_end=to_its_end,
            is_between_events=self._meter.is_between_events,
        )

    async def _pass(self, data: bytes) -> None:
        if data:
            await self._sink.write(data)


async def send(
    attempt: Attempt,
    client: aiohttp.ClientSession,
    endpoint: Endpoint,
    wire: Wire,
    request: Request,
    outgoing: Outgoing,
    sink: Sink,
    *,
    take: Take | None,
) -> Ended:
    """Send the call to its upstream. `take` records it."""
    if request.asking is not None:
        outgoing = replace(outgoing, body=request.asking)
    try:
        opened = await upstream.opened(client, endpoint, wire, outgoing)
        try:
            return await _pass_on(attempt, opened, wire, request, sink, take)
        finally:
            opened.close()
    except UpstreamFailed as error:
        return _failed(attempt, error)


def cut(attempt: Attempt) -> Ended:
    """The token died while the attempt was under way."""
    refused = Refused(401, "cut", f"{_CUT}; it was cut")
    if attempt.stream is not None:
        return attempt.stream.ended("unknown", _CUT, refused)
    return Ended("unknown", 401, reason=_CUT, refused=refused)


def broken(attempt: Attempt, error: Exception) -> Ended:
    """The gateway failed in the middle of the attempt: what it may have used is charged all the same."""
    reason = f"a fault of the gateway: {type(error).__name__}"
    refused = Refused(500, "fault", f"{reason}; its log says more")
    if attempt.stream is not None:
        return attempt.stream.ended("unknown", reason, refused)
    return Ended("unknown", 500, reason=reason, refused=refused)


async def play(player: Player, wire: Wire, request: Request) -> Ended:
    """The scripted model's answer."""
    try:
        body, think_s = player.answer(request.body)
    except ScriptFault as error:
        kind, reason = error.fault.kind, f"{error.fault.kind}: {error.fault.reason}"
        return Ended("error", 422, _NOTHING, reason=reason, refused=Refused(422, kind, reason), unfit=kind)
    if think_s:
        await asyncio.sleep(think_s)
    ended = _answered(wire, Answer(200, CIMultiDict({"content-type": "application/json"}), body, time.monotonic()), {})
    return _as_stream(ended, wire, request) if request.stream else ended


def _as_stream(ended: Ended, wire: Wire, request: Request) -> Ended:
    """A scripted answer for a client that asked for a stream."""
    assert ended.answer is not None
    events = streamed.events(wire.spoken, orjson.loads(ended.answer.body), with_usage=request.asking is None)
    answer = replace(ended.answer, headers=CIMultiDict({"content-type": "text/event-stream"}), body=events)
    return replace(ended, answer=answer, response_sha256=hashlib.sha256(events).hexdigest())


async def _pass_on(
    attempt: Attempt, opened: Opening, wire: Wire, request: Request, sink: Sink, take: Take | None = None
) -> Ended:
    """An answer that has begun: streamed on, or whole. Raises UpstreamFailed where it breaks off."""
    if opened.streams:
        meter = StreamMeter(wire, leave_out_report=request.asking is not None)
        attempt.stream = Stream(opened, meter, sink, take)
        return await attempt.stream.run()
    answer = Answer(opened.status, opened.headers, await opened.read(), opened.first_byte_at)
    return _answered(wire, answer, opened.told)


async def replay(attempt: Attempt, part: Part, wire: Wire, request: Request, sink: Sink, turn: Turn) -> Ended:
    """A recorded answer; `turn` is awaited when the call's turn has come."""
    try:
        return await _pass_on(attempt, await part.answer(request.body, turn), wire, request, sink)
    except UpstreamFailed as error:
        return _failed(attempt, error)
    except Miss as error:
        reason = f"replay_miss: {error}"
        return Ended(
            "error", 422, _NOTHING, reason=reason, refused=Refused(422, "replay_miss", reason), unfit="replay_miss"
        )
    except NotPlayed as error:
        return Ended("refused", 401, _NOTHING, reason=str(error), refused=Refused(401, "cut", str(error)))


def _answered(wire: Wire, answer: Answer, told: Mapping[str, str]) -> Ended:
    """A whole answer, whatever its status; `told` is the upstream's headers."""
    reported, found = metering.read_whole(wire, answer.body), None
    if answer.status >= 400:
        found = trouble.of(answer.status, told, answer.body, now=datetime.now(UTC))
        if reported.usage is None and answer.status not in _MAYBE_BILLED:
            reported = replace(reported, tokens=NONE_USED)
    return Ended(
        "ok" if answer.status < 400 else "error",
        answer.status,
        reported,
        answer.first_byte_at,
        hashlib.sha256(answer.body).hexdigest(),
        answer,
        trouble=found,
    )


def _iso(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _failed(attempt: Attempt, error: UpstreamFailed) -> Ended:
    refused = Refused(error.status, "upstream", str(error))
    found = _BUSY if error.again else None
    if attempt.stream is not None:
        return replace(attempt.stream.ended("unknown", str(error), refused), failed=error, trouble=found)
    outcome: Outcome = "unknown" if error.sent else "error"
    reported = NO_REPORT if error.sent else _NOTHING
    return Ended(outcome, error.status, reported, reason=str(error), refused=refused, failed=error, trouble=found)
