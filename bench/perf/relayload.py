"""A load driver for any Nostr relay, so that ours can be measured beside another in one run.

It measures what SPIKE.md section 1 measured: how long until another member sees a paced message, and how many events
a second are stored with many in flight on one connection, while that member goes on listening. The relay may ask for
NIP-42 at connect, after a refusal, or not at all. Events are signed beforehand; client and relay share the machine's
cores.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import aiohttp
import orjson

from bench.channel import RelayClient, RelayRefused, open_session
from bench.nostr import Event, Key
from bench.perf.timing import quantile

CHALLENGE_GRACE_S = 0.5
TEXT = "x" * 80


@dataclass(frozen=True)
class RelayFigures:
    """Publish to seen by another member, paced, in milliseconds; events stored (answered OK) per second."""

    seen_p50_ms: float
    seen_p99_ms: float
    stored_per_s: float
    paced_events: int
    burst_events: int
    in_flight: int


async def measure(
    url: str,
    key: Key,
    *,
    auth_tag: Sequence[str] | None = None,
    member: Key,
    member_auth_tag: Sequence[str] | None = None,
    paced_events: int = 200,
    pace_s: float = 0.01,
    burst_events: int = 4000,
    in_flight: int = 64,
) -> RelayFigures:
    """The figures of the relay at `url`, in a new private channel of `key` and `member`.

    Raises RelayGone or RelayRefused.
    """
    channel = str(uuid.uuid4())
    async with (
        open_session() as session,
        RelayClient(url, key, auth_tag=auth_tag, session=session) as writer,
        RelayClient(url, member, auth_tag=member_auth_tag, session=session) as reader,
    ):
        tags = [["h", channel], ["name", "load"], ["visibility", "private"], ["channel_type", "stream"]]
        await writer.publish(key.sign(9007, "", tags))
        await writer.publish(key.sign(9000, "", [["h", channel], ["p", member.public]]))
        delays = await _paced(writer, reader, _messages(key, channel, paced_events), channel, pace_s)
        burst = _messages(key, channel, burst_events)
        async with session.ws_connect(url, max_msg_size=0) as socket:
            await _authenticate(socket, url, key, auth_tag)
            seconds = await _flood(socket, burst, in_flight)
    return RelayFigures(
        seen_p50_ms=quantile(delays, 0.50) * 1000,
        seen_p99_ms=quantile(delays, 0.99) * 1000,
        stored_per_s=burst_events / seconds,
        paced_events=paced_events,
        burst_events=burst_events,
        in_flight=in_flight,
    )


def _messages(key: Key, channel: str, number: int) -> list[Event]:
    tags = [["h", channel], ["p", key.public]]
    return [key.sign(9, f"message {i} {uuid.uuid4().hex} {TEXT}", tags) for i in range(number)]


async def _paced(
    writer: RelayClient, reader: RelayClient, events: list[Event], channel: str, pace_s: float
) -> list[float]:
    """Seconds from the call of publish until the other member's callback, one event at a time."""
    waiting: dict[str, asyncio.Future[float]] = {}

    def on_event(event: Event) -> None:
        if seen := waiting.get(event["id"]):
            seen.set_result(time.perf_counter())

    await reader.subscribe({"kinds": [9], "#h": [channel]}, on_event)
    delays = []
    for event in events:
        seen = waiting[event["id"]] = asyncio.get_running_loop().create_future()
        began = time.perf_counter()
        await writer.publish(event)
        delays.append(await seen - began)
        await asyncio.sleep(pace_s)
    return delays


async def _authenticate(
    socket: aiohttp.ClientWebSocketResponse, url: str, key: Key, auth_tag: Sequence[str] | None
) -> None:
    """Answer the challenge if one comes within the grace."""
    try:
        first = await socket.receive_json(timeout=CHALLENGE_GRACE_S)
    except TimeoutError:
        return
    if first[0] == "AUTH":
        await socket.send_json(["AUTH", key.answer_challenge(first[1], url, auth_tag)])
        answer = await socket.receive_json()
        if not answer[2]:
            raise RelayRefused("the authentication", answer[3])


async def _flood(socket: aiohttp.ClientWebSocketResponse, events: list[Event], in_flight: int) -> float:
    """Seconds until every event was answered OK, with so many unanswered at any time."""
    frames = [f'["EVENT",{orjson.dumps(event).decode()}]' for event in events]
    began = time.perf_counter()
    for frame in frames[:in_flight]:
        await socket.send_str(frame)
    sent, answered = min(in_flight, len(frames)), 0
    while answered < len(frames):
        answer = orjson.loads((await socket.receive()).data)
        if answer[0] != "OK":
            continue
        if not answer[2]:
            raise RelayRefused("an event of the burst", answer[3])
        answered += 1
        if sent < len(frames):
            await socket.send_str(frames[sent])
            sent += 1
    return time.perf_counter() - began
