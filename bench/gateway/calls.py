"""One model call: allowed, reserved, made, settled, and its receipt written before the caller has the whole answer.

Calls that the gateway refuses have receipts too, so that a late call of a dead agent is seen. Whether a call is made
again is decided here alone: until the client has the beginning of an answer, while the upstream is in trouble that
passes. Each attempt is reserved, settled and booked by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Coroutine, Mapping
from typing import Any

import aiohttp
import orjson

from bench.gateway import attempts, booking
from bench.gateway.allowed import check_alive, check_awake
from bench.gateway.attempts import Attempt, Ended
from bench.gateway.booking import Call
from bench.gateway.jobs import Cut, OpenCall, Principal
from bench.gateway.ledger import Amount, Refusal, Reservation, Scope
from bench.gateway.protocol import FaultKind
from bench.gateway.refusals import ReceiptsFailed, Refused
from bench.gateway.replayer import Part
from bench.gateway.sink import Sink
from bench.gateway.upstream import Outgoing
from bench.gateway.wire import Request

log = logging.getLogger(__name__)

OVER_BUDGET: Mapping[Scope, FaultKind] = {"agent": "agent_budget", "trial": "trial_budget", "job": "job_budget"}
"""What a refusal for a cap is called, by the cap's scope."""


async def make(call: Call, request: Request, outgoing: Outgoing, client: aiohttp.ClientSession, sink: Sink) -> Ended:
    """How the call ended, booked and recorded. Raises Refused for one that doesn't go out, booked too."""
    principal = call.principal
    under_way = OpenCall()
    try:
        await _next_step(call)
        principal.open.add(under_way)
        return await _attempts(call, under_way, request, outgoing, client, sink)
    except ReceiptsFailed:
        raise
    except Refused as refused:
        booking.refuse(call, refused)
        booking.withdraw(call)
        raise
    finally:
        principal.open.discard(under_way)
        under_way.booked()


async def _next_step(call: Call) -> None:
    """Return when a step of the trial's task is under way: at once where it has none. Raises Refused for a dead token.

    Who was halted between two steps hears the answer in the next one, as if nothing had been.
    """
    while call.principal.rests:
        await call.principal.job.changed()
        check_alive(call.principal)
    call.step = call.principal.step


async def _attempts(
    call: Call, under_way: OpenCall, request: Request, outgoing: Outgoing, client: aiohttp.ClientSession, sink: Sink
) -> Ended:
    """How the last attempt ended."""
    while True:
        ended = await _attempt(call, under_way, request, outgoing, client, sink)
        if not call.attempt.again:
            _tell(call.principal, ended)
            booking.record(call, ended)
            return ended
        call.attempt = Attempt(call.attempt.number + 1)


async def _attempt(
    call: Call, under_way: OpenCall, request: Request, outgoing: Outgoing, client: aiohttp.ClientSession, sink: Sink
) -> Ended:
    """How one attempt ended; it knows whether to make another."""
    principal, attempt = call.principal, call.attempt
    if principal.part is not None:
        return await _replayed(call, principal.part, under_way, request, sink)
    if principal.asks_upstream:
        await _turn(call)
    reservation = await _reserve(call, request)
    try:
        sending = _begin(call, request, outgoing, client, sink, reservation)
    except BaseException:
        principal.job.settle(reservation, Amount())
        raise
    principal.tally.sent_calls += 1
    ended = await _under_way(call, under_way, sending)
    attempt.again = _met(principal, attempt, ended) and not sink.has_begun
    booking.settle(call, request, reservation, ended)
    return ended


def _begin(
    call: Call,
    request: Request,
    outgoing: Outgoing,
    client: aiohttp.ClientSession,
    sink: Sink,
    reservation: Reservation,
) -> Coroutine[Any, Any, Ended]:
    """An attempt that is about to go out. Raises Refused, also ReceiptsFailed: then nothing does."""
    principal, attempt = call.principal, call.attempt
    if sink.is_gone:
        raise _gone()
    if call.take is None and principal.tape is not None:
        # Only what goes out is on the cassette: a replay refuses the others by itself.
        try:
            orjson.dumps(request.body)
            call.take = principal.tape.asked(request.body)
        except (TypeError, RecursionError) as error:
            raise Refused(400, "bad_request", "the body is nested too deep to be recorded") from error
    attempt.sent_at = time.monotonic()
    if principal.player is not None:
        return attempts.play(principal.player, call.wire, request)
    booking.open_(call, request, reservation)
    attempt.step = principal.backoff.step
    return attempts.send(attempt, client, principal.endpoint, call.wire, request, outgoing, sink, take=call.take)


