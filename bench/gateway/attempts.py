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
from multidict import CIMultiDict

from bench.gateway import metering, trouble, upstream
from bench.gateway.metering import NO_REPORT, Reported, StreamMeter
from bench.gateway.player import Player, ScriptFault
from bench.gateway.protocol import Endpoint, FaultKind
from bench.gateway.receipts import Outcome
from bench.gateway.refusals import Refused
from bench.gateway.replayer import Miss, NotPlayed, Part
from bench.gateway.sink import ClientGone, Sink
from bench.gateway.trouble import Trouble
from bench.gateway.upstream import Answer, Opened, Outgoing, UpstreamFailed
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

    `started` is when it began to wait for its turn, `sent_at` when it went out.
    """

    number: int = 0
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
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
    is_between_events: bool = True
    """Whether what was streamed are whole events."""
    unfit: FaultKind | None = None
    """Where a script or a recording doesn't fit what happened."""


class Stream:
    """A streamed answer on its way. What of it has come is known at any moment, however it ends."""

    def __init__(self, opened: Opened, meter: StreamMeter, sink: Sink, *, keep: bool) -> None:
        self._opened, self._meter, self._sink = opened, meter, sink
        self._kept: list[bytes] | None = [] if keep else None
        self._first_byte_at: float | None = None

    async def run(self) -> Ended:
        """Pass it on, each chunk at once. Raises UpstreamFailed where it breaks off."""
        try:
            await self._sink.begin(self._opened.status, self._opened.headers)
            async with aclosing(self._opened.chunks()) as chunks:
                async for chunk in chunks:
                    if self._first_byte_at is None:
                        self._first_byte_at = time.monotonic()
                    await self._pass(self._meter.feed(chunk))
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
        status, first_byte_at = self._opened.status, self._first_byte_at
        answer = None
        if self._kept is not None and to_its_end:
            headers, body = CIMultiDict(self._opened.headers), b"".join(self._kept)
            answer = Answer(status, headers, body, first_byte_at or self._opened.first_byte_at)
        return Ended(
            outcome,
            status,
            self._meter.reported,
            first_byte_at,
            self._meter.sha256,
            answer,
            reason,
            refused,
            streamed=True,
            is_between_events=self._meter.is_between_events,
        )

    async def _pass(self, data: bytes) -> None:
        if not data:
            return
        if self._kept is not None:
            self._kept.append(data)
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
    keep: bool,
) -> Ended:
    """Send the call to its upstream. `keep` has a stream's body in the result, too."""
    if request.asking is not None:
        outgoing = replace(outgoing, body=request.asking)
    try:
        async with upstream.opened(client, endpoint, wire, outgoing) as opened:
            if opened.streams:
                meter = StreamMeter(wire, leave_out_report=request.asking is not None)
                attempt.stream = Stream(opened, meter, sink, keep=keep)
                return await attempt.stream.run()
            body = await opened.read()
            answer = Answer(opened.status, opened.headers, body, opened.first_byte_at)
            return _answered(wire, answer, opened.told)
    except UpstreamFailed as error:
        return _failed(attempt, error)


def cut(attempt: Attempt) -> Ended:
    """The token died while the attempt was under way."""
    refused = Refused(401, "cut", f"{_CUT}; it was cut")
    if attempt.stream is not None:
        return attempt.stream.ended("unknown", _CUT, refused)
    return Ended("unknown", 401, reason=_CUT, refused=refused)


async def play(player: Player, wire: Wire, request: Request) -> Ended:
    """The scripted model's answer."""
    try:
        body, think_s = player.answer(request.body)
    except ScriptFault as error:
        kind, reason = error.fault.kind, f"{error.fault.kind}: {error.fault.reason}"
        return Ended("error", 422, _NOTHING, reason=reason, refused=Refused(422, kind, reason), unfit=kind)
    if think_s:
        await asyncio.sleep(think_s)
    return _answered(wire, Answer(200, CIMultiDict({"content-type": "application/json"}), body, time.monotonic()), {})


async def replay(attempt: Attempt, part: Part, wire: Wire, request: Request) -> Ended:
    """A recorded answer."""
    try:
        answer = await part.answer(request.body)
    except UpstreamFailed as error:
        return _failed(attempt, error)
    except Miss as error:
        reason = f"replay_miss: {error}"
        return Ended(
            "error", 422, _NOTHING, reason=reason, refused=Refused(422, "replay_miss", reason), unfit="replay_miss"
        )
    except NotPlayed as error:
        return Ended("refused", 401, _NOTHING, reason=str(error), refused=Refused(401, "cut", str(error)))
    return _answered(wire, answer, answer.headers)


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


def _failed(attempt: Attempt, error: UpstreamFailed) -> Ended:
    refused = Refused(error.status, "upstream", str(error))
    found = _BUSY if error.again else None
    if attempt.stream is not None:
        return replace(attempt.stream.ended("unknown", str(error), refused), trouble=found)
    outcome: Outcome = "unknown" if error.sent else "error"
    reported = NO_REPORT if error.sent else _NOTHING
    return Ended(outcome, error.status, reported, reason=str(error), refused=refused, failed=error, trouble=found)
