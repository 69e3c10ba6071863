"""The gateway's HTTP side: paths, tokens, and errors in the form of each dialect."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import math
from collections.abc import Mapping
from typing import Any

import aiohttp
from aiohttp import web

from bench.gateway import allowed, booking, calls
from bench.gateway.booking import Call
from bench.gateway.dialects import WIRES, BadRequest, Request, Wire, read_request
from bench.gateway.jobs import Principal, Registry
from bench.gateway.refusals import Refused
from bench.gateway.sink import ClientGone
from bench.gateway.upstream import Outgoing

LARGEST_BODY_BYTES = 32 * 1024 * 1024
ERROR_HEADER = "x-buzzbench-error"
"""Tells an error of the gateway from one of the upstream; its value is the kind."""

NO_RETRY = {"x-should-retry": "false"}
"""Asks Anthropic's and OpenAI's clients not to make the call again: the gateway has done what is sensible."""


LAST_WORDS_S = 1.0
"""How long a client that reads nothing keeps us from breaking off."""


WIRE_AT: Mapping[str, Wire] = {path: wire for wire in WIRES.values() for path in (f"/v1{wire.path}", wire.path)}
"""The dialect that is spoken at each path."""


def server(registry: Registry, client: aiohttp.ClientSession) -> web.Server:
    """The gateway's paths: each dialect's, with and without `/v1`, and `/healthz`.

    It has no use for aiohttp's applications, whose routing and signals cost each call a tenth of its time.
    """

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        wire = WIRE_AT.get(request.path) if request.method == "POST" else None
        if wire is None:
            return _healthy() if (request.method, request.path) == ("GET", "/healthz") else _nowhere(request)
        receiver = Receiver(request)
        try:
            return await _call(registry, client, wire, request, receiver)
        except Refused as refused:
            if not receiver.has_begun:
                return _error(wire, refused)
            return await receiver.break_off(b"")

    return web.Server(answer, request_factory=_request, access_log=None)


def _request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=LARGEST_BODY_BYTES)


def _healthy() -> web.Response:
    return web.json_response({"ok": True})


def _nowhere(request: web.BaseRequest) -> web.Response:
    served = ", ".join(f"POST /v1{wire.path}" for wire in WIRES.values())
    wire = WIRES["anthropic" if "anthropic-version" in request.headers else "openai"]
    return _error(wire, Refused(404, "not_found", f"there is no {request.method} {request.path} here, only {served}"))


class Receiver:
    """The client of one call: a Sink over its connection."""

    def __init__(self, request: web.BaseRequest) -> None:
        self._request = request
        self._response: web.StreamResponse  # there is none before `begin`
        self.has_begun = False

    @property
    def is_gone(self) -> bool:
        return self._request.transport is None

    async def begin(self, status: int, headers: Mapping[str, str]) -> None:
        self._response = web.StreamResponse(status=status, headers=headers)
        self.has_begun = True
        try:
            await self._response.prepare(self._request)
        except ConnectionError as error:
            raise ClientGone from error

    async def write(self, data: bytes) -> None:
        try:
            await self._response.write(data)
        except ConnectionError as error:
            raise ClientGone from error

    def end(self) -> web.StreamResponse:
        """The answer is whole."""
        return self._response

    async def break_off(self, last_words: bytes) -> web.StreamResponse:
        """Close the connection so that nobody takes the answer for whole; the client may read what went wrong."""
        with contextlib.suppress(ClientGone, TimeoutError):
            async with asyncio.timeout(LAST_WORDS_S):
                await self.write(last_words)
        if self._request.transport is not None:
            self._request.transport.close()
        return self._response


async def _call(
    registry: Registry, client: aiohttp.ClientSession, wire: Wire, request: web.BaseRequest, receiver: Receiver
) -> web.StreamResponse:
    principal = _principal(registry, request)
    call = Call(principal, wire)
    try:
        body = await _body(request)
        call.request_sha256 = hashlib.sha256(body).hexdigest()
        allowed.check_alive(principal)
        parsed = call.request = _read(wire, body)
        allowed.check(principal, wire, parsed)
    except Refused as refused:
        booking.refuse(call, refused)
        raise
    outgoing = Outgoing(request.headers, request.query_string, body)
    ended = await calls.make(call, parsed, outgoing, client, receiver)
    if ended.streamed:
        if ended.refused is None:
            return receiver.end()
        words = wire.error_event(ended.refused.status, ended.refused.kind, str(ended.refused))
        return await receiver.break_off(words if ended.is_between_events else b"")
    if ended.refused is not None:
        raise ended.refused
    assert ended.answer is not None
    headers = ended.answer.headers
    if ended.trouble is not None:
        headers.extend(NO_RETRY)
    return web.Response(status=ended.status, headers=headers, body=ended.answer.body)


def _principal(registry: Registry, request: web.BaseRequest) -> Principal:
    principal = registry.find(_token(request))
    if principal is None:
        registry.strangers += 1
        raise Refused(
            401, "unauthorized", "this gateway knows no such token: it was never issued, or its job has ended"
        )
    return principal


def _token(request: web.BaseRequest) -> str:
    """The token of a request: `x-api-key` or `Authorization: Bearer`, whatever the dialect."""
    scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
    return request.headers.get("x-api-key") or (bearer.strip() if scheme.lower() == "bearer" else "")


async def _body(request: web.BaseRequest) -> bytes:
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge as error:
        raise Refused(413, "too_large", f"the body is over {LARGEST_BODY_BYTES // 1024 // 1024} MB") from error


def _read(wire: Wire, body: bytes) -> Request:
    try:
        return read_request(wire, body)
    except BadRequest as error:
        raise Refused(400, "bad_request", str(error)) from error


def _error(wire: Wire, refused: Refused) -> web.Response:
    headers = {ERROR_HEADER: refused.kind, **NO_RETRY}
    if refused.retry_after_s is not None:
        headers["retry-after"] = str(math.ceil(refused.retry_after_s))
    body = wire.error(refused.status, refused.kind, str(refused))
    return web.json_response(body, status=refused.status, headers=headers)
