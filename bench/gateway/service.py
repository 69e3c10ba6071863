"""The gateway's HTTP side: paths, tokens, and errors in the form of each dialect."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import aiohttp
from aiohttp import web

from bench.gateway import calls, upstream
from bench.gateway.calls import Call, Refused
from bench.gateway.dialects import WIRES, BadRequest, Request, Wire, read_request
from bench.gateway.jobs import Principal, Registry

LARGEST_BODY_BYTES = 32 * 1024 * 1024
ERROR_HEADER = "x-buzzbench-error"
"""Tells an error of the gateway from one of the upstream; its value is the kind."""


def application(registry: Registry) -> web.Application:
    """The gateway's paths: both dialects, with and without `/v1`, and `/healthz`."""
    app = web.Application(client_max_size=LARGEST_BODY_BYTES)
    client = web.AppKey("client", aiohttp.ClientSession)

    async def sessions(app: web.Application) -> AsyncIterator[None]:
        app[client] = upstream.session()
        yield
        await app[client].close()

    def route(wire: Wire) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def answer(request: web.Request) -> web.Response:
            try:
                return await _call(registry, app[client], wire, request)
            except Refused as refused:
                return _error(wire, refused)

        return answer

    app.cleanup_ctx.append(sessions)
    app.router.add_get("/healthz", _healthy)
    for wire in WIRES.values():
        for path in (f"/v1{wire.path}", wire.path):
            app.router.add_post(path, route(wire))
    return app


async def _healthy(request: web.Request) -> web.Response:
    return web.json_response({"ok": True})


async def _call(registry: Registry, client: aiohttp.ClientSession, wire: Wire, request: web.Request) -> web.Response:
    call = Call(_principal(registry, request), wire)
    try:
        body = await _body(request)
        call.took(body)
        calls.check_alive(call)
        parsed = call.request = _read(wire, body)
        calls.check(call, parsed)
        reservation = await calls.reserve(call, parsed)
    except Refused as refused:
        await calls.refuse(call, refused)
        raise
    answer = await calls.make(call, parsed, reservation, client, request.headers, request.query_string, body)
    return web.Response(status=answer.status, headers=answer.headers, body=answer.body)


def _principal(registry: Registry, request: web.Request) -> Principal:
    principal = registry.find(_token(request))
    if principal is None:
        registry.strangers += 1
        raise Refused(
            401, "unauthorized", "this gateway knows no such token: it was never issued, or its job has ended"
        )
    return principal


def _token(request: web.Request) -> str:
    """The token of a request: `x-api-key` or `Authorization: Bearer`, whatever the dialect."""
    scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
    return request.headers.get("x-api-key") or (bearer.strip() if scheme.lower() == "bearer" else "")


async def _body(request: web.Request) -> bytes:
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
    return web.json_response(
        wire.error(refused.status, refused.kind, str(refused)),
        status=refused.status,
        headers={ERROR_HEADER: refused.kind},
    )
