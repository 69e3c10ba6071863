"""What a call leaves: its receipts, what the budgets are charged, its place on a cassette."""

from __future__ import annotations

import itertools
import secrets
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bench.gateway.attempts import Attempt, Ended
from bench.gateway.ledger import Amount, Reservation
from bench.gateway.metering import Reported
from bench.gateway.receipts import Receipt
from bench.gateway.refusals import ReceiptsFailed, Refused
from bench.prices import NONE_USED, Price, bound_usd_micros, cost_usd_micros

if TYPE_CHECKING:
    from bench.gateway.jobs import Principal
    from bench.gateway.tape import Take
    from bench.gateway.wire import Request, Wire


_PROCESS = secrets.token_hex(12)
"""Begins the ids of this process's calls: a job that goes on with another gateway has no id twice."""

_numbers = itertools.count()

LONGEST_TEXT = 500
"""Characters of a model's name or a reason in a receipt."""


@dataclass
class Call:
    """A call as it goes: who makes it, and what is known of it so far."""

    principal: Principal
    wire: Wire
    call_id: str = field(default_factory=lambda: f"{_PROCESS}{next(_numbers):08x}")
    attempt: Attempt = field(default_factory=Attempt)
    request: Request | None = None
    request_sha256: str | None = None
    take: Take | None = None
    """Its recording, in a job that is recorded."""
    step: str | None = None
    """At which step of its task the trial is when the call goes out."""


def bound(call: Call, request: Request) -> Amount:
    """The most that a call can use. Without a bound on its output only the prompt counts: then no cap holds."""
    price = _price(call, request)
    output = request.most_output_tokens(price) or 0
    usd_micros = bound_usd_micros(
        price, prompt_tokens=request.prompt_tokens, output_tokens=output, for_an_hour=request.for_an_hour
    )
    return Amount(usd_micros, request.prompt_tokens + output, 1)


def _price(call: Call, request: Request) -> Price:
    return call.principal.job.registration.prices[request.model]


def open_(call: Call, request: Request, reservation: Reservation) -> None:
    """Note an attempt before it goes out, so that the gateway's own death loses none. Raises ReceiptsFailed."""
    ended = Ended("open", 0, reason="under way: no end of this call is booked")
    unbounded = request.most_output_tokens(_price(call, request)) is None
    try:
        call.principal.job.journal.write(_receipt(call, ended, reservation.amount, None, unbounded=unbounded))
    except OSError as error:
        raise _unwritten(call, error) from error


def refuse(call: Call, refused: Refused) -> None:
    """Book a call that does not go out. A job that has ended has no journal any more."""
    if call.principal.job.ending is None:
        reported = Reported(tokens=NONE_USED)
        _book(call, Ended("refused", refused.status, reported, reason=str(refused)), Amount(), 0)


def settle(call: Call, request: Request, reservation: Reservation, ended: Ended) -> None:
    """Book an attempt that went out, and replace its reservation by what it is charged. Raises ReceiptsFailed."""
    tokens, price = ended.reported.tokens, _price(call, request)
    cost, total = cost_usd_micros(price, tokens), tokens.total
    known = Amount(cost, total, 1) if cost is not None and total is not None else None
    charge = known or reservation.amount
    try:
        _book(call, ended, charge, cost, unbounded=known is None and request.most_output_tokens(price) is None)
    finally:
        call.principal.job.settle(reservation, charge)
    if known is not None and request.most_output_tokens(price) is not None:
        _compare(call, reservation.amount, known)


def _compare(call: Call, bound: Amount, used: Amount) -> None:
    """Tell people of an upstream that doesn't keep to what a call asked for: then no cap can hold to the end."""
    issue, job = call.principal.issue, call.principal.job
    if not job.ledger.bounded(issue.trial, issue.agent):
        return
    if used.tokens > bound.tokens or used.usd_micros > bound.usd_micros:
        reports = f"endpoint {issue.endpoint} reports {used.tokens} tokens for a call that may use {bound.tokens}"
        job.note_once(issue.endpoint, f"{reports}: caps may be passed")


