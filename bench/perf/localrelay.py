"""`python -m bench.perf.localrelay`: nostr-sdk's relay as a yardstick, in a process of its own as ours is.

It prints its URL and serves until standard input ends. It keeps events in memory; its default rate limit of 60 messages
a minute would stall a load test without a word (SPIKE.md section 3), so it is raised.
"""

from __future__ import annotations

import asyncio
import sys

import nostr_sdk

NO_LIMIT = 1_000_000_000


async def main() -> None:
    limit = nostr_sdk.RateLimit(max_reqs=1_000_000, notes_per_minute=NO_LIMIT)
    relay = nostr_sdk.LocalRelayBuilder().rate_limit(limit).addr("127.0.0.1").build()
    await relay.run()
    print(await relay.url(), flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
