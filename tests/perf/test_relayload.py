"""The load driver gives figures of any relay: of ours, and of one that asks for nothing."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator

import nostr_sdk
import pytest

from bench.nostr import Key
from bench.perf.relayload import RelayFigures, measure
from tests.relay.running import RunningRelay


@pytest.fixture
async def local_relay() -> AsyncIterator[str]:
    """nostr-sdk's relay, in memory; its rate limit would hang a load silently (SPIKE.md section 3)."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    limit = nostr_sdk.RateLimit(max_reqs=1_000_000, notes_per_minute=1_000_000_000)
    relay = nostr_sdk.LocalRelayBuilder().rate_limit(limit).addr("127.0.0.1").port(port).build()
    await relay.run()
    yield f"ws://127.0.0.1:{port}"
    relay.shutdown()


def check(figures: RelayFigures) -> None:
    assert (figures.paced_events, figures.burst_events, figures.in_flight) == (5, 100, 64)
    assert 0 < figures.seen_p50_ms <= figures.seen_p99_ms
    assert figures.stored_per_s > 0


async def test_our_relay_is_measured(relay: RunningRelay) -> None:
    member, tag = relay.agent()
    check(
        await measure(
            relay.url,
            relay.owner,
            member=member,
            member_auth_tag=tag,
            paced_events=5,
            pace_s=0,
            burst_events=100,
        )
    )


async def test_another_relay_is_measured_in_the_same_way(local_relay: str) -> None:
    key, member = Key.generate(), Key.generate()
    check(await measure(local_relay, key, member=member, paced_events=5, pace_s=0, burst_events=100))
