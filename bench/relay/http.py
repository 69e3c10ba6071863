"""The HTTP edge: the bridge (/events, /query, /count), NIP-11 and health (BUZZ.md section 1)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from aiohttp import web

from bench.relay.access import UNKNOWN_HOST
from bench.relay.ingest import Answer
from bench.relay.protocol import (
    MAX_BODY_BYTES,
    MAX_FILTERS,
    MAX_FRAME_BYTES,
    MAX_STORED_EVENTS,
    MAX_SUBSCRIPTION_NAME,
    MAX_SUBSCRIPTIONS,
    Filter,
    Refused,
    decode,
    parse_event,
    parse_query,
)
from bench.relay.relay import Relay, check_gates
from bench.relay.socket import UNAVAILABLE, Session
from bench.relay.store import Unavailable

RELAY = web.AppKey("relay", Relay)

type Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def application(relay: Relay) -> web.Application:
    """The relay's routes."""
    app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=[_explain])
    app[RELAY] = relay
    app.router.add_get("/", _root)
    app.router.add_get("/info", _info)
    app.router.add_get("/_readiness", _readiness)
    app.router.add_get("/_liveness", _liveness)
    app.router.add_get("/health", _health)
    app.router.add_post("/events", _events)
    app.router.add_post("/query", _query)
    app.router.add_post("/count", _count)
    return app


def _json(value: Any, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(value), status=status, content_type="application/json")


@web.middleware
async def _explain(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Every error as {"error": …}, with the membership error in the form that clients know."""
    try:
        return await handler(request)
    except Refused as refusal:
        if refusal.text == "restricted: not a relay member":
            text = "You must be a relay member to access this relay"
            return _json({"error": "relay_membership_required", "message": text}, 403)
        return _json({"error": refusal.text}, refusal.status)
    except web.HTTPRequestEntityTooLarge:
        return _json({"error": f"the body exceeds {MAX_BODY_BYTES} bytes"}, 413)
    except Unavailable:
        return _json({"error": UNAVAILABLE}, 503)


async def _root(request: web.Request) -> web.StreamResponse:
    if request.headers.get("Upgrade", "").lower() != "websocket":
        return await _info(request)
    _check_host(request)
    return await Session(request.app[RELAY], request).serve()


async def _info(request: web.Request) -> web.Response:
    return _json(
        {
            "name": "Buzzbench relay",
            "description": "The embedded relay of Buzzbench: one team's talk, for as long as a benchmark runs",
            "pubkey": request.app[RELAY].members.owner,
            "contact": None,
            "supported_nips": [1, 9, 11, 29, 42, 45, 50, 98],
            "supported_extensions": [],
            "software": "buzzbench",
            "version": "0.1.0",
            "limitation": {
                "max_message_length": MAX_FRAME_BYTES,
                "max_subscriptions": MAX_SUBSCRIPTIONS,
                "max_filters": MAX_FILTERS,
                "max_limit": MAX_STORED_EVENTS,
                "max_subid_length": MAX_SUBSCRIPTION_NAME,
                "min_pow_difficulty": None,
                "auth_required": True,
                "payment_required": False,
                "restricted_writes": True,
            },
            "self": request.app[RELAY].key.public,
        }
    )


async def _readiness(request: web.Request) -> web.Response:
    ready = await request.app[RELAY].ready()
    return _json({"status": "ready" if ready else "unavailable"}, 200 if ready else 503)


async def _liveness(_: web.Request) -> web.Response:
    return _json({"status": "alive"})


async def _health(_: web.Request) -> web.Response:
    return web.Response(text="ok")


async def _events(request: web.Request) -> web.Response:
    relay = request.app[RELAY]
    public, body = await _identify(request)
    event = parse_event(decode(body))
    answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
    await relay.ingest.submit(event, public, answered.set_result, websocket=False)
    answer = await answered
    if answer.status != 200:
        return _json({"error": answer.message}, answer.status)
    return _json({"event_id": event["id"], "accepted": answer.accepted, "message": answer.message})


async def _query(request: web.Request) -> web.Response:
    relay = request.app[RELAY]
    public, filters = await _asked(request)
    presences = relay.presences(filters) if filters else None
    if presences is not None:
        return _json(presences)
    found = [raw for each in filters for _, raw in await relay.select(each, public)]
    return web.Response(text=f"[{','.join(found)}]", content_type="application/json")


async def _count(request: web.Request) -> web.Response:
    public, filters = await _asked(request)
    return _json({"count": await request.app[RELAY].count(filters, public) if filters else 0})


async def _asked(request: web.Request) -> tuple[str, tuple[Filter, ...]]:
    public, body = await _identify(request)
    filters = parse_query(decode(body))
    check_gates(public, filters)
    return public, filters


async def _identify(request: web.Request) -> tuple[str, bytes]:
    """Who asks, and the body. Raises Refused: the host, the NIP-98 event, the membership."""
    relay = request.app[RELAY]
    _check_host(request)
    body = await request.read()
    public = relay.proofs.identity(request.headers.get("Authorization"), request.method, request.path, body)
    await relay.admit(public, request.headers.get("x-auth-tag"))
    if refused := relay.too_much(public, "call"):
        raise Refused(refused, 429)
    return public, body


def _check_host(request: web.Request) -> None:
    if not request.app[RELAY].authority.is_host(request.headers.get("Host", "")):
        raise Refused(UNKNOWN_HOST, 404)