async def _under_way(call: Call, under_way: OpenCall, sending: Coroutine[Any, Any, Ended]) -> Ended:
    """How an attempt ended that has gone out, whatever happened to it: it has to be booked. Raises Refused."""
    try:
        return await under_way.attempt(sending)
    except Cut:
        return attempts.cut(call.attempt)
    except Refused:
        raise
    except Exception as error:
        log.exception("call %s of %s", call.call_id, call.principal.issue.agent)
        return attempts.broken(call.attempt, error)


async def _replayed(call: Call, part: Part, under_way: OpenCall, request: Request, sink: Sink) -> Ended:
    """How a call ended that a recording answers. It holds nothing until its turn has come.

    Else it would wait for those before it, and they, near a cap, for what it holds.
    """
    principal, ledger = call.principal, call.principal.job.ledger
    trial, agent, amount = principal.issue.trial, principal.issue.agent, booking.bound(call, request)
    if (refusal := ledger.refusal(trial, agent, amount)) is not None and not refusal.passing:
        raise _over_budget(principal, refusal)
    if sink.is_gone:
        raise _gone()
    held: list[Reservation] = []

    async def turn() -> None:
        held.append(await _reserve(call, request))

    call.attempt.sent_at = time.monotonic()
    principal.tally.sent_calls += 1
    ended = await _under_way(call, under_way, attempts.replay(call.attempt, part, call.wire, request, sink, turn))
    # One that ended before its turn, or never had one, is charged as one that had gone out.
    booking.settle(call, request, held[0] if held else ledger.hold(trial, agent, amount), ended)
    return ended


def _gone() -> Refused:
    return Refused(499, "gone", "the client left while its call waited")


def _met(principal: Principal, attempt: Attempt, ended: Ended) -> bool:
    """Note what the attempt says of its upstream; whether the call may be made again."""
    if attempt.step is None or (ended.trouble is None and ended.outcome != "ok"):
        return False
    if ended.trouble is not None and ended.trouble.kind == "refused":
        # Before the whole job hears of it, so that it is said whose call it was.
        _tell(principal, ended)
    standing = principal.job.standing
    what = _what(principal, ended)
    passes = standing.met(principal.issue.endpoint, attempt.step, ended.status, what, ended.trouble)
    return passes and attempt.number < standing.patience.retries


async def _turn(call: Call) -> None:
    """Return when a call may go out to the endpoint. Raises Refused where none may, or its token died meanwhile."""
    principal, is_held = call.principal, call.attempt.number > 0
    while True:
        if is_held and (principal.rests or not principal.alive):
            principal.tally.held_calls += 1
        check_awake(principal)
        _check_standing(principal)
        wait_s = principal.backoff.wait_s()
        if wait_s == 0:
            return
        is_held = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await principal.job.changed()


async def _reserve(call: Call, request: Request) -> Reservation:
    """The call's upper bound, reserved. Waits while calls under way hold what it needs. Raises Refused."""
    principal, job = call.principal, call.principal.job
    amount = booking.bound(call, request)
    while True:
        held = job.ledger.reserve(principal.issue.trial, principal.issue.agent, amount)
        if isinstance(held, Reservation):
            return held
        if not held.passing:
            raise _over_budget(principal, held)
        await job.changed()
        check_awake(principal)
        if principal.asks_upstream:
            _check_standing(principal)


def _check_standing(principal: Principal) -> None:
    """Raise Refused where no call may go out to the agent's endpoint."""
    try:
        principal.job.standing.check(principal.issue.endpoint)
    except Refused as refused:
        if refused.kind == "upstream_limit":
            principal.tell("upstream_limit", str(refused))
        raise


def _over_budget(principal: Principal, refusal: Refusal) -> Refused:
    reason, kind = str(refusal), OVER_BUDGET[refusal.scope]
    principal.tell(kind, reason)
    if refusal.scope == "job":
        principal.job.over_budget(reason)
    elif refusal.scope == "agent":
        principal.tally.capped_calls += 1
    return Refused(402, kind, f"Buzzbench budget: {reason}. This call was not sent.")


def _tell(principal: Principal, ended: Ended) -> None:
    """Send the job a notice of what went wrong at last."""
    if ended.unfit is not None:
        principal.tell(ended.unfit, str(ended.reason).removeprefix(f"{ended.unfit}: "))
    elif ended.trouble is not None:
        limit = principal.job.standing.limit(principal.issue.endpoint)
        if ended.trouble.kind == "refused":
            principal.tell("upstream_refused", _what(principal, ended))
        else:
            principal.tell("upstream_limit" if limit else "upstream_failed", limit or _what(principal, ended))


def _what(principal: Principal, ended: Ended) -> str:
    """What an upstream in trouble did, as people read it."""
    did = f"answered {ended.status}" if ended.reason is None else f"failed ({ended.reason})"
    return f"endpoint {principal.issue.endpoint} {did}"
