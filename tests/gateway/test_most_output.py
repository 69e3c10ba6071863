"""A call that sets no bound to its answer is reserved at the most that its model can give, in every dialect."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bench.condition import Limits
from bench.gateway.client import Lease
from bench.prices import bound_usd_micros
from tests.gateway.conftest import PRICES, Gateway, Job, registration
from tests.gateway.upstream import Upstream

MOST = 1_000
PRICE = replace(PRICES["m"], max_output_tokens=MOST)
TALK = [{"role": "user", "content": "hi"}]
BODIES: dict[str, tuple[str, dict[str, Any], int]] = {
    "anthropic": ("/v1/messages", {"messages": TALK}, 1),
    "openai": ("/v1/chat/completions", {"messages": TALK}, 1),
    "openai, three choices": ("/v1/chat/completions", {"messages": TALK, "n": 3}, 3),
    "openai-responses": ("/v1/responses", {"input": TALK}, 1),
}


@pytest.fixture
async def known(
    gateway: Gateway, upstream: Upstream, http: aiohttp.ClientSession, tmp_path: Path
) -> AsyncIterator[Job]:
    """A job whose price sheet says what the model can answer with."""
    receipts = tmp_path / "receipts.jsonl"
    async with await Lease.open(gateway.control) as lease:
        await lease.register(replace(registration(tmp_path.name, receipts, upstream), prices={"m": PRICE}))
        yield Job(lease, http, receipts, tmp_path.name)


def bound_of(body: bytes, choices: int) -> tuple[int, int]:
    """(micro-dollars, tokens) at most."""
    most = MOST * choices
    return bound_usd_micros(PRICE, prompt_tokens=len(body), output_tokens=most, for_an_hour=False), len(body) + most


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", BODIES)
async def test_it_is_reserved_at_that_charged_at_its_use_and_refused_where_that_does_not_fit(
    known: Job, upstream: Upstream, dialect: str, stream: bool
) -> None:
    path, given, choices = BODIES[dialect]
    body = json.dumps({"model": "m", **given} | ({"stream": True} if stream else {})).encode()
    usd_micros, tokens = bound_of(body, choices)
    endpoint = dialect.partition("-")[0].partition(",")[0]

    async def issue(agent: str, limits: Limits) -> Any:
        return await known.issue(agent, endpoint=endpoint, limits=limits)

    for agent, limits in (("a-1", Limits(usd_micros=usd_micros - 1)), ("a-2", Limits(tokens=tokens - 1))):
        refused = await known.call(await issue(agent, limits), body, path=path)
        assert (refused.status, refused.headers["x-buzzbench-error"]) == (402, "agent_budget")
    upstream.gate.clear()
    exact = Limits(usd_micros=usd_micros, tokens=tokens)
    under_way = asyncio.create_task(known.call(await issue("b-1", exact), body, path=path))
    await upstream.arrived.acquire()
    opened = [json.loads(line) for line in known.receipts_path.read_text().splitlines()][-1]
    assert (opened["outcome"], opened["charged_usd_micros"], opened["charged_tokens"]) == ("open", usd_micros, tokens)
    upstream.gate.set()
    assert (await under_way).status == 200
    receipt = known.receipts[-1]
    assert (receipt["outcome"], receipt["charged_usd_micros"]) == ("ok", receipt["cost_usd_micros"])
    assert 0 < receipt["charged_tokens"] < tokens
    sent = json.loads(upstream.ledger[-1].body)
    assert not {"max_tokens", "max_completion_tokens", "max_output_tokens"} & sent.keys(), (
        "nobody bounds it for the agent"
    )


@pytest.mark.parametrize("dialect", BODIES)
async def test_one_that_is_cut_is_charged_that(known: Job, upstream: Upstream, dialect: str) -> None:
    path, given, choices = BODIES[dialect]
    body = json.dumps({"model": "m", **given}).encode()
    grant = await known.issue(endpoint=dialect.partition("-")[0].partition(",")[0], limits=Limits(tokens=10**6))
    upstream.gate.clear()
    under_way = asyncio.create_task(known.call(grant, body, path=path))
    await upstream.arrived.acquire()
    await known.lease.revoke("t1")
    assert (await under_way).status == 401
    (receipt,) = known.receipts
    assert (receipt["outcome"], receipt["charged_usd_micros"], receipt["charged_tokens"]) == (
        "unknown",
        *bound_of(body, choices),
    )


async def test_a_bound_of_the_requests_own_comes_first(known: Job, upstream: Upstream) -> None:
    upstream.gate.clear()
    under_way = asyncio.create_task(known.call(await known.issue()))
    await upstream.arrived.acquire()
    (opened,) = [json.loads(line) for line in known.receipts_path.read_text().splitlines()]
    upstream.gate.set()
    await under_way
    assert opened["charged_tokens"] < MOST
