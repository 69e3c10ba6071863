"""Whoever wants past a cap, or to break the books: clients that ask for the impossible, upstreams that report it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from bench.condition import Limits
from bench.gateway.client import Lease
from bench.gateway.ledger import usd
from bench.gateway.protocol import Recording
from bench.prices import bound_usd_micros
from tests.gateway import streams
from tests.gateway.conftest import CONTEXT, PRICES, Gateway, Job, registration, start_gateway
from tests.gateway.test_service import SCRIPT
from tests.gateway.upstream import Upstream

CHAT = "/v1/chat/completions"
TALK = [{"role": "user", "content": "hi"}]
BODY: dict[str, Any] = {"model": "m", "max_tokens": 50, "messages": TALK}
SIZE = len(json.dumps(BODY))
BOUND = bound_usd_micros(PRICES["m"], prompt_tokens=SIZE, output_tokens=50, for_an_hour=False)
COST = 10 * 3 + 5 * 15
"""Of one call that uses 10 tokens of input and 5 of output, in micro-dollars."""

CLIENTS = 64


def small(_number: int, _body: dict[str, Any]) -> dict[str, int]:
    return {"input_tokens": 10, "output_tokens": 5}


async def at_once(job: Job, upstream: Upstream, calls: int, **issued: Any) -> list[int]:
    """The statuses of calls that come together, each from an agent of its own, to an upstream that takes its time."""
    upstream.usage_of = small
    upstream.gate.clear()
    grants = [await job.issue(f"w-{number}", **issued) for number in range(calls)]
    made = [asyncio.create_task(job.call(grant, BODY)) for grant in grants]
    await upstream.arrived.acquire()
    await job.lease.usage("t1")
    upstream.gate.set()
    return [(await call).status for call in made]


async def capped(gateway: Gateway, upstream: Upstream, http: aiohttp.ClientSession, home: Path, cap: Limits) -> Job:
    lease = await Lease.open(gateway.control)
    await lease.register(registration(home.name, home / "receipts", upstream, cap))
    return Job(lease, http, home / "receipts", home.name)


@pytest.mark.parametrize("number", [1, 7, CLIENTS - 1])
@pytest.mark.parametrize("scope", ["job", "trial"])
async def test_a_cap_of_so_many_calls_lets_exactly_so_many_out(
    gateway: Gateway, upstream: Upstream, http: aiohttp.ClientSession, tmp_path: Path, number: int, scope: str
) -> None:
    cap = Limits(calls=number)
    job = await capped(gateway, upstream, http, tmp_path, cap if scope == "job" else Limits())
    async with job.lease:
        told = await at_once(job, upstream, CLIENTS, **({"trial_limits": cap} if scope == "trial" else {}))
    assert (told.count(200), told.count(402)) == (number, CLIENTS - number)
    assert len(upstream.ledger) == number


async def test_a_cap_in_money_is_used_up_to_where_the_next_bound_does_not_fit_and_never_passed(
    gateway: Gateway, upstream: Upstream, http: aiohttp.ClientSession, tmp_path: Path
) -> None:
    cap = 3 * BOUND + 1
    job = await capped(gateway, upstream, http, tmp_path, Limits(usd_micros=cap))
    async with job.lease:
        told = await at_once(job, upstream, CLIENTS)
    fits = (cap - BOUND) // COST + 1
    assert told.count(200) == min(fits, CLIENTS)
    spent = sum(receipt["charged_usd_micros"] for receipt in job.receipts)
    assert spent == told.count(200) * COST <= cap


async def test_clients_that_leave_while_they_wait_for_room_leave_nothing_held(job: Job, upstream: Upstream) -> None:
    upstream.usage_of = small
    upstream.gate.clear()
    grant = await job.issue(limits=Limits(usd_micros=BOUND + COST))
    first = asyncio.create_task(job.call(grant, BODY))
    await upstream.arrived.acquire()
    waiting = [asyncio.create_task(job.call(grant, BODY)) for _ in range(20)]
    await job.lease.usage("t1")
    for call in waiting:
        call.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    upstream.gate.set()
    assert (await first).status == 200
    assert (await job.call(grant, BODY)).status == 200, "the cap has room for exactly this one"
    spent = [r["charged_usd_micros"] for r in job.receipts if r["outcome"] == "ok"]
    assert spent == [COST, COST]


@pytest.mark.parametrize(
    "usage",
    [
        {"input_tokens": -10, "output_tokens": 5},
        {"input_tokens": 10, "output_tokens": -5},
        {"input_tokens": 10, "output_tokens": 2**62},
        {"input_tokens": 2**63, "output_tokens": 5},
        {"input_tokens": 10, "output_tokens": 1e30},
        {"input_tokens": 10, "output_tokens": 5.5},
        {"input_tokens": 10, "output_tokens": "5"},
        {"input_tokens": True, "output_tokens": 5},
        {"input_tokens": 10, "output_tokens": 5, "cache_creation_input_tokens": 2**62},
        {"input_tokens": 10},
        [10, 5],
        "many",
        None,
    ],
    ids=str,
)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_report_that_makes_no_sense_is_unknown_and_charged_the_bound(
    job: Job, upstream: Upstream, usage: Any, stream: bool
) -> None:
    async def respond(request: web.Request) -> web.StreamResponse:
        if not stream:
            return web.json_response({"type": "message", "model": "m", "content": [], "usage": usage})
        told = usage if isinstance(usage, dict) else {}
        parts = streams.anthropic({"output_tokens": None, **told})
        return web.Response(body=b"".join(parts), content_type="text/event-stream")

    upstream.respond = respond
    grant = await job.issue(limits=Limits(usd_micros=10**6))
    body = BODY | ({"stream": True} if stream else {})
    assert (await job.call(grant, body)).status == 200
    (receipt,) = job.receipts
    size = len(json.dumps(body))
    bound = bound_usd_micros(PRICES["m"], prompt_tokens=size, output_tokens=50, for_an_hour=False)
    assert (receipt["cost_usd_micros"], receipt["charged_usd_micros"]) == (None, bound)
    assert receipt["charged_tokens"] == size + 50


async def test_a_report_that_is_nested_without_end_costs_no_receipt(job: Job, upstream: Upstream) -> None:
    deep = '{"usage": {"input_tokens": 10, "output_tokens": 5, "more": ' + "[" * 400 + "]" * 400 + "}}"

    async def respond(request: web.Request) -> web.StreamResponse:
        return web.Response(text=deep, content_type="application/json")

    upstream.respond = respond
    assert (await job.call(await job.issue(), BODY)).status == 200
    (receipt,) = job.receipts
    assert (receipt["outcome"], receipt["cost_usd_micros"]) == ("ok", COST)


async def test_an_upstream_that_uses_more_than_it_may_is_booked_as_it_says_and_told(
    job: Job, upstream: Upstream
) -> None:
    upstream.usage_of = lambda number, body: {"input_tokens": 10, "output_tokens": 5_000}
    said: list[str] = []
    job.lease.on_job = lambda notice: said.append(notice.reason)
    grant = await job.issue(limits=Limits(usd_micros=2 * BOUND))
    assert (await job.call(grant, BODY)).status == 200
    (receipt,) = job.receipts
    assert receipt["charged_usd_micros"] == receipt["cost_usd_micros"] == 10 * 3 + 5_000 * 15 > 2 * BOUND
    assert (await job.call(grant, BODY)).status == 402, "nothing goes out beyond the cap"
    assert f"endpoint anthropic reports 5010 tokens for a call that may use {SIZE + 50}: caps may be passed" in said


@pytest.mark.parametrize(
    ("path", "endpoint", "body"),
    [
        ("/v1/messages", "anthropic", BODY | {"max_tokens": 2**64 - 1}),
        ("/v1/messages", "anthropic", BODY | {"max_tokens": 10**12}),
        (CHAT, "openai", BODY | {"n": 10**9}),
        (CHAT, "openai", BODY | {"max_tokens": 10**9, "n": 10**9}),
        (CHAT, "openai", {"model": "m", "messages": TALK, "n": 2**63}),
        ("/v1/responses", "openai", {"model": "m", "input": TALK, "max_output_tokens": 2**63}),
    ],
)
async def test_who_asks_for_more_than_any_model_gives_is_refused_and_holds_nothing(
    job: Job, upstream: Upstream, path: str, endpoint: str, body: dict[str, Any]
) -> None:
    grant = await job.issue(endpoint=endpoint, trial_limits=Limits(calls=1))
    reply = await job.call(grant, body, path=path)
    assert (reply.status, reply.headers["x-buzzbench-error"]) == (400, "bad_request")
    assert upstream.ledger == []
    other = await job.issue("other", trial_limits=Limits(calls=1))
    async with asyncio.timeout(30):
        assert (await job.call(other, BODY)).status == 200, "the trial's one call is still there"


@pytest.mark.parametrize("key", ["Max_Tokens", "MODEL", "N", "Stream"])
async def test_a_field_that_only_some_servers_take_for_another_is_refused(
    job: Job, upstream: Upstream, key: str
) -> None:
    """Go's JSON looks at no case: such a server would take the last of the two."""
    reply = await job.call(await job.issue(endpoint="openai"), BODY | {key: 10_000}, path=CHAT)
    assert reply.status == 400
    assert reply.json["error"]["message"] == f"`{key}` is no field of a call: write `{key.lower()}`"
    assert upstream.ledger == []


