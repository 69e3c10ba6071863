"""The client of a relay that asks for authentication late, twice or in vain, or is in trouble (case 30)."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from bench.channel import RelayClient, RelayGone, RelayRefused
from bench.nostr import Key
from tests.relay.running import within

type Script = Callable[[web.WebSocketResponse, list[Any], list[list[Any]]], Awaitable[None]]


@asynccontextmanager
async def served(serve: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    """A server with one route; yields its URL."""
    app = web.Application()
    app.router.add_get("/", serve)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        await web.SockSite(runner, listener).start()
        try:
            yield f"ws://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            await runner.cleanup()


@asynccontextmanager
async def scripted(on_frame: Script) -> AsyncIterator[tuple[str, list[list[Any]]]]:
    """A relay that answers as the script says; yields its URL and the frames that it got."""
    frames: list[list[Any]] = []

    async def serve(request: web.Request) -> web.WebSocketResponse:
        peer = web.WebSocketResponse()
        await peer.prepare(request)
        async for message in peer:
            frame = message.json()
            frames.append(frame)
            await on_frame(peer, frame, frames)
        return peer

    async with served(serve) as url:
        yield url, frames


NEEDED = "auth-required: please"
KEY = Key.generate()


def kinds(frames: list[list[Any]]) -> list[str]:
    return [frame[0] for frame in frames]


async def test_a_challenge_after_a_refusal_is_met_and_the_event_sent_once_more() -> None:
    known: set[str] = set()

    async def late(peer: web.WebSocketResponse, frame: list[Any], _: list[list[Any]]) -> None:
        match frame:
            case ["AUTH", answer]:
                known.add(answer["pubkey"])
                await peer.send_json(["OK", answer["id"], True, ""])
            case ["EVENT" | "REQ", *_] if not known:
                await peer.send_json(["AUTH", "challenge"])
                if frame[0] == "EVENT":
                    await peer.send_json(["OK", frame[1]["id"], False, NEEDED])
                else:
                    await peer.send_json(["CLOSED", frame[1], NEEDED])
            case ["EVENT", event]:
                await peer.send_json(["OK", event["id"], True, ""])
            case ["REQ", name, _]:
                await peer.send_json(["EOSE", name])

    async with scripted(late) as (url, frames), RelayClient(url, KEY) as client:
        event = KEY.sign(1, "x")
        assert await within(client.publish(event)) == event["id"]
        assert kinds(frames) == ["EVENT", "AUTH", "EVENT"]
    known.clear()
    async with scripted(late) as (url, frames), RelayClient(url, KEY) as client:
        await within(client.subscribe({"kinds": [1]}, lambda _: None))
        assert kinds(frames) == ["REQ", "AUTH", "REQ"]


async def test_a_second_refusal_raises_with_the_relays_text_after_two_sends() -> None:
    async def stubborn(peer: web.WebSocketResponse, frame: list[Any], frames: list[list[Any]]) -> None:
        if frame[0] == "AUTH":
            await peer.send_json(["OK", frame[1]["id"], True, ""])
        else:
            if len(frames) == 1:
                await peer.send_json(["AUTH", "challenge"])
            await peer.send_json(["OK", frame[1]["id"], False, NEEDED])

    async with scripted(stubborn) as (url, frames), RelayClient(url, KEY) as client:
        with pytest.raises(RelayRefused) as caught:
            await within(client.publish(KEY.sign(1, "x")))
        assert caught.value.reason == NEEDED
        assert str(caught.value).endswith("the relay did not accept this key's answer to its challenge (NIP-42)")
        assert sorted(kinds(frames)) == ["AUTH", "EVENT", "EVENT"]


async def test_after_a_refused_authentication_nothing_is_sent_again() -> None:
    refused = "restricted: not a relay member"

    async def closed(peer: web.WebSocketResponse, frame: list[Any], _: list[list[Any]]) -> None:
        if frame[0] == "AUTH":
            await peer.send_json(["OK", frame[1]["id"], False, refused])
        else:
            await peer.send_json(["AUTH", "challenge"])
            await peer.send_json(["OK", frame[1]["id"], False, NEEDED])

    async with scripted(closed) as (url, frames), RelayClient(url, KEY) as client:
        with pytest.raises(RelayRefused, match=r"the authentication: restricted: not a relay member"):
            await within(client.publish(KEY.sign(1, "x")))
        assert kinds(frames) == ["EVENT", "AUTH"]


async def test_another_refusal_is_final() -> None:
    async def full(peer: web.WebSocketResponse, frame: list[Any], _: list[list[Any]]) -> None:
        await peer.send_json(["NOTICE", "full"])
        await peer.send_json(["OK", frame[1]["id"], False, "blocked: full"])

    async with scripted(full) as (url, frames), RelayClient(url, KEY) as client:
        with pytest.raises(RelayRefused, match=r"^the relay refused an event of kind 1: blocked: full$"):
            await within(client.publish(KEY.sign(1, "x")))
        assert kinds(frames) == ["EVENT"]


async def test_trouble_of_the_relay_is_waited_out_and_is_no_refusal() -> None:
    async def troubled(peer: web.WebSocketResponse, frame: list[Any], frames: list[list[Any]]) -> None:
        if frame[0] == "EVENT":
            stored = frames.count(frame) == 3
            await peer.send_json(["OK", frame[1]["id"], stored, "" if stored else "error: the database is away"])

    async with scripted(troubled) as (url, frames), RelayClient(url, KEY) as client:
        await within(client.publish(KEY.sign(1, "x")))
        assert kinds(frames) == ["EVENT"] * 3

    async def hopeless(peer: web.WebSocketResponse, frame: list[Any], _: list[list[Any]]) -> None:
        await peer.send_json(["OK", frame[1]["id"], False, "error: the database is away"])

    async with scripted(hopeless) as (url, _), RelayClient(url, KEY, answer_s=0.8) as client:
        with pytest.raises(RelayGone, match=r"has not answered an event of kind 1 for 0.8 s$"):
            await within(client.publish(KEY.sign(1, "x")))


async def test_a_subscription_that_the_relay_ends_for_its_own_trouble_is_asked_for_again() -> None:
    """As one does that is shutting down, to a client that was quick to come back."""

    async def troubled(peer: web.WebSocketResponse, frame: list[Any], frames: list[list[Any]]) -> None:
        if frame[0] == "REQ":
            asked = [each[0] for each in frames].count("REQ")
            await peer.send_json(["EOSE", frame[1]] if asked == 3 else ["CLOSED", frame[1], "error: no database"])

    async with scripted(troubled) as (url, frames), RelayClient(url, KEY) as client:
        subscription = await within(client.subscribe({"kinds": [1]}, lambda _: None))
        assert (subscription.closed, kinds(frames)) == (None, ["REQ"] * 3)

    async def hopeless(peer: web.WebSocketResponse, frame: list[Any], _: list[list[Any]]) -> None:
        await peer.send_json(["CLOSED", frame[1], "error: no database"])

    async with scripted(hopeless) as (url, _), RelayClient(url, KEY, answer_s=1.5) as client:
        with pytest.raises(RelayGone, match=r"has not answered a subscription for 1.5 s$"):
            await within(client.subscribe({"kinds": [1]}, lambda _: None))


async def test_a_relay_in_trouble_at_the_authentication_is_dialled_again_for_as_long_as_allowed() -> None:
    async def troubled(peer: web.WebSocketResponse, frame: list[Any], frames: list[list[Any]]) -> None:
        if frame[0] == "EVENT":
            await peer.send_json(["AUTH", "challenge"])
            await peer.send_json(["OK", frame[1]["id"], False, NEEDED])
        elif len(frames) < 4:
            await peer.send_json(["OK", frame[1]["id"], False, "error: the database is away"])
        else:
            await peer.send_json(["OK", frame[1]["id"], True, ""])
            await peer.send_json(["OK", frames[0][1]["id"], True, ""])

    async with scripted(troubled) as (url, frames), RelayClient(url, KEY) as client:
        await within(client.publish(KEY.sign(1, "x")))
        assert kinds(frames)[:4] == ["EVENT", "AUTH", "EVENT", "AUTH"]
        [lost] = client.interruptions
        assert lost.cause == "the authentication failed: error: the database is away"


async def test_a_relay_that_always_hangs_up_is_gone_in_the_end() -> None:
    async def hang_up(request: web.Request) -> web.WebSocketResponse:
        peer = web.WebSocketResponse()
        await peer.prepare(request)
        await peer.close()
        return peer

    async with served(hang_up) as url:
        with pytest.raises(RelayGone, match=r"could not be reached for 0.3 s: closed with code 1000$"):
            await RelayClient(url, KEY, gone_after_s=0.3).connect()


async def test_a_server_that_is_no_relay_is_refused() -> None:
    async def nothing(_: web.Request) -> web.StreamResponse:
        raise web.HTTPNotFound

    async with served(nothing) as url:
        with pytest.raises(RelayRefused, match="the connection: HTTP 404"):
            await RelayClient(url, KEY).connect()
