"""One model call: allowed, reserved, made, settled, and its receipt on disk before the caller has the answer.

Calls that the gateway refuses have receipts too, so that a late call of a dead agent is seen; nothing is retried.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import aiohttp
from multidict import CIMultiDict

from bench.gateway import answers, upstream
from bench.gateway.dialects import Request, Wire, read_usage
from bench.gateway.jobs import OpenCall, Principal
from bench.gateway.ledger import Amount, Refusal, Reservation
from bench.gateway.player import Player, ScriptFault
from bench.gateway.receipts import Outcome, Receipt
from bench.gateway.recorder import Take
from bench.gateway.replayer import Miss, NotPlayed
from bench.gateway.upstream import Answer, UpstreamFailed
from bench.prices import NONE_USED, UNKNOWN, Tokens, bound_usd_micros, cost_usd_micros

_MAYBE_BILLED = frozenset((408, 499, 502, 504, *range(520, 528)))
"""Statuses by which something between us and the model says that it gave up: the model may have gone on."""


class Refused(Exception):
    """The gateway's own answer to a call. `kind` is in the header `x-buzzbench-error`, and OpenAI's `code`.

    Kinds and statuses: `unauthorized` 401 (no such token), `revoked` 401 (a dead one), `model` and `endpoint` 403,
    `bad_request` 400, `too_large` 413, `budget` 402, `script_mismatch` and `script_exhausted` 422, `upstream` 502 or
    504, `cut` 401 (the token died during the call), `replay_miss` 422, `receipts` 500.
    """

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind


@dataclass
class Call:
    """A call as it goes: who makes it, and what is known of it so far."""

    principal: Principal
    wire: Wire
    call_id: str = field(default_factory=lambda: secrets.token_hex(16))
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    started: float = field(default_factory=time.monotonic)
    request: Request | None = None
    request_sha256: str | None = None
    take: Take | None = None
    """Its recording, in a job that is recorded."""

    def took(self, data: bytes) -> None:
        """Note the request's bytes."""
        self.request_sha256 = hashlib.sha256(data).hexdigest()


@dataclass(frozen=True)
class Ended:
    """How a call ended: what the client gets, and what is booked."""

    outcome: Outcome
    status: int
    tokens: Tokens
    usage: Any = None
    answer: Answer | None = None
    reason: str | None = None
    refused: Refused | None = None
    failed: UpstreamFailed | None = None


def check_alive(call: Call) -> None:
    """Raise Refused for a dead token."""
    if not call.principal.alive:
        raise Refused(401, "revoked", "this token is dead: the agent's trial or its job has ended")


def check(call: Call, request: Request) -> None:
    """Raise Refused unless the agent may make this call."""
    issue, endpoint = call.principal.issue, call.principal.endpoint
    if call.wire is not call.principal.wire:
        right = call.principal.wire
        raise Refused(
            403, "endpoint", f"endpoint {issue.endpoint} speaks {endpoint.spoken}: call /v1{right.path} instead"
        )
    if request.model not in issue.models:
        allowed = ", ".join(issue.models) or "none"
        raise Refused(403, "model", f"{issue.agent} may not call model {request.model!r}; allowed: {allowed}")
    if request.stream:
        raise Refused(400, "bad_request", "this gateway doesn't stream yet: leave `stream` out or set it to false")
    if not call.principal.job.ledger.bounded(issue.trial, issue.agent):
        return
    if request.output_tokens is None:
        raise Refused(
            400, "bad_request", "a budget holds for this call, so it needs a bound: set max_tokens (or the like)"
        )
    if request.by_reference:
        raise Refused(
            400, "bad_request", "a budget holds for this call, so send its images and files inline, not by reference"
        )


async def refuse(call: Call, refused: Refused) -> None:
    """Book a call that does not go out. A job that has ended has no journal any more."""
    if call.principal.job.ending is None:
        await _book(call, Ended("refused", refused.status, NONE_USED, reason=str(refused)), Amount())


async def reserve(call: Call, request: Request) -> Reservation:
    """The call's upper bound, reserved. Waits while calls under way hold what it needs. Raises Refused."""
    principal, job = call.principal, call.principal.job
    amount = bound(call, request)
    while True:
        held = job.ledger.reserve(principal.issue.trial, principal.issue.agent, amount)
        if isinstance(held, Reservation):
            return held
        if not held.passing:
            raise _over_budget(principal, held)
        await job.changed()
        check_alive(call)


