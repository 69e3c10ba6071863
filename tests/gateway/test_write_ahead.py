"""A call is in the books before it goes out: a gateway that is killed loses none, and every reader counts it alike."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import psycopg
import pytest
from aiohttp import web

from bench import costs, schema
from bench.condition import Limits
from bench.gateway.client import Lease
from bench.prices import bound_usd_micros
from bench.records import RECEIPTS, read_job
from bench.run import projection
from bench.spend.sums import Books
from bench.stack import StackAddress
from tests.gateway.conftest import CONTEXT, PRICES, Gateway, Job, registration, start_gateway
from tests.gateway.test_service import SCRIPT, shown
from tests.gateway.upstream import Upstream

PROMPT = {"model": "m", "max_tokens": 50, "messages": [{"role": "user", "content": "hi"}]}
BOUND_TOKENS = len(json.dumps(PROMPT)) + 50
BOUND = bound_usd_micros(PRICES["m"], prompt_tokens=len(json.dumps(PROMPT)), output_tokens=50, for_an_hour=False)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


async def test_the_journal_has_a_call_before_the_upstream_has_it(job: Job, upstream: Upstream) -> None:
    found: list[dict[str, Any]] = []

    async def respond(request: web.Request) -> web.Response:
        found.extend(lines(job.receipts_path))
        return web.Response(status=404)

    upstream.respond = respond
    await job.call(await job.issue())
    (opened,) = found
    assert (opened["outcome"], opened["trial"], opened["agent"], opened["model"]) == ("open", "t1", "worker-1", "m")
    assert (opened["charged_usd_micros"], opened["charged_tokens"]) == (BOUND, BOUND_TOKENS)
    assert [line["call_id"] for line in lines(job.receipts_path)] == [opened["call_id"]] * 2
    assert [receipt["outcome"] for receipt in job.receipts] == ["error"]


async def test_a_rehearsals_calls_have_one_line(job: Job) -> None:
    await job.call(await job.issue(endpoint="scripted", script=SCRIPT, context=CONTEXT), shown("write part 1"))
    assert [line["outcome"] for line in lines(job.receipts_path)] == ["ok"]


async def test_a_call_that_cannot_be_noted_does_not_go_out(
    gateway: Gateway, upstream: Upstream, http: aiohttp.ClientSession
) -> None:
    async with await Lease.open(gateway.control) as lease:
        await lease.register(registration("unwritable", Path("/dev/full"), upstream))
        job = Job(lease, http, Path("/dev/full"), "unwritable")
        reply = await job.call(await job.issue())
        usage = await lease.usage("t1")
    assert (reply.status, reply.headers["x-buzzbench-error"]) == (500, "receipts")
    assert reply.json["error"]["message"] == "the receipt can't be written: No space left on device"
    assert (usage["worker-1"].calls, upstream.ledger) == (0, [])


@pytest.fixture
async def killed(short_home: Path, upstream: Upstream, http: aiohttp.ClientSession, tmp_path: Path) -> Path:
    """The directory of a job whose gateway was killed: one call had ended, and one was under way."""
    directory = tmp_path / "cut"
    directory.mkdir()
    gateway = start_gateway(short_home)
    upstream.usage_of = lambda number, body: {"input_tokens": 10, "output_tokens": 5}
    async with await Lease.open(gateway.control) as lease:
        await lease.register(registration("cut", directory / RECEIPTS, upstream))
        job = Job(lease, http, directory / RECEIPTS, "cut")
        grant = await job.issue()
        assert (await job.call(grant, PROMPT)).status == 200
        await upstream.arrived.acquire()
        upstream.gate.clear()
        call = asyncio.create_task(job.call(grant, PROMPT))
        await upstream.arrived.acquire()
        gateway.process.kill()
        await asyncio.to_thread(gateway.process.wait)
        with pytest.raises(aiohttp.ClientError):
            await call
        upstream.gate.set()
    return directory


async def test_every_reader_counts_a_call_without_an_end_as_unknown(killed: Path, database: str) -> None:
    assert [line["outcome"] for line in lines(killed / RECEIPTS)] == ["open", "ok", "open"]
    known = 10 * 3 + 5 * 15
    spend = costs.by_trial(costs.calls_of(killed / RECEIPTS, []))["t1"]
    assert (spend.calls, spend.unknown_calls, spend.tokens, spend.cost_usd_micros) == (2, 1, 15, known)
    assert read_job(killed).spend == spend
    shown = Books(killed).read().total
    assert shown.spend == spend
    assert (shown.charged_usd_micros, shown.charged_tokens) == (known + BOUND, 15 + BOUND_TOKENS)
    schema.apply(StackAddress("embedded", "", database, "", ""))
    assert projection.project(database, killed).receipts == 2
    query = "SELECT outcome, charged_usd_micros, reason FROM benchmark.llm_receipts ORDER BY started_at"
    with psycopg.connect(database) as connection:
        found = connection.execute(query).fetchall()
    assert found == [("ok", known, None), ("unknown", BOUND, "under way: no end of this call is booked")]


@pytest.mark.parametrize("scope", ["agent", "trial", "job"])
async def test_caps_hold_beyond_the_gateways_death(
    killed: Path, short_home: Path, upstream: Upstream, http: aiohttp.ClientSession, scope: str
) -> None:
    cap = Limits(calls=2)
    gateway = start_gateway(short_home)
    try:
        async with await Lease.open(gateway.control) as lease:
            budget = cap if scope == "job" else None
            await lease.register(registration("cut", killed / RECEIPTS, upstream, budget))
            back = Job(lease, http, killed / RECEIPTS, "cut")
            limits: dict[str, Any] = {"agent": {"limits": cap}, "trial": {"trial_limits": cap}, "job": {}}[scope]
            reply = await back.call(await back.issue(**limits), PROMPT)
    finally:
        gateway.stop()
    name = {"agent": "worker-1", "trial": "t1", "job": "cut"}[scope]
    assert reply.status == 402
    assert f"the {scope} {name} has a cap of 2 calls: 2 calls spent" in reply.json["error"]["message"]