async def test_what_a_client_makes_up_fills_no_journal(job: Job) -> None:
    grant = await job.issue()
    long = "x" * 1_000_000
    for body in (BODY | {"model": long}, BODY | {"max_tokens": long}, BODY | {"model": long, "max_tokens": None}):
        assert (await job.call(grant, body)).status in (400, 403)
    assert len(job.receipts) == 3
    assert job.receipts_path.stat().st_size < 10_000


@pytest.mark.parametrize("recorded", [False, True])
async def test_a_request_that_is_nested_without_end_holds_nothing(
    gateway: Gateway, upstream: Upstream, http: aiohttp.ClientSession, tmp_path: Path, recorded: bool
) -> None:
    cap = Limits(calls=1)
    wanted = registration(tmp_path.name, tmp_path / "r", upstream, cap)
    if recorded:
        wanted = replace(wanted, record=Recording(str(tmp_path / "tape"), "c", "0" * 64, None))
    async with await Lease.open(gateway.control) as lease:
        await lease.register(wanted)
        job = Job(lease, http, tmp_path / "r", tmp_path.name)
        deep = '{"model": "m", "max_tokens": 9, "messages": [], "odd": ' + "[" * 900 + "]" * 900 + "}"
        first = await job.call(await job.issue(), deep.encode())
        async with asyncio.timeout(30):
            second = await job.call(await job.issue("other"), BODY)
    assert (first.status, second.status) == ((400, 200) if recorded else (200, 402))
    assert [r["outcome"] for r in job.receipts] == (["refused", "ok"] if recorded else ["ok", "refused"])


