"""Calls through the gateway to a real upstream: bodies untouched, keys kept, every call in the ledger."""

from __future__ import annotations

import asyncio
import gzip
import re
from typing import Any

import pytest
from aiohttp import web

from bench.condition import Limits
from bench.gateway.protocol import AgentUsage
from bench.secretforms import SHAPES
from tests.gateway.conftest import Job
from tests.gateway.upstream import KEY, Upstream, sha256

OPENAI = {"endpoint": "openai"}
CHAT = "/v1/chat/completions"


async def test_bodies_pass_byte_for_byte_both_ways(job: Job, upstream: Upstream) -> None:
    grant = await job.issue()
    odd = (
        b'{ "model":"m",\n "max_tokens" : 9, "unknown":[1.0e3, "\\u00e9"], "messages":[{"role":"user","content":"x"}] }'
    )
    reply = await job.call(grant, odd, path="/v1/messages?beta=true")
    (entry,) = upstream.ledger
    assert (reply.status, reply.data) == (200, entry.response)
    assert entry.body == odd
    assert entry.path == "/v1/messages?beta=true"
    (receipt,) = job.receipts
    assert receipt["request_sha256"] == sha256(odd)
    assert receipt["response_sha256"] == sha256(entry.response)


async def test_a_compressed_request_is_unpacked_for_reading_and_passed_on_plain(job: Job, upstream: Upstream) -> None:
    plain = b'{"model": "m", "max_tokens": 9, "messages": []}'
    reply = await job.call(await job.issue(), gzip.compress(plain), **{"content-encoding": "gzip"})
    assert (reply.status, upstream.ledger[0].body) == (200, plain)
    assert "content-encoding" not in upstream.ledger[0].headers


async def test_only_credentials_and_connection_headers_change(job: Job, upstream: Upstream) -> None:
    grant = await job.issue()
    reply = await job.call(grant, **{"anthropic-version": "2023-06-01", "accept-encoding": "gzip, br", "x-mine": "1"})
    headers = upstream.ledger[0].headers
    assert headers["x-api-key"] == KEY
    assert headers["anthropic-version"] == "2023-06-01"
    assert headers["x-mine"] == "1"
    assert headers["accept-encoding"] == "identity"
    assert grant.token not in str(headers)
    assert reply.headers["request-id"] == "req_1"


async def test_an_agents_token_is_known_for_one_wherever_it_turns_up(job: Job) -> None:
    """Nobody has it any more when its trial is over: a pack is searched for what looks like one."""
    grant = await job.issue()
    shape = SHAPES["a gateway token (bzbtok-…)"]
    assert re.fullmatch(shape, grant.token)


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/chat/completions"])
async def test_openai_takes_bearer_tokens_and_both_paths(job: Job, upstream: Upstream, path: str) -> None:
    grant = await job.issue(**OPENAI)
    body = {"model": "m", "max_completion_tokens": 5, "messages": [{"role": "user", "content": "x"}]}
    reply = await job.call(grant, body, path=path, **{"x-api-key": "", "authorization": f"Bearer {grant.token}"})
    assert reply.status == 200
    assert upstream.ledger[0].headers["authorization"] == f"Bearer {KEY}"


async def test_receipts_equal_the_upstreams_ledger(job: Job, upstream: Upstream) -> None:
    one, two = await job.issue(), await job.issue("worker-2", **OPENAI)
    calls = [job.call(one) for _ in range(8)] + [job.call(two, path=CHAT) for _ in range(8)]
    assert {r.status for r in await asyncio.gather(*calls)} == {200}
    booked = {r["response_sha256"]: r for r in job.receipts}
    assert len(booked) == len(upstream.ledger) == 16
    for entry in upstream.ledger:
        receipt = booked[sha256(entry.response)]
        assert receipt["usage"] == entry.usage
        if "prompt_tokens" in entry.usage:
            cached = entry.usage["prompt_tokens_details"]["cached_tokens"]
            told = (entry.usage["prompt_tokens"] - cached, cached, 0, entry.usage["completion_tokens"])
        else:
            told = tuple(
                entry.usage[k]
                for k in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
            )
        assert _tokens(receipt) == told
        fresh, read, write, output = told
        exact = fresh * 3_000_000 + read * 300_000 + write * 3_750_000 + output * 15_000_000
        assert abs(receipt["cost_usd_micros"] - exact / 1_000_000) <= 0.5
    usage = await job.lease.usage("t1")
    assert sum(u.cost_usd_micros or 0 for u in usage.values()) == sum(r["cost_usd_micros"] for r in job.receipts)


