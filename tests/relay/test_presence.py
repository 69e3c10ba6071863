"""Who is online, for as long as what they said of it holds."""

from __future__ import annotations

from typing import Any

import pytest

from bench.nostr import Key
from bench.relay.fanout import Fanout
from bench.relay.ingest import PRESENCE_S, Ingest

AGENT = Key.generate()


@pytest.fixture
def now() -> list[float]:
    """The steady clock, in seconds; a test moves it."""
    return [100.0]


@pytest.fixture
def ingest(now: list[float]) -> Ingest:
    absent: Any = None  # Presence is neither stored nor written.
    return Ingest(Key.generate(), absent, absent, absent, Fanout(), clock=lambda: now[0])


def say(ingest: Ingest, text: str) -> None:
    event = AGENT.sign(20001, text)
    ingest._pass_on(event, "", None)


def test_a_presence_ends_by_the_steady_clock_and_by_nothing_else(ingest: Ingest, now: list[float]) -> None:
    say(ingest, "online")
    now[0] += PRESENCE_S - 1
    assert ingest.presence(AGENT.public) == "online"
    now[0] += 2
    assert ingest.presence(AGENT.public) is None


def test_who_goes_offline_is_gone_at_once(ingest: Ingest) -> None:
    say(ingest, "online")
    say(ingest, "offline")
    assert ingest.presence(AGENT.public) is None
