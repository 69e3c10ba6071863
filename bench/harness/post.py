"""Publish through a database that is away for a moment: the relay says so, and takes the same event later."""

from __future__ import annotations

import asyncio

from bench.channel import RelayClient, RelayGone, RelayRefused
from bench.nostr import Event

PATIENCE_S = 20.0
"""How long a relay whose database doesn't answer is waited for; as long as one that is gone altogether."""

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 1.0


def is_transient(reason: str) -> bool:
    """Whether a refusal speaks of the relay's own state (NIP-01's `error:`), not of the event."""
    return reason.startswith("error:")


async def publish(client: RelayClient, event: Event) -> None:
    """Have the event stored. Raises RelayRefused for a refusal that stays, RelayGone after too long a wait."""
    clock = asyncio.get_running_loop().time
    give_up_at, pause = clock() + PATIENCE_S, FIRST_PAUSE_S
    while True:
        try:
            await client.publish(event)
        except RelayRefused as refused:
            if not is_transient(refused.reason):
                raise
            if clock() + pause > give_up_at:
                raise RelayGone(f"the relay could store nothing for {PATIENCE_S:g} s: {refused.reason}") from refused
        else:
            return
        await asyncio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE_S)