async def test_a_receipt_says_who_what_and_when(job: Job, upstream: Upstream) -> None:
    await job.call(await job.issue())
    (receipt,) = job.receipts
    assert {k: receipt[k] for k in ("job", "trial", "agent", "member", "endpoint", "provider", "model", "dialect")} == {
        "job": job.name,
        "trial": "t1",
        "agent": "worker-1",
        "member": "worker",
        "endpoint": "anthropic",
        "provider": "anthropic",
        "model": "m",
        "dialect": "anthropic",
    }
    assert receipt["started_at"].endswith("Z")
    assert 0 < receipt["first_byte_ms"] <= receipt["total_ms"]
    assert (receipt["status"], receipt["outcome"], receipt["reason"]) == (200, "ok", None)


async def test_usage_that_is_left_out_is_unknown_and_charged_at_its_bound(job: Job, upstream: Upstream) -> None:
    upstream.usage_of = lambda number, body: None
    reply = await job.call(await job.issue(limits=Limits(usd_micros=1_000_000)))
    assert reply.status == 200
    (receipt,) = job.receipts
    assert _tokens(receipt) == (None, None, None, None)
    assert receipt["cost_usd_micros"] is None
    assert receipt["charged_usd_micros"] > 50 * 15
    usage = (await job.lease.usage("t1"))["worker-1"]
    assert usage == AgentUsage(
        calls=1,
        input_tokens=None,
        cache_read_tokens=None,
        cache_write_tokens=None,
        output_tokens=None,
        cost_usd_micros=None,
        unknown_calls=1,
        sent_calls=1,
    )


async def test_an_upstreams_error_passes_with_its_status_and_body(job: Job, upstream: Upstream) -> None:
    async def respond(request: web.Request) -> web.Response:
        return web.Response(status=404, text='{"theirs": true}', headers={"x-theirs": "7"})

    upstream.respond = respond
    reply = await job.call(await job.issue())
    assert (reply.status, reply.json, reply.headers["x-theirs"]) == (404, {"theirs": True}, "7")
    (receipt,) = job.receipts
    assert (receipt["outcome"], receipt["cost_usd_micros"], _tokens(receipt)) == ("error", 0, (0, 0, 0, 0))


async def test_a_call_under_way_is_cut_when_its_token_dies(job: Job, upstream: Upstream) -> None:
    upstream.gate.clear()
    grant = await job.issue()
    call = asyncio.create_task(job.call(grant))
    await upstream.arrived.acquire()
    usage = await job.lease.revoke("t1")
    reply = await call
    assert (reply.status, reply.headers["x-buzzbench-error"]) == (401, "cut")
    assert usage["worker-1"].unknown_calls == 1
    (receipt,) = job.receipts
    assert (receipt["outcome"], receipt["reason"]) == ("unknown", "the token died during the call")


async def test_a_call_under_way_may_end_within_the_grace(job: Job, upstream: Upstream) -> None:
    upstream.gate.clear()
    grant = await job.issue()
    call = asyncio.create_task(job.call(grant))
    await upstream.arrived.acquire()
    revoked = asyncio.create_task(job.lease.revoke("t1", "worker-1", grace_s=60))
    await job.lease.usage("t1")
    upstream.gate.set()
    assert (await call).status == 200
    assert (await revoked)["worker-1"].unknown_calls == 0


async def test_large_bodies_pass_up_to_the_limit(job: Job, upstream: Upstream) -> None:
    grant = await job.issue()
    body = b'{"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "%b"}]}'
    most = body % (b"x" * (32 * 1024 * 1024 - len(body) + 2))
    assert (await job.call(grant, most)).status == 200
    assert (len(most), upstream.ledger[0].body) == (32 * 1024 * 1024, most)
    reply = await job.call(grant, most + b" ")
    assert (reply.status, reply.json["error"]["type"]) == (413, "request_too_large")
    assert reply.json["error"]["message"] == "the body is over 32 MB"


def _tokens(receipt: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(receipt[f"{name}_tokens"] for name in ("input", "cache_read", "cache_write", "output"))