async def test_a_cap_of_nothing_lets_out_what_costs_nothing_and_breaks_no_books(
    gateway: Gateway, upstream: Upstream, http: aiohttp.ClientSession, tmp_path: Path
) -> None:
    free = {"m": replace(PRICES["m"], input=0, cache_read=0, cache_write=0, output=0, cache_write_1h=0)}
    async with await Lease.open(gateway.control) as lease:
        await lease.register(replace(registration(tmp_path.name, tmp_path / "r", upstream), prices=free))
        job = Job(lease, http, tmp_path / "r", tmp_path.name)
        grant = await job.issue(limits=Limits(usd_micros=0))
        assert [(await job.call(grant, BODY)).status for _ in range(2)] == [200, 200]


@pytest.mark.parametrize("again", [{"input_tokens": 1, "output_tokens": 1}, {}, None])
async def test_of_two_reports_in_one_stream_the_last_that_says_something_counts(
    job: Job, upstream: Upstream, again: Any
) -> None:
    delta = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}}
    started = {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 10, "output_tokens": 1}}}
    parts = [started, delta, {**delta, "usage": again}, {"type": "message_stop"}]

    async def respond(request: web.Request) -> web.StreamResponse:
        body = b"".join(streams.event(part, str(part["type"])) for part in parts)
        return web.Response(body=body, content_type="text/event-stream")

    upstream.respond = respond
    assert (await job.call(await job.issue(), BODY | {"stream": True})).status == 200
    (receipt,) = job.receipts
    expected = 1 * 3 + 1 * 15 if again else 10 * 3 + 7 * 15
    assert (receipt["outcome"], receipt["charged_usd_micros"]) == ("ok", expected)