def record(call: Call, ended: Ended) -> None:
    """Put a call that came to an end of its own on the job's cassette. Raises ReceiptsFailed where it can't be."""
    if call.take is None:
        return
    try:
        if ended.streamed and (ended.to_its_end or ended.failed is not None):
            call.take.streamed(ended.failed)
        elif ended.answer is not None:
            call.take.answered(ended.answer)
        elif ended.failed is not None:
            call.take.failed(ended.failed)
        elif ended.streamed or ended.outcome == "unknown":
            call.take.cut()
    except OSError as error:
        raise _failed(call, f"the cassette can't be written: {error.strerror}") from error


def withdraw(call: Call) -> None:
    """Put a call on the cassette that was not made again after an attempt that failed: it has no answer.

    Raises ReceiptsFailed where it can't be.
    """
    try:
        if call.take is not None:
            call.take.cut()
    except OSError as error:
        raise _failed(call, f"the cassette can't be written: {error.strerror}") from error


def _book(call: Call, ended: Ended, charge: Amount, cost: int | None, *, unbounded: bool = False) -> None:
    """Write the receipt and count it. Raises ReceiptsFailed where it can't be written: then no answer goes out."""
    receipt = _receipt(call, ended, charge, cost, unbounded=unbounded)
    call.principal.tally.add(receipt)
    try:
        call.principal.job.journal.write(receipt)
    except OSError as error:
        raise _unwritten(call, error) from error


def _unwritten(call: Call, error: OSError) -> ReceiptsFailed:
    return _failed(call, f"the receipt can't be written: {error.strerror}")


def _receipt(call: Call, ended: Ended, charge: Amount, cost: int | None, *, unbounded: bool) -> Receipt:
    principal, job, attempt = call.principal, call.principal.job, call.attempt
    request, issue, tokens = call.request, call.principal.issue, ended.reported.tokens
    cassette = job.replay.sha256 if job.replay and principal.part is not None else None
    return Receipt(
        call_id=call.call_id if attempt.number == 0 else f"{call.call_id}-{attempt.number}",
        job=job.registration.job,
        trial=issue.trial,
        agent=issue.agent,
        member=issue.member,
        endpoint=issue.endpoint,
        provider=principal.endpoint.provider,
        model=_clipped(request.model) if request is not None else None,
        dialect=call.wire.name,
        started_at=attempt.started_at,
        total_ms=_ms(time.monotonic() - attempt.started),
        first_byte_ms=None if ended.first_byte_at is None else _ms(ended.first_byte_at - attempt.started),
        status=ended.status,
        outcome=ended.outcome,
        input_tokens=tokens.input,
        cache_read_tokens=tokens.cache_read,
        cache_write_tokens=tokens.cache_write,
        output_tokens=tokens.output,
        cost_usd_micros=0 if cost is not None and cassette is not None else cost,
        charged_usd_micros=None if unbounded else charge.usd_micros,
        charged_tokens=None if unbounded else charge.tokens,
        prices_sha256=job.registration.prices_sha256,
        usage=ended.reported.usage,
        request_sha256=call.request_sha256,
        response_sha256=ended.response_sha256,
        reason=_clipped(ended.reason),
        cassette_sha256=cassette,
        tool_calls=ended.reported.tool_calls if ended.outcome == "ok" else None,
        retry=attempt.number,
        again=attempt.again,
        queue_ms=None if attempt.sent_at is None else _ms(attempt.sent_at - attempt.started),
        streamed=ended.streamed,
        served_model=ended.reported.model,
        served_provider=ended.reported.provider,
        step=call.step or principal.step,
    )


def _clipped(text: str | None) -> str | None:
    """A text that a client may have made up, short enough for a journal."""
    return text if text is None or len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]} …"


def _failed(call: Call, reason: str) -> ReceiptsFailed:
    call.principal.tell("receipts_failed", reason)
    return ReceiptsFailed(reason)


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
