"""An agent's turns as the gateway saw them, and what was signed with its key outside of them. Pure.

A turn goes from its first model call to the end of the one whose answer calls no tool: between two calls the agent
carries out tools, however long that takes. Agents of one container can read each other's keys, and nothing in it can
stop that (DESIGN decision 8); but who signs as a neighbour does it, as a rule, while that one has no turn. A script
that an agent left in the background does the same, so that the label says no more than that: it changes no score by
itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bench.harness.events import CHANNEL_ORDERS, EDIT, MESSAGE_KINDS
from bench.nostr import Event
from bench.trial.calls import Call

GRACE_S = 3.0
"""After a turn's end: what was sent in it may still be on its way."""

SPOKEN = frozenset({*MESSAGE_KINDS, EDIT})
"""What is said to others."""

DELETE_MESSAGE = 9005

BY_TOOLS = SPOKEN | {*CHANNEL_ORDERS, DELETE_MESSAGE}
"""What only a tool sends. Reactions, their deletions (5), presence and the like are buzz-acp's own, and come before a
turn or after it."""


@dataclass(frozen=True)
class Turn:
    """One turn, in Unix seconds; `ended` is infinite for one that nobody saw ending."""

    began: float
    ended: float


def turns(calls: Iterable[Call]) -> list[Turn]:
    """One agent's turns, from its calls. A refused call is no turn: no model said anything."""
    found: list[Turn] = []
    began: float | None = None
    for call in sorted(calls, key=lambda call: call.began):
        if call.outcome == "refused":
            continue
        if began is None:
            began = call.began
        if call.ends_turn:
            found.append(Turn(began, call.ended))
            began = None
    return [*found, Turn(began, math.inf)] if began is not None else found


def unexplained(
    events: Iterable[Event],
    seen_at: Mapping[str, float],
    people: Mapping[str, str],
    calls: Sequence[Call],
) -> list[str]:
    """The ids of messages, edits, deletions and orders signed by an agent's key while that agent had no turn.

    `seen_at` is when an event arrived, in Unix seconds, by id; one that wasn't seen live counts from its own time, to
    the second. `people` are the agents' names by public key.
    """
    by_agent = {name: turns(call for call in calls if call.agent == name) for name in people.values()}
    found = []
    for event in events:
        name = people.get(event["pubkey"])
        if name is None or event["kind"] not in BY_TOOLS:
            continue
        at = seen_at.get(event["id"])
        earliest, latest = (at, at) if at is not None else (event["created_at"], event["created_at"] + 1)
        if not any(turn.began <= latest and earliest <= turn.ended + GRACE_S for turn in by_agent[name]):
            found.append(str(event["id"]))
    return found


def silent(events: Iterable[Event], seen_at: Mapping[str, float], public: str, calls: Iterable[Call]) -> int:
    """An agent's turns that published nothing, and that no later one made good (public case 27)."""
    said = [seen_at.get(e["id"], e["created_at"]) for e in events if e["pubkey"] == public and e["kind"] in SPOKEN]
    last = max(said, default=-math.inf)
    return sum(turn.began > last for turn in turns(calls) if not math.isinf(turn.ended))
