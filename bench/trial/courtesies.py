"""Whether a team of real agents only exchanges courtesies, by what relay and gateway saw of it (public case 28). Pure.

What `bench.harness.bounds.Conduct` sees of agents on the host, here from outside: a turn is one of `bench.trial.turns`,
and it did nothing but talk if the agent called no more tools in it than it sent messages.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile

from bench.harness.bounds import Bounds
from bench.harness.events import MESSAGE_KINDS
from bench.nostr import Event
from bench.trial.calls import Call
from bench.trial.turns import Turn, turns


def in_a_row(
    events: Iterable[Event],
    seen_at: Mapping[str, float],
    people: Mapping[str, str],
    calls: Sequence[Call],
    bounds: Bounds,
) -> int:
    """How many turns of the team, the last ones that have ended, did nothing but exchange short messages.

    `seen_at` is when an event arrived, in Unix seconds, by id; `people` are the agents' names by public key. A turn in
    which an agent did nothing at all is passed over.
    """
    said: dict[str, list[tuple[float, int]]] = {name: [] for name in people.values()}
    for event in events:
        name = people.get(event["pubkey"])
        if name is not None and event["kind"] in MESSAGE_KINDS and event["id"] in seen_at:
            said[name].append((seen_at[event["id"]], len(event["content"])))
    own = {name: [call for call in calls if call.agent == name] for name in said}
    ended = [(turn, name) for name in said for turn in turns(own[name]) if not math.isinf(turn.ended)]
    ended.sort(key=lambda turn_of: turn_of[0].ended, reverse=True)
    # From the last one back, and no further than the first that did something: most teams' last turn is one.
    kinds = (_is_courtesy(turn, said[name], own[name], bounds) for turn, name in ended)
    return sum(kind is not None for kind in takewhile(lambda kind: kind is not False, kinds))


def _is_courtesy(
    turn: Turn, messages: Iterable[tuple[float, int]], calls: Iterable[Call], bounds: Bounds
) -> bool | None:
    """Whether a turn only sent short messages; None where nothing was done in it."""
    sent = [chars for at, chars in messages if turn.began <= at <= turn.ended]
    used = [call.tool_calls for call in calls if turn.began <= call.began <= turn.ended]
    if not sent and not any(used):
        return None
    return bool(sent) and max(sent) <= bounds.ack_chars and None not in used and sum(n or 0 for n in used) <= len(sent)
