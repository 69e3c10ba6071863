"""A client of one relay for one identity: publish, live subscription, reconnect without loss.

    async with RelayClient(url, key, auth_tag=tag, session=session) as client:
        await client.subscribe({"kinds": [9], "#h": [channel]}, inbox.append)
        await client.publish(key.sign(9, "hello", [["h", channel]]))

It speaks NIP-01, NIP-42 (the challenge may come at connect or only after a refusal) and the HTTP bridge with
NIP-98 (BUZZ.md sections 1 and 2). Every call survives a restart of the relay: what was not answered is sent
again, and a subscription asks again for what it may have missed. `interruptions` tells whether that happened.
"""

from bench.channel.client import RelayClient, open_session
from bench.channel.connection import Interruption
from bench.channel.errors import RelayGone, RelayRefused
from bench.channel.subscription import Filter, Subscription

__all__ = [
    "Filter",
    "Interruption",
    "RelayClient",
    "RelayGone",
    "RelayRefused",
    "Subscription",
    "open_session",
]
