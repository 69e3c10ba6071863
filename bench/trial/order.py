"""In which order events came that nobody saw arrive. Pure.

Their own time is all that a relay tells, in whole seconds (NIP-01): within one, what an event refers to came before it.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.nostr import Event, tag_values


def put_in(arrived: Sequence[Event], late: Sequence[Event]) -> list[Event]:
    """All events: those that arrived in their order, the others after all of those that are not younger."""
    waiting = by_time(late)[::-1]
    ordered: list[Event] = []
    for event in arrived:
        while waiting and waiting[-1]["created_at"] < event["created_at"]:
            ordered.append(waiting.pop())
        ordered.append(event)
    return [*ordered, *reversed(waiting)]


def by_time(events: Sequence[Event]) -> list[Event]:
    """By their own time, and within a second each after those that its tags name; else by id, as relays have it."""
    left = {event["id"]: event for event in sorted(events, key=lambda e: (e["created_at"], e["id"]))}
    ordered: list[Event] = []

    def take(event: Event) -> None:
        for name in tag_values(event, "e"):
            if name in left and left[name]["created_at"] == event["created_at"]:
                take(left.pop(name))
        ordered.append(event)

    while left:
        take(left.pop(next(iter(left))))
    return ordered