def bound(call: Call, request: Request) -> Amount:
    """The most that a call can use. Without a limit on its output only the prompt counts: then no cap holds."""
    output = request.output_tokens or 0
    price = call.principal.job.registration.prices[request.model]
    usd_micros = bound_usd_micros(price, prompt_tokens=request.prompt_tokens, output_tokens=output)
    return Amount(usd_micros, request.prompt_tokens + output, 1)


def _over_budget(principal: Principal, refusal: Refusal) -> Refused:
    principal.tell("budget", str(refusal))
    return Refused(402, "budget", f"Buzzbench budget: {refusal}. This call was not sent.")


async def make(
    call: Call,
    request: Request,
    reservation: Reservation,
    client: aiohttp.ClientSession,
    headers: Mapping[str, str],
    query: str,
    body: bytes,
) -> Answer:
    """The upstream's answer, booked and with its receipt on disk. Raises Refused where there is none: booked too."""
    principal = call.principal
    if principal.tape is not None:
        call.take = principal.tape.asked(request.body)
    if principal.player is not None:
        ended = await _play(call, principal.player, request)
        await _settle(call, request, reservation, ended)
    else:
        if principal.part is not None:
            work = asyncio.create_task(principal.part.answer(request.body))
        else:
            _open(call, request, reservation)
            work = asyncio.create_task(upstream.send(client, principal.endpoint, headers, query, body))
        under_way = OpenCall(work)
        principal.open.add(under_way)
        try:
            await asyncio.wait((work,))
            ended = _ended(call, work)
            await _settle(call, request, reservation, ended)
        finally:
            principal.open.discard(under_way)
            under_way.booked()
    _record(call, ended)
    if ended.refused is not None:
        raise ended.refused
    assert ended.answer is not None
    return ended.answer


def _open(call: Call, request: Request, reservation: Reservation) -> None:
    """Note the call before it goes out, so that the gateway's own death loses none. Raises Refused (500)."""
    ended = Ended("open", 0, UNKNOWN, reason="under way: no end of this call is booked")
    unbounded = request.output_tokens is None
    try:
        call.principal.job.journal.note(_receipt(call, ended, reservation.amount, unbounded=unbounded))
    except OSError as error:
        call.principal.job.settle(reservation, Amount())
        raise _unwritten(call, error) from error


def _record(call: Call, ended: Ended) -> None:
    """Put a call that came to an end of its own on the job's cassette. Raises Refused (500) where it can't be."""
    if call.take is None:
        return
    try:
        if ended.answer is not None:
            call.take.answered(ended.answer)
        elif ended.failed is not None:
            call.take.failed(ended.failed)
        elif ended.outcome == "unknown":
            call.take.cut()
    except OSError as error:
        reason = f"the cassette can't be written: {error.strerror}"
        call.principal.tell("receipts_failed", reason)
        raise Refused(500, "receipts", reason) from error


def _ended(call: Call, work: asyncio.Task[Answer]) -> Ended:
    if work.cancelled():
        reason = "the token died during the call"
        return Ended("unknown", 401, UNKNOWN, reason=reason, refused=Refused(401, "cut", f"{reason}; it was cut"))
    error = work.exception()
    if isinstance(error, UpstreamFailed):
        call.principal.tell("upstream_failed", str(error))
        refused = Refused(error.status, "upstream", str(error))
        if error.sent:
            return Ended("unknown", error.status, UNKNOWN, reason=str(error), refused=refused, failed=error)
        return Ended("error", error.status, NONE_USED, reason=str(error), refused=refused, failed=error)
    if isinstance(error, Miss):
        call.principal.tell("replay_miss", str(error))
        refused = Refused(422, "replay_miss", f"replay_miss: {error}")
        return Ended("error", 422, NONE_USED, reason=str(refused), refused=refused)
    if isinstance(error, NotPlayed):
        return Ended("refused", 401, NONE_USED, reason=str(error), refused=Refused(401, "cut", str(error)))
    answer = work.result()
    usage, tokens = read_usage(call.wire, answer.body)
    if answer.status < 400:
        return Ended("ok", answer.status, tokens, usage, answer)
    if answer.status in (401, 402, 403):
        call.principal.tell("upstream_refused", f"endpoint {call.principal.issue.endpoint} answered {answer.status}")
    elif answer.status == 429 or answer.status >= 500:
        call.principal.tell("upstream_failed", f"endpoint {call.principal.issue.endpoint} answered {answer.status}")
    if usage is None and answer.status not in _MAYBE_BILLED:
        tokens = NONE_USED
    return Ended("error", answer.status, tokens, usage, answer)


