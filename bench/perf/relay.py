"""Our relay, durable and closed, beside nostr-sdk's LocalRelay: in memory, and open to anybody."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from statistics import median

from bench import keys
from bench.nostr import Key
from bench.perf import Figure
from bench.perf.pipeline import installation
from bench.perf.relayload import RelayFigures
from bench.perf.relayload import measure as measure_relay
from bench.perf.timing import served

PASSES = 3


def measure() -> Iterator[Figure]:
    """Delay of a paced message, and stored events per second with 64 in flight, in turns."""
    ours, theirs = asyncio.run(_in_turns())
    rate = median(o.stored_per_s / t.stored_per_s for o, t in zip(ours, theirs, strict=True))
    yield Figure("publish -> another member sees it, paced, p50", median(o.seen_p50_ms for o in ours), "ms", 3.0)
    yield Figure("publish -> another member sees it, paced, p99", median(o.seen_p99_ms for o in ours), "ms")
    yield Figure(
        "stored events/s, 64 in flight, / LocalRelay's",
        rate,
        "x",
        0.6,
        at_least=True,
        note=f"{median(o.stored_per_s for o in ours):.0f} and {median(t.stored_per_s for t in theirs):.0f}",
    )


async def _in_turns() -> tuple[list[RelayFigures], list[RelayFigures]]:
    ours: list[RelayFigures] = []
    theirs: list[RelayFigures] = []
    with installation() as bench, served("bench.perf.localrelay") as local:
        state = keys.load(bench.state_dir)
        agent = Key.generate()
        for _ in range(PASSES):
            ours.append(
                await measure_relay(
                    bench.relay_url, state.owner, member=agent, member_auth_tag=state.owner.attest(agent.public)
                )
            )
            theirs.append(await measure_relay(local, Key.generate(), member=Key.generate()))
    return ours, theirs
