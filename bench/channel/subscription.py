"""One live subscription: what it asks for, and each event delivered once, in order, across reconnects."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from bench.nostr import Event

type Filter = Mapping[str, Any]
"""A NIP-01 filter: ids, kinds, authors, since, until, limit, #h, #p, …"""

OVERLAP_S = 900 + 60
"""The relay takes no event whose created_at is further than 900 s from its clock (BUZZ.md section 1), and a
dead connection is noticed within a minute: this much overlap holds everything that can have been missed."""

PAGE_EVENTS = 1000
"""The most stored events that one answer holds (NIP-11 max_limit of Buzz's relay)."""


@dataclass(eq=False)
class Subscription:
    """A live REQ. `closed` is the relay's text once the relay has ended it for good, else None."""

    name: str
    wanted: dict[str, Any]
    on_event: Callable[[Event], None]
    ready: asyncio.Future[None] = field(repr=False)
    closed: str | None = None
    held: bool = False  # has to be (re)sent once the connection can carry it
    troubled_since: float | None = None  # monotonic seconds, while the relay refuses it for its own trouble
    known_until: float | None = None  # Unix seconds up to which nothing is missing, while not live
    known_at: float = 0.0  # the same moment by the steady clock
    held_back: list[Event] | None = field(default=None, repr=False)
    seen: set[str] = field(default_factory=set, repr=False)
    wall: Callable[[], float] = time.time
    steady: Callable[[], float] = time.monotonic

    def request(self) -> str:
        """The REQ frame. What comes until `settle` is held back: stored events first, newest first."""
        self.held, self.held_back = False, []
        wanted = {**self.wanted, "limit": PAGE_EVENTS}
        if self.known_until is not None:
            # The wall clock may have been set back since: then what came meanwhile has times before that moment.
            as_now = self.wall() - (self.steady() - self.known_at)
            since = int(min(self.known_until, as_now)) - OVERLAP_S
            wanted["since"] = max(since, self.wanted.get("since", 0))
        return orjson.dumps(["REQ", self.name, wanted]).decode()

    def take(self, event: Event) -> None:
        """An event came from the relay."""
        if self.held_back is not None:
            self.held_back.append(event)
        elif event["id"] not in self.seen:
            self.seen.add(event["id"])
            self.on_event(event)

    def settle(self, stored: Sequence[Event], live: Sequence[Event]) -> None:
        """Deliver the stored events, oldest first, then what came meanwhile; live from now on."""
        self.held_back, self.known_until, self.troubled_since = None, None, None
        for event in (*reversed(stored), *live):
            self.take(event)
        if not self.ready.done():
            self.ready.set_result(None)

    def may_ask_again(self, patience_s: float) -> bool:
        """The relay ended it for trouble of its own. Whether that has not lasted for longer than the patience."""
        self.interrupt(self.wall())
        self.troubled_since = self.troubled_since or self.steady()
        return self.steady() - self.troubled_since < patience_s

    def interrupt(self, at: float) -> None:
        """The connection is lost; `at` in Unix seconds."""
        if self.ready.done() and self.held_back is None:
            self.known_until, self.known_at = at, self.steady()
