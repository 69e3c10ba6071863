"""Streamed answers through the gateway: passed on at once, metered as they pass, booked however they end."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from bench.condition import Limits
from bench.gateway.protocol import Grant
from tests.gateway.conftest import Job
from tests.gateway.streams import anthropic, chat, event
from tests.gateway.upstream import Upstream, sha256

TALK = [{"role": "user", "content": "hi"}]
MESSAGES = ("/v1/messages", {"model": "m", "max_tokens": 50, "messages": TALK, "stream": True})
CHAT = ("/v1/chat/completions", {"model": "m", "max_completion_tokens": 50, "messages": TALK, "stream": True})
RESPONSES = ("/v1/responses", {"model": "m", "max_output_tokens": 50, "input": TALK, "stream": True})
ASKED = {"stream_options": {"include_usage": True}}


def endpoint_of(path: str) -> dict[str, str]:
    return {"endpoint": "anthropic" if path.endswith("/messages") else "openai"}


@asynccontextmanager
async def streaming(job: Job, grant: Grant, path: str, body: dict[str, Any]) -> AsyncIterator[aiohttp.ClientResponse]:
    """A streamed call under way."""
    headers = {"authorization": f"Bearer {grant.token}", "content-type": "application/json"}
    data = io.BytesIO(json.dumps(body).encode())
    async with job.http.post(grant.base_url + path, data=data, headers=headers) as response:
        yield response


@pytest.mark.parametrize(("path", "body"), [MESSAGES, (CHAT[0], CHAT[1] | ASKED), RESPONSES])
async def test_a_stream_passes_byte_for_byte_and_is_booked_like_the_ledger(
    job: Job, upstream: Upstream, path: str, body: dict[str, Any]
) -> None:
    grant = await job.issue(**endpoint_of(path))
    reply = await job.call(grant, body, path=path)
    (entry,), (receipt,) = upstream.ledger, job.receipts
    assert (reply.status, reply.data) == (200, entry.response)
    assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert reply.headers["request-id"] == "req_1"
    assert entry.body == json.dumps(body).encode()
    assert (receipt["outcome"], receipt["streamed"], receipt["usage"]) == ("ok", True, receipt["usage"] | entry.usage)
    told = (
        receipt["input_tokens"],
        receipt["cache_read_tokens"],
        receipt["cache_write_tokens"],
        receipt["output_tokens"],
    )
    assert told == ((11, 100, 1, 6) if path == MESSAGES[0] else (103 - 91, 91, 0, 8))
    assert receipt["charged_usd_micros"] == receipt["cost_usd_micros"] > 0
    assert (receipt["response_sha256"], receipt["request_sha256"]) == (sha256(entry.response), sha256(entry.body))
    assert (receipt["served_model"], receipt["tool_calls"]) == ("m", 1)
    assert 0 <= receipt["queue_ms"] <= receipt["first_byte_ms"] <= receipt["total_ms"]


@pytest.mark.parametrize(("path", "body"), [MESSAGES, CHAT, RESPONSES])
async def test_every_event_is_with_the_client_before_the_next_is_sent(
    job: Job, upstream: Upstream, path: str, body: dict[str, Any]
) -> None:
    go = asyncio.Semaphore(0)

    async def before(number: int) -> None:
        await go.acquire()

    upstream.before = before
    grant, read = await job.issue(**endpoint_of(path)), b""
    async with streaming(job, grant, path, body) as response:
        for number in range(3):  # the shortest of the streams has one more
            go.release()
            while read.count(b"\n\n") <= number:
                read += await response.content.readany()
        assert {receipt["outcome"] for receipt in job.receipts} <= {"open"}
        for _ in range(9):
            go.release()
        await response.read()
    assert [receipt["outcome"] for receipt in job.receipts] == ["ok"]


async def test_a_stream_of_chat_completions_reports_its_usage_though_the_client_did_not_ask(
    job: Job, upstream: Upstream
) -> None:
    path, body = CHAT
    reply = await job.call(await job.issue(endpoint="openai"), body, path=path)
    (entry,), (receipt,) = upstream.ledger, job.receipts
    assert entry.body == b'{"stream_options":{"include_usage":true},' + json.dumps(body).encode()[1:]
    assert reply.data == entry.response.replace(event({**_chunk(), "choices": [], "usage": entry.usage}), b"")
    assert b'"usage":{' not in reply.data
    assert (receipt["output_tokens"], receipt["request_sha256"]) == (8, sha256(json.dumps(body).encode()))


def _chunk() -> dict[str, Any]:
    return {"object": "chat.completion.chunk", "model": "m"}


async def test_a_server_that_reports_nothing_leaves_the_call_charged_at_its_bound(job: Job, upstream: Upstream) -> None:
    async def respond(request: web.Request) -> web.Response:
        return web.Response(body=b"".join(chat(None)), content_type="text/event-stream")

    upstream.respond = respond
    path, body = CHAT
    await job.call(await job.issue(endpoint="openai"), body, path=path)
    (receipt,) = job.receipts
    assert (receipt["outcome"], receipt["cost_usd_micros"], receipt["input_tokens"]) == ("ok", None, None)
    assert receipt["charged_usd_micros"] > 50 * 15


@pytest.mark.parametrize(("path", "body"), [MESSAGES, CHAT, RESPONSES])
async def test_a_client_that_leaves_ends_the_upstreams_work_and_pays_its_bound(
    job: Job, upstream: Upstream, path: str, body: dict[str, Any]
) -> None:
    async def respond(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        usage = {"input_tokens": 11, "cache_read_input_tokens": 100, "output_tokens": 6}
        await response.write(anthropic(usage)[0] if path == MESSAGES[0] else event({"model": "m"}))
        try:
            while True:
                await response.write(b": ping\n\n")
                await asyncio.sleep(0)
        except ConnectionError:
            upstream.left.release()
        return response

    upstream.respond = respond
    grant = await job.issue(**endpoint_of(path), limits=Limits(usd_micros=1_000_000))
    async with streaming(job, grant, path, body) as response:
        await response.content.readany()
    await upstream.left.acquire()
    # The receipt is on disk when the agent's end is told.
    usage = (await job.lease.revoke("t1"))["worker-1"]
    (receipt,) = job.receipts
    assert (receipt["outcome"], receipt["status"]) == ("unknown", 200)
    assert receipt["reason"] == "the client left before the stream's end"
    assert (receipt["output_tokens"], receipt["cost_usd_micros"]) == (None, None)
    assert receipt["input_tokens"] == (11 if path == MESSAGES[0] else None)
    assert receipt["charged_usd_micros"] >= 50 * 15 + 100
    assert (usage.calls, usage.unknown_calls) == (1, 1)


async def raw(grant: Grant, path: str, body: dict[str, Any]) -> bytes:
    """All that a call gets, to the end of the connection."""
    host, _, port = grant.base_url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\nx-api-key: {grant.token}\r\ncontent-length: {len(data)}\r\n\r\n"
    writer.write(head.encode() + data)
    got = await reader.read()
    writer.close()
    return got


@pytest.mark.parametrize(("path", "body"), [MESSAGES, CHAT, RESPONSES])
async def test_an_upstream_that_breaks_off_is_told_in_the_stream_and_the_stream_does_not_look_whole(
    job: Job, upstream: Upstream, path: str, body: dict[str, Any]
) -> None:
    async def respond(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(event({"model": "m"}))
        assert request.transport is not None
        request.transport.close()
        return response

    upstream.respond = respond
    got = await raw(await job.issue(**endpoint_of(path)), path, body)
    assert not got.endswith(b"0\r\n\r\n")
    first, last = [line for line in got.split(b"\n") if line.startswith(b"data: ")]
    assert first == b'data: {"model":"m"}'
    told = json.loads(last.removeprefix(b"data: "))
    assert "127.0.0.1 broke off" in (told.get("error") or told)["message"]
    (receipt,) = job.receipts
    assert (receipt["outcome"], receipt["cost_usd_micros"], receipt["retry"]) == ("unknown", None, 0)
    assert receipt["charged_usd_micros"] > 50 * 15


async def test_after_half_an_event_nothing_of_ours_is_put_into_the_stream(job: Job, upstream: Upstream) -> None:
    async def respond(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b'data: {"ty')
        assert request.transport is not None
        request.transport.close()
        return response

    upstream.respond = respond
    got = await raw(await job.issue(), *MESSAGES)
    assert got.endswith(b'data: {"ty\r\n')


async def test_a_stream_that_ends_early_without_a_word_is_unknown(job: Job, upstream: Upstream) -> None:
    async def respond(request: web.Request) -> web.Response:
        return web.Response(body=event({"model": "m"}), content_type="text/event-stream")

    upstream.respond = respond
    reply = await job.call(await job.issue(), MESSAGES[1])
    assert reply.data == event({"model": "m"})
    (receipt,) = job.receipts
    assert (receipt["outcome"], receipt["reason"]) == ("unknown", "the stream ended before its last event")


async def test_an_error_in_a_stream_passes_and_is_booked_as_one(job: Job, upstream: Upstream) -> None:
    told = event({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "error")

    async def respond(request: web.Request) -> web.Response:
        return web.Response(body=event({"model": "m"}) + told, content_type="text/event-stream")

    upstream.respond = respond
    async with job.lease.notices("t1") as notices:
        reply = await job.call(await job.issue(), MESSAGES[1])
        notice = await anext(notices)
    assert reply.data.endswith(told)
    (receipt,) = job.receipts
    assert (receipt["outcome"], receipt["reason"]) == ("error", "the stream reported an error")
    assert receipt["charged_usd_micros"] > 50 * 15
    assert (notice.kind, notice.reason) == (
        "upstream_failed",
        "endpoint anthropic failed (the stream reported an error)",
    )


async def test_an_error_status_of_a_streamed_call_has_its_body(job: Job, upstream: Upstream) -> None:
    async def respond(request: web.Request) -> web.Response:
        return web.json_response({"theirs": 1}, status=400)

    upstream.respond = respond
    reply = await job.call(await job.issue(), MESSAGES[1])
    assert (reply.status, reply.json) == (400, {"theirs": 1})
    assert (job.receipts[0]["outcome"], job.receipts[0]["streamed"]) == ("error", False)


async def test_a_stream_under_way_is_cut_when_its_token_dies(job: Job, upstream: Upstream) -> None:
    held = asyncio.Semaphore(0)

    async def before(number: int) -> None:
        if number == 3:
            held.release()
            await asyncio.Event().wait()

    upstream.before = before
    call = asyncio.create_task(raw(await job.issue(), *MESSAGES))
    await upstream.arrived.acquire()
    await held.acquire()
    usage = await job.lease.revoke("t1")
    got = await call
    assert usage["worker-1"].unknown_calls == 1
    assert b"the token died during the call; it was cut" in got
    assert not got.endswith(b"0\r\n\r\n")
    (receipt,) = job.receipts
    assert (receipt["outcome"], receipt["reason"]) == ("unknown", "the token died during the call")


async def test_many_streams_at_once_are_booked_exactly(job: Job, upstream: Upstream) -> None:
    calls = [MESSAGES, CHAT, RESPONSES] * 8
    grants = [await job.issue(f"worker-{number}", **endpoint_of(path)) for number, (path, _) in enumerate(calls)]
    replies = await asyncio.gather(
        *(job.call(grant, body, path=path) for grant, (path, body) in zip(grants, calls, strict=True))
    )
    assert {reply.status for reply in replies} == {200}
    booked = {receipt["response_sha256"]: receipt for receipt in job.receipts}
    assert len(booked) == len(upstream.ledger) == 24
    for entry in upstream.ledger:
        assert booked[sha256(entry.response)]["usage"].items() >= entry.usage.items()
