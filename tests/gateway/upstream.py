"""A provider's API for tests, at the wire: it demands a key, answers in every dialect and keeps its own ledger."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web

from tests.gateway import streams

KEY = "sk-canary-5f0c1d7e9b"


@dataclass
class Entry:
    """What the upstream did for one call."""

    body: bytes
    headers: dict[str, str]
    path: str
    usage: dict[str, Any]
    response: bytes = b""
    is_whole: bool = False
    """Whether its client took all of the answer."""


@dataclass
class Upstream:
    """The running stand-in. Tests may replace `usage_of` and `respond`, and hold calls back with `gate`.

    `before` is awaited before each event of a stream, with its number; `left` counts streams whose client left.
    """

    url: str = ""
    ledger: list[Entry] = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    arrived: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    respond: Callable[[web.Request], Awaitable[web.StreamResponse]] | None = None
    usage_of: Callable[[int, dict[str, Any]], Any] | None = None
    answer: Callable[[web.Request], Awaitable[web.StreamResponse]] = field(init=False)
    """Its usual answer, which `respond` may fall back to."""
    before: Callable[[int], Awaitable[None]] | None = None
    left: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))

    @property
    def openai_url(self) -> str:
        """The base as clients of OpenAI take it."""
        return f"{self.url}/v1"


@asynccontextmanager
async def running() -> AsyncIterator[Upstream]:
    """The stand-in on a free port of the loopback."""
    upstream = Upstream()
    upstream.gate.set()
    numbers = itertools.count(1)

    async def answer(request: web.Request) -> web.StreamResponse:
        await request.read()
        upstream.arrived.release()
        await upstream.gate.wait()
        if upstream.respond is not None:
            return await upstream.respond(request)
        return await usual(request)

    async def usual(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        anthropic = request.path.endswith("/messages")
        given = request.headers.get("x-api-key") if anthropic else request.headers.get("authorization")
        if given != (KEY if anthropic else f"Bearer {KEY}"):
            return web.json_response({"error": {"type": "authentication_error", "message": "bad key"}}, status=401)
        parsed = orjson.loads(body)
        usage = _usage(upstream, next(numbers), request.path, parsed)
        entry = Entry(body, {k.lower(): v for k, v in request.headers.items()}, request.path_qs, usage)
        upstream.ledger.append(entry)
        if parsed.get("stream"):
            return await _stream(upstream, request, entry, _events(request.path, parsed, usage))
        entry.response = orjson.dumps(_response(request.path, parsed, usage), option=orjson.OPT_INDENT_2)
        return web.Response(body=entry.response, content_type="application/json", headers={"request-id": "req_1"})

    upstream.answer = usual
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_post("/v1/messages", answer)
    app.router.add_post("/v1/chat/completions", answer)
    app.router.add_post("/v1/responses", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    upstream.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield upstream
    finally:
        upstream.gate.set()
        await runner.cleanup()


def sha256(data: bytes) -> str:
    """The digest that receipts hold."""
    return hashlib.sha256(data).hexdigest()


async def _stream(upstream: Upstream, request: web.Request, entry: Entry, events: list[bytes]) -> web.StreamResponse:
    entry.response = b"".join(events)
    response = web.StreamResponse(headers={"content-type": "text/event-stream; charset=utf-8", "request-id": "req_1"})
    await response.prepare(request)
    try:
        for number, event in enumerate(events):
            if upstream.before is not None:
                await upstream.before(number)
            await response.write(event)
        await response.write_eof()
        entry.is_whole = True
    except ConnectionError:
        upstream.left.release()
    return response


def _events(path: str, body: dict[str, Any], usage: Any) -> list[bytes]:
    if path.endswith("/messages"):
        return streams.anthropic(usage, model=body["model"])
    if path.endswith("/responses"):
        return streams.responses(usage, model=body["model"])
    asked = (body.get("stream_options") or {}).get("include_usage")
    return streams.chat(usage if asked else None, model=body["model"])


def _usage(upstream: Upstream, number: int, path: str, body: dict[str, Any]) -> Any:
    if upstream.usage_of is not None:
        return upstream.usage_of(number, body)
    if path.endswith("/messages"):
        return {
            "input_tokens": 10 + number,
            "cache_read_input_tokens": 100 * number,
            "cache_creation_input_tokens": number % 3,
            "output_tokens": 5 + number,
        }
    prompt, answer = ("input", "output") if path.endswith("/responses") else ("prompt", "completion")
    return {
        f"{prompt}_tokens": 100 + 3 * number,
        f"{answer}_tokens": 7 + number,
        f"{prompt}_tokens_details": {"cached_tokens": 90 + number},
    }


def _response(path: str, body: dict[str, Any], usage: Any) -> dict[str, Any]:
    told = {"usage": usage} if usage is not None else {}
    if path.endswith("/responses"):
        return {"object": "response", "model": body["model"], "output": [{"type": "message"}], **told}
    if path.endswith("/messages"):
        content = [{"type": "text", "text": "hé"}]
        return {"type": "message", "role": "assistant", "model": body["model"], "content": content, **told}
    return {"object": "chat.completion", "choices": [{"message": {"role": "assistant", "content": "hé"}}], **told}