@pytest.mark.parametrize(
    ("path", "endpoint", "more"),
    [
        (CHAT, "openai", {"service_tier": "priority"}),
        ("/v1/responses", "openai", {"service_tier": "priority"}),
        ("/v1/messages", "anthropic", {"speed": "fast"}),
        ("/v1/messages", "anthropic", {"inference_geo": "us"}),
    ],
)
async def test_a_service_that_costs_more_than_the_price_says_is_refused_under_a_cap(
    job: Job, upstream: Upstream, path: str, endpoint: str, more: dict[str, str]
) -> None:
    talk = {"input": TALK, "max_output_tokens": 50} if path.endswith("responses") else BODY
    body = {"model": "m", **talk, **more}
    reply = await job.call(await job.issue(endpoint=endpoint, limits=Limits(usd_micros=10**6)), body, path=path)
    (name,) = more
    assert (reply.status, reply.json["error"]["message"]) == (
        400,
        f"a budget holds for this call, so leave out `{name}`",
    )
    assert upstream.ledger == []


async def test_a_request_that_breaks_what_answers_it_is_booked_and_its_room_is_free_again(
    gateway: Gateway, upstream: Upstream, http: aiohttp.ClientSession, tmp_path: Path
) -> None:
    """A scripted model writes down what it is shown, and can't write that: whatever the fault, the books go on."""
    async with await Lease.open(gateway.control) as lease:
        await lease.register(registration(tmp_path.name, tmp_path / "r", upstream, Limits(calls=2)))
        job = Job(lease, http, tmp_path / "r", tmp_path.name)
        grant = await job.issue(endpoint="scripted", script=SCRIPT, context=CONTEXT)
        odd = BODY | {"messages": [{"role": "user", "content": [json.loads("[" * 300 + "]" * 300)]}]}
        reply = await job.call(grant, odd)
        assert (reply.status, reply.headers["x-buzzbench-error"]) == (500, "fault")
        assert reply.json["error"]["message"] == "a fault of the gateway: TypeError; its log says more"
        assert (await job.call(await job.issue("other"), BODY)).status == 200
    told = [(r["outcome"], r["reason"]) for r in job.receipts]
    assert told == [("unknown", "a fault of the gateway: TypeError"), ("ok", None)]
    assert job.receipts[0]["charged_tokens"] > 50


async def test_after_a_kill_amid_many_calls_the_account_goes_on_to_the_micro_dollar(
    short_home: Path, upstream: Upstream, http: aiohttp.ClientSession, tmp_path: Path
) -> None:
    """Half of the calls have ended, half are under way when the gateway is killed; the job goes on with another."""
    upstream.usage_of = small
    receipts = tmp_path / "receipts"
    gateway = start_gateway(short_home)
    async with await Lease.open(gateway.control) as lease:
        await lease.register(registration("killed", receipts, upstream))
        job = Job(lease, http, receipts, "killed")
        ended = [await job.call(await job.issue(f"w-{number}"), BODY) for number in range(8)]
        assert {reply.status for reply in ended} == {200}
        upstream.gate.clear()
        for _ in range(8):
            await upstream.arrived.acquire()
        cut = [asyncio.create_task(job.call(job.tokens[f"w-{number}"], BODY)) for number in range(8)]
        for _ in cut:
            await upstream.arrived.acquire()
        gateway.process.kill()
        await asyncio.to_thread(gateway.process.wait)
        await asyncio.gather(*cut, return_exceptions=True)
    upstream.gate.set()
    spent = 8 * COST + 8 * BOUND
    assert sum(receipt["charged_usd_micros"] for receipt in job.receipts) == spent
    for short, statuses in ((1, [402]), (0, [200, 402])):
        gateway = start_gateway(short_home)
        async with await Lease.open(gateway.control) as lease:
            await lease.register(registration("killed", receipts, upstream, Limits(usd_micros=spent + BOUND - short)))
            job = Job(lease, http, receipts, "killed")
            replies = [await job.call(await job.issue("w-0"), BODY) for _ in statuses]
        gateway.stop()
        assert [reply.status for reply in replies] == statuses
    assert sum(receipt["charged_usd_micros"] for receipt in job.receipts) == spent + COST
    message = replies[-1].json["error"]["message"]
    assert f"{usd(spent + COST)} spent, 0.00 USD reserved" in message
