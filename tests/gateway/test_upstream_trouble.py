"""An upstream in trouble, at the wire: one back-off for a job, each attempt a receipt, and a job that stops in time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from bench.condition import Limits
from bench.gateway.client import Lease
from bench.gateway.protocol import Endpoint, JobNotice
from tests.gateway.conftest import Gateway, Job, registration
from tests.gateway.test_streaming import MESSAGES
from tests.gateway.upstream import KEY, Upstream


def troubled(upstream: Upstream, *answers: Callable[[], web.StreamResponse | None]) -> list[int]:
    """Have the upstream answer its first calls like this, the last one for good; None is its usual answer.

    Returns how many calls came.
    """
    came: list[int] = []

    async def respond(request: web.Request) -> web.StreamResponse:
        came.append(len(came))
        answer = answers[min(len(came), len(answers)) - 1]()
        return await upstream.answer(request) if answer is None else answer

    upstream.respond = respond
    return came


def status(code: int, **headers: str) -> Callable[[], web.StreamResponse]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda: web.Response(status=code, text='{"theirs": true}', headers=named)


def fine() -> None:
    return None


@pytest.fixture
def said(job: Job) -> list[JobNotice]:
    """What concerns the whole job."""
    notices: list[JobNotice] = []
    job.lease.on_job = notices.append
    return notices


@pytest.mark.parametrize("code", [429, 500, 502, 503, 529])
async def test_a_busy_upstream_is_asked_again_and_each_attempt_has_a_receipt(
    job: Job, upstream: Upstream, code: int
) -> None:
    troubled(upstream, status(code), status(code), fine)
    assert (await job.call(await job.issue())).status == 200
    receipts = job.receipts
    assert [(r["retry"], r["status"], r["outcome"]) for r in receipts] == [
        (0, code, "error"),
        (1, code, "error"),
        (2, 200, "ok"),
    ]
    assert len({r["call_id"] for r in receipts}) == 3
    assert len({r["request_sha256"] for r in receipts}) == 1
    assert (await job.lease.usage("t1"))["worker-1"].calls == 3


async def test_a_stream_is_asked_for_again_before_its_beginning(job: Job, upstream: Upstream) -> None:
    troubled(upstream, status(529), fine)
    reply = await job.call(await job.issue(), MESSAGES[1])
    assert reply.data == upstream.ledger[0].response
    assert [(r["retry"], r["streamed"]) for r in job.receipts] == [(0, False), (1, True)]


async def test_trouble_that_stays_is_passed_on_with_a_word_to_the_client_not_to_try_again(
    job: Job, upstream: Upstream
) -> None:
    came = troubled(upstream, status(529, x_theirs="7"))
    grant = await job.issue()
    async with job.lease.notices("t1") as notices:
        reply = await job.call(grant)
        notice = await anext(notices)
    assert (reply.status, reply.json, reply.headers["x-theirs"]) == (529, {"theirs": True}, "7")
    assert reply.headers["x-should-retry"] == "false"
    assert len(came) == 3
    assert (notice.kind, notice.agent, notice.reason) == (
        "upstream_failed",
        "worker-1",
        "endpoint anthropic answered 529",
    )


@pytest.mark.parametrize("form", ["seconds", "date"])
async def test_all_calls_of_the_job_wait_as_long_as_the_upstream_asks(job: Job, upstream: Upstream, form: str) -> None:
    # A date has whole seconds: two ahead leave at least one.
    now = datetime.now(UTC)
    asked = "1" if form == "seconds" else format_datetime(now + timedelta(seconds=2), usegmt=True)
    came = troubled(upstream, status(429, retry_after=asked, date=format_datetime(now, usegmt=True)), fine)
    first, second = await job.issue(), await job.issue("worker-2")
    one = asyncio.create_task(job.call(first))
    await upstream.arrived.acquire()
    while (await job.lease.usage("t1"))["worker-1"].calls == 0:
        pass
    two = asyncio.create_task(job.call(second))
    assert [(await one).status, (await two).status] == [200, 200]
    assert len(came) == 3
    held = {r["agent"]: r["queue_ms"] for r in job.receipts if r["outcome"] == "ok"}
    assert min(held.values()) > 500


async def test_a_call_whose_client_has_left_is_not_made_again(job: Job, upstream: Upstream) -> None:
    came = troubled(upstream, status(429, retry_after="1"), fine)
    grant = await job.issue()
    call = asyncio.create_task(job.call(grant))
    await upstream.arrived.acquire()
    while (await job.lease.usage("t1"))["worker-1"].calls == 0:
        pass
    call.cancel()
    while (await job.lease.usage("t1"))["worker-1"].refused_calls == 0:
        pass
    usage = (await job.lease.revoke("t1"))["worker-1"]
    assert (len(came), usage.calls) == (1, 1)
    assert job.receipts[-1]["reason"] == "the client left while its call waited"
    assert (await job.call(await job.issue(limits=Limits(calls=2)))).status == 200, "nothing stays reserved"


async def test_attempts_count_against_a_cap_of_calls(job: Job, upstream: Upstream) -> None:
    came = troubled(upstream, status(529))
    reply = await job.call(await job.issue(limits=Limits(calls=2)))
    assert (reply.status, reply.headers["x-buzzbench-error"], len(came)) == (402, "agent_budget", 2)
    assert [(r["retry"], r["outcome"]) for r in job.receipts] == [(0, "error"), (1, "error"), (2, "refused")]


async def test_an_error_that_may_hide_a_generation_is_charged_at_its_bound(job: Job, upstream: Upstream) -> None:
    troubled(upstream, status(524), fine)
    await job.call(await job.issue())
    hidden, plain = job.receipts
    assert (hidden["outcome"], hidden["cost_usd_micros"]) == ("error", None)
    assert hidden["charged_usd_micros"] > plain["charged_usd_micros"] > 0


async def test_an_upstream_that_breaks_off_leaves_an_unknown_attempt_and_is_asked_again(
    job: Job, upstream: Upstream
) -> None:
    async def respond(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    upstream.respond = respond
    reply = await job.call(await job.issue())
    assert (reply.status, reply.headers["x-buzzbench-error"]) == (502, "upstream")
    assert "127.0.0.1 broke off" in reply.json["error"]["message"]
    assert [(r["outcome"], r["cost_usd_micros"], r["retry"]) for r in job.receipts] == [
        ("unknown", None, 0),
        ("unknown", None, 1),
        ("unknown", None, 2),
    ]


async def test_an_upstream_out_of_reach_costs_nothing(job: Job, gateway: Gateway, tmp_path: Path) -> None:
    endpoints = {"anthropic": Endpoint("anthropic", "http://127.0.0.1:9", KEY)}
    path = tmp_path / "other.jsonl"
    async with await Lease.open(gateway.control) as lease:
        await lease.register(replace(registration("unreachable", path), endpoints=endpoints))
        away = Job(lease, job.http, path, "unreachable")
        reply = await away.call(await away.issue())
    assert reply.status == 502
    assert "127.0.0.1 can't be reached" in reply.json["error"]["message"]
    assert [(r["outcome"], r["charged_usd_micros"]) for r in away.receipts] == [("error", 0)] * 3


@pytest.mark.parametrize("code", [401, 402, 403])
async def test_a_refusal_stops_the_whole_job_at_once(
    job: Job, upstream: Upstream, said: list[JobNotice], code: int
) -> None:
    came = troubled(upstream, status(code))
    mine, other = await job.issue(), await job.issue("orch", trial="t2", endpoint="openai")
    async with job.lease.notices("t1") as notices, job.lease.notices("t2") as of_other:
        reply = await job.call(mine)
        notice, its = await anext(notices), await anext(of_other)
    assert (reply.status, reply.json) == (code, {"theirs": True})
    reason = f"endpoint anthropic answered {code}"
    assert (notice.kind, notice.agent, notice.reason) == ("upstream_refused", "worker-1", reason)
    assert (its.kind, its.trial, its.reason) == ("upstream_refused", "t2", f"{reason}: the job is stopped")
    assert said == [JobNotice("stopped", f"{reason}: the job is stopped")]
    late = await job.call(other, path="/v1/chat/completions")
    assert (late.status, late.headers["x-buzzbench-error"]) == (code, "upstream_refused")
    assert late.json["error"]["message"] == f"{reason}: the job is stopped"
    assert len(came) == 1
    assert [r["outcome"] for r in job.receipts] == ["error", "refused"]


async def test_a_reset_far_away_is_not_waited_for(job: Job, upstream: Upstream, said: list[JobNotice]) -> None:
    came = troubled(upstream, status(429, retry_after="7200"))
    grant, two = await job.issue(), await job.issue("worker-2", trial="t2")
    async with job.lease.notices("t1") as notices, job.lease.notices("t2") as of_other:
        reply, again = await job.call(grant), await job.call(two)
        notice, its = await anext(notices), await anext(of_other)
    assert (reply.status, reply.json, reply.headers["retry-after"]) == (429, {"theirs": True}, "7200")
    assert (again.status, again.headers["x-buzzbench-error"]) == (429, "upstream_limit")
    assert 7100 < int(again.headers["retry-after"]) <= 7200
    assert notice.kind == its.kind == "upstream_limit"
    (told,) = said
    assert told.state == "waiting"
    assert told.until is not None
    until = datetime.fromisoformat(told.until)
    assert timedelta(0) <= until - datetime.now(UTC) <= timedelta(seconds=7201)
    assert told.reason == notice.reason == its.reason
    assert told.reason == (
        "endpoint anthropic answered 429 and asks to wait longer than longest_wait_s 60: "
        f"not before {until:%Y-%m-%d %H:%M:%S} UTC"
    )
    assert len(came) == 1
    other = await job.call(await job.issue(endpoint="openai"), path="/v1/chat/completions")
    assert (other.status, len(came)) == (429, 2), "the other endpoint is asked, and has its own say"


async def test_people_hear_of_calls_that_wait_and_of_calls_still_held_at_the_end(
    job: Job, upstream: Upstream, said: list[JobNotice]
) -> None:
    troubled(upstream, status(429, retry_after="50"))
    call = asyncio.create_task(job.call(await job.issue()))
    await upstream.arrived.acquire()
    while not said:
        await job.lease.usage("t1")
    assert said == [JobNotice("note", "endpoint anthropic answered 429; its calls wait 50 s")]
    usage = (await job.lease.revoke("t1"))["worker-1"]
    assert (usage.calls, usage.held_calls) == (1, 1)
    assert ((await call).status, (await call).headers["x-buzzbench-error"]) == (401, "revoked")


async def test_a_cap_that_is_nearly_reached_is_told_once_for_each_scope(
    job: Job, upstream: Upstream, said: list[JobNotice]
) -> None:
    grant = await job.issue(limits=Limits(calls=5), trial_limits=Limits(calls=10))
    for _ in range(5):
        assert (await job.call(grant)).status == 200
    other = await job.issue("worker-2")
    for _ in range(4):
        assert (await job.call(other)).status == 200
    await job.lease.usage("t1")
    assert [(n.state, n.reason) for n in said] == [
        ("note", "the agent worker-1 of t1 has spent 4 calls of 5 calls, 80 %"),
        ("note", "the trial t1 has spent 8 calls of 10 calls, 80 %"),
    ]


async def test_the_jobs_own_cap_is_told_to_the_whole_job(
    gateway: Gateway, job: Job, upstream: Upstream, tmp_path: Path
) -> None:
    said: list[Any] = []
    path = tmp_path / "capped.jsonl"
    async with await Lease.open(gateway.control) as lease:
        lease.on_job = said.append
        await lease.register(registration("capped", path, upstream, Limits(calls=1)))
        capped = Job(lease, job.http, path, "capped")
        one, two = await capped.issue(), await capped.issue("orch", trial="t2")
        assert (await capped.call(one)).status == 200
        assert [(await capped.call(two)).status for _ in range(2)] == [402, 402]
        await lease.usage("t1")
    note, budget = said
    assert (note.state, note.reason) == ("note", "the job capped has spent 1 call of 1 call, 100 %")
    assert (budget.state, budget.until) == ("budget", None)
    assert budget.reason.startswith("the job capped has a cap of 1 call: 1 call spent")