async def _play(call: Call, player: Player, request: Request) -> Ended:
    try:
        body, think_s = player.answer(request.body)
    except ScriptFault as error:
        call.principal.tell(error.fault.kind, error.fault.reason)
        reason = f"{error.fault.kind}: {error.fault.reason}"
        return Ended("error", 422, NONE_USED, reason=reason, refused=Refused(422, error.fault.kind, reason))
    if think_s:
        await asyncio.sleep(think_s)
    usage, tokens = read_usage(call.wire, body)
    headers = CIMultiDict({"content-type": "application/json"})
    return Ended("ok", 200, tokens, usage, Answer(200, headers, body, time.monotonic()))


async def _settle(call: Call, request: Request, reservation: Reservation, ended: Ended) -> None:
    price = call.principal.job.registration.prices[request.model]
    cost, tokens = cost_usd_micros(price, ended.tokens), ended.tokens.total
    known = cost is not None and tokens is not None
    charge = Amount(cost, tokens, 1) if cost is not None and tokens is not None else reservation.amount
    try:
        await _book(call, ended, charge, unbounded=not known and request.output_tokens is None)
    finally:
        call.principal.job.settle(reservation, charge)


async def _book(call: Call, ended: Ended, charge: Amount, *, unbounded: bool = False) -> None:
    """Write the receipt and count it. Raises Refused (500) where it can't be written: then no answer goes out."""
    receipt = _receipt(call, ended, charge, unbounded=unbounded)
    call.principal.tally.add(receipt)
    try:
        await call.principal.job.journal.append(receipt)
    except OSError as error:
        raise _unwritten(call, error) from error


def _unwritten(call: Call, error: OSError) -> Refused:
    reason = f"the receipt can't be written: {error.strerror}"
    call.principal.tell("receipts_failed", reason)
    return Refused(500, "receipts", reason)


def _receipt(call: Call, ended: Ended, charge: Amount, *, unbounded: bool) -> Receipt:
    principal, job = call.principal, call.principal.job
    request, answer, issue = call.request, ended.answer, call.principal.issue
    price = job.registration.prices.get(request.model) if request is not None else None
    cost = 0 if price is None else cost_usd_micros(price, ended.tokens)
    cassette = job.replay.sha256 if job.replay and principal.part is not None else None
    return Receipt(
        call_id=call.call_id,
        job=job.registration.job,
        trial=issue.trial,
        agent=issue.agent,
        member=issue.member,
        endpoint=issue.endpoint,
        provider=principal.endpoint.provider,
        model=request.model if request is not None else None,
        dialect=call.wire.name,
        started_at=call.started_at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        total_ms=_ms(time.monotonic() - call.started),
        first_byte_ms=None if answer is None else _ms(answer.first_byte_at - call.started),
        status=ended.status,
        outcome=ended.outcome,
        input_tokens=ended.tokens.input,
        cache_read_tokens=ended.tokens.cache_read,
        cache_write_tokens=ended.tokens.cache_write,
        output_tokens=ended.tokens.output,
        cost_usd_micros=0 if cost is not None and cassette is not None else cost,
        charged_usd_micros=None if unbounded else charge.usd_micros,
        charged_tokens=None if unbounded else charge.tokens,
        prices_sha256=job.registration.prices_sha256,
        usage=ended.usage,
        request_sha256=call.request_sha256,
        response_sha256=None if answer is None else hashlib.sha256(answer.body).hexdigest(),
        reason=ended.reason,
        cassette_sha256=cassette,
        tool_calls=None if answer is None or ended.outcome != "ok" else answers.tool_calls(answer.body),
    )


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
