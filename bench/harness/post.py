"""Publish through a relay that is in trouble for a moment (its database is away), and not for longer than allowed."""

from __future__ import annotations

import asyncio

from bench.channel import RelayClient, RelayGone
from bench.nostr import Event

PATIENCE_S = 20.0
"""How long a relay whose database doesn't answer is waited for; as long as one that is gone altogether."""


async def publish(client: RelayClient, event: Event) -> None:
    """Have the event stored: the client asks again while the relay is in trouble.

    Raises RelayRefused for a refusal that stays, RelayGone after too long a wait.
    """
    try:
        async with asyncio.timeout(PATIENCE_S):
            await client.publish(event)
    except TimeoutError:
        raise RelayGone(f"the relay could store nothing for {PATIENCE_S:g} s") from None
