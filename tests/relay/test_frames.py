"""Frames that are garbage, too large or too many: each is answered, and none stops the relay."""

from __future__ import annotations

import json
from typing import Any

import aiohttp
import pytest

from tests.relay.running import WAIT_S, RunningRelay


@pytest.mark.parametrize(
    "text", ["", "garbage", "{}", "[]", '["NOPE"]', '["EVENT"]', '["REQ"]', '["CLOSE",5]', "[" * 3000]
)
async def test_garbage_gets_a_notice_and_the_connection_goes_on(relay: RunningRelay, text: str) -> None:
    async with relay.socket(relay.owner) as wire:
        await wire.socket.send_str(text)
        kind, said = await wire.receive()
        assert kind == "NOTICE"
        assert said.startswith("invalid message: ")
        await wire.silent()


async def test_binary_frames_get_a_notice(relay: RunningRelay) -> None:
    async with relay.socket(relay.owner) as wire:
        await wire.socket.send_bytes(b"[]")
        assert await wire.receive() == ["NOTICE", "invalid message: not a text frame"]


async def test_a_lone_surrogate_is_invalid_and_the_event_is_answered(relay: RunningRelay) -> None:
    event = relay.owner.sign(0, "x")
    async with relay.socket(relay.owner) as wire:
        await wire.socket.send_str(json.dumps(["EVENT", {**event, "content": "\ud800"}]))
        answer = await wire.receive()
        assert answer[:3] == ["OK", event["id"], False]
        assert answer[3] == "invalid: the text holds a lone surrogate, which is not valid Unicode"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"content": "forged"}, "invalid: bad id or signature"),
        ({"sig": "0" * 128}, "invalid: bad id or signature"),
        ({"kind": "0"}, "invalid: an event needs id, pubkey, created_at, kind, tags, content and sig"),
        ({"pubkey": "0" * 64}, "invalid: event pubkey does not match authenticated identity"),
        ({"content": "x" * 262_145}, "invalid: content exceeds 262144 bytes"),
    ],
    ids=str,
)
async def test_an_invalid_event_is_answered_with_the_reason(
    relay: RunningRelay, change: dict[str, Any], text: str
) -> None:
    event = {**relay.owner.sign(0, "{}"), **change}
    async with relay.socket(relay.owner) as wire:
        assert await wire.publish(event) == [False, text]


async def test_the_largest_content_passes_and_comes_back_as_it_was(relay: RunningRelay) -> None:
    event = relay.owner.sign(1, "ü" * 131_072)
    async with relay.socket(relay.owner) as wire:
        assert await wire.publish(event) == [True, ""]
        assert await wire.request("s", {"ids": [event["id"]]}) == [event]


async def test_a_frame_that_is_too_big_ends_the_connection_with_its_code(relay: RunningRelay) -> None:
    async with relay.socket(relay.owner) as wire:
        await wire.socket.send_str("x" * (512 * 1024 + 1))
        message = await wire.socket.receive(WAIT_S)
        assert (message.type, message.data) == (aiohttp.WSMsgType.CLOSE, 1009)


async def test_too_many_filters_or_a_long_name_are_refused(relay: RunningRelay) -> None:
    async with relay.socket(relay.owner) as wire:
        await wire.send("REQ", "s", *[{}] * 11)
        assert await wire.receive() == ["CLOSED", "s", "invalid: at most 10 filters"]
        await wire.send("REQ", "s", {"kinds": "9"})
        reason = "invalid: kinds of a filter is a list of numbers from 0 to 65535"
        assert await wire.receive() == ["CLOSED", "s", reason]
        for name in ("", "s" * 257):
            await wire.send("REQ", name, {})
            text = "invalid message: a subscription's id has 1 to 256 characters"
            assert await wire.receive() == ["NOTICE", text]


async def test_a_connection_has_1024_subscriptions_and_may_close_them(relay: RunningRelay) -> None:
    async with relay.socket(relay.owner) as wire:
        for number in range(1024):
            await wire.request(f"s{number}", {"kinds": [9], "limit": 0})
        await wire.send("REQ", "more", {"kinds": [9], "limit": 0})
        assert await wire.receive() == ["CLOSED", "more", "error: more than 1024 subscriptions"]
        await wire.request("s5", {"kinds": [9], "limit": 0})
        await wire.send("CLOSE", "s5")
        assert await wire.receive() == ["CLOSED", "s5", ""]
        await wire.request("more", {"kinds": [9], "limit": 0})
