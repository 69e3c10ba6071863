"""An upstream that bills and breaks: it answers, fails or breaks off, and its ledger knows what it billed each call."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson
from aiohttp import web

from bench.prices import Tokens
from tests.gateway import streams
from tests.gateway.upstream import KEY, sha256

type Fate = Literal["whole", "broken off", "cut short", "failed"]

WHOLE: Fate = "whole"
DECK: tuple[Fate, ...] = (*[WHOLE] * 12, "broken off", "cut short", "failed")
"""Fates are dealt, so that a short run has all of them."""

LONGEST_THOUGHT_S = 0.02
LONGEST_PAUSE_S = 0.004


@dataclass(frozen=True)
class Billed:
    """One call in the upstream's ledger. A failed one costs nothing."""

    fate: Fate
    tokens: Tokens


@dataclass
class Unruly:
    """The running upstream. `ledger` is by the digest of a request's body; no two are alike."""

    chance: random.Random
    url: str = ""
    ledger: dict[str, Billed] = field(default_factory=dict)
    _fates: list[Fate] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """One call. What it used is never more than it asked for."""
        body = await request.read()
        assert KEY in (request.headers.get("x-api-key") or request.headers["authorization"])
        wanted = orjson.loads(body)
        fate = self._fate()
        tokens = self._tokens(len(body), wanted) if fate != "failed" else Tokens(0, 0, 0, 0)
        digest = sha256(body)
        assert digest not in self.ledger, "a call was made twice"
        self.ledger[digest] = Billed(fate, tokens)
        await asyncio.sleep(self.chance.uniform(0, LONGEST_THOUGHT_S))
        if fate == "failed":
            return web.json_response({"error": {"message": "overloaded"}}, status=500)
        if wanted.get("stream"):
            return await self._stream(request, fate, tokens)
        data = orjson.dumps(_answer(request.path, tokens))
        if fate == "whole":
            return web.Response(body=data, content_type="application/json")
        if fate == "cut short":
            response = web.StreamResponse(headers={"content-length": str(len(data))})
            await response.prepare(request)
            await response.write(data[: len(data) // 2])
        if request.transport is not None:
            request.transport.abort()
        return web.Response()

    async def _stream(self, request: web.Request, fate: Fate, tokens: Tokens) -> web.StreamResponse:
        """An answer in events, with pauses; one that is cut short ends after any of them, or within one."""
        usage = _usage(request.path, tokens)
        events = streams.anthropic(usage) if request.path.endswith("/messages") else streams.chat(usage)
        data = b"".join(events)
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        try:
            if fate != "broken off":
                await response.prepare(request)
            if fate == "whole":
                for event in events:
                    await response.write(event)
                    await asyncio.sleep(self.chance.uniform(0, LONGEST_PAUSE_S))
                return response
            if fate == "cut short":
                await response.write(data[: self.chance.randint(1, len(data) - 1)])
        except ConnectionError:
            return response
        if request.transport is not None:
            request.transport.close()
        return response

    def _fate(self) -> Fate:
        if not self._fates:
            self._fates = self.chance.sample(DECK, len(DECK))
        return self._fates.pop()

    def _tokens(self, size_bytes: int, wanted: dict[str, Any]) -> Tokens:
        prompt, chance = self.chance.randint(1, size_bytes), self.chance
        read = chance.randint(0, prompt)
        write = chance.randint(0, prompt - read) if "max_tokens" in wanted else 0
        most = wanted.get("max_tokens") or wanted["max_completion_tokens"]
        hour = chance.randint(0, write) if "cache_control" in wanted else 0
        return Tokens(prompt - read - write, read, write, chance.randint(0, most), hour)


def _answer(path: str, tokens: Tokens) -> dict[str, Any]:
    usage = _usage(path, tokens)
    if path.endswith("/messages"):
        return {"type": "message", "content": [{"type": "text", "text": "yes"}], "usage": usage}
    return {"choices": [{"message": {"role": "assistant", "content": "yes"}}], "usage": usage}


def _usage(path: str, tokens: Tokens) -> dict[str, Any]:
    fresh, read, write, output = (number or 0 for number in tokens.classes)
    if path.endswith("/messages"):
        return {
            "input_tokens": fresh,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": write,
            "output_tokens": output,
            "cache_creation": {
                "ephemeral_5m_input_tokens": write - tokens.cache_write_1h,
                "ephemeral_1h_input_tokens": tokens.cache_write_1h,
            },
        }
    return {
        "prompt_tokens": fresh + read,
        "completion_tokens": output,
        "prompt_tokens_details": {"cached_tokens": read},
    }


@asynccontextmanager
async def running(chance: random.Random) -> AsyncIterator[Unruly]:
    """The upstream on a free port of the loopback. When this ends, no call is under way at it."""
    upstream = Unruly(chance)
    app = web.Application()
    app.router.add_post("/v1/messages", upstream.handle)
    app.router.add_post("/v1/chat/completions", upstream.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=5)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    upstream.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield upstream
    finally:
        await runner.cleanup()
