"""From a parsed event to its answer: checked, judged, stored in a group commit, then applied and sent out.

An event of a channel whose state is being changed waits for that change, so that events of one connection are judged
in the order in which they came. State changes only after the commit.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

import orjson

from bench.nostr import Event, Key, tag_value, verified
from bench.relay.access import Members
from bench.relay.channels import Channel
from bench.relay.fanout import Fanout, Live
from bench.relay.protocol import Refused
from bench.relay.rules import (
    ADD_MEMBER,
    AGENT_PROFILE,
    CHANNEL_CHANGES,
    CREATE_CHANNEL,
    EPHEMERAL,
    PRESENCE,
    REACTION,
    REMOVE_MEMBER,
    TURN_METRIC,
    Decision,
    Known,
    Stored,
    channel_of,
    check_author,
    check_kind,
    decide,
    named_event,
)
from bench.relay.store import Store, Unavailable
from bench.relay.writer import Group, Row, Writer

REMEMBERED_EVENTS = 50_000
PRESENCE_S = 180
"""How long a presence holds (buzzkit's documentation of Buzz's relay)."""
NOT_STORED = "error: not stored, the database does not answer; try again"


@dataclass(frozen=True)
class Answer:
    """What the sender of an event hears. `status` is the HTTP bridge's."""

    accepted: bool
    message: str = ""
    status: int = 200


type Reply = Callable[[Answer], None]


class Ingest:
    """All that changes: channels, who is online, and the way of an event into the store and out to subscribers."""

    def __init__(
        self,
        relay: Key,
        store: Store,
        writer: Writer,
        members: Members,
        fanout: Fanout,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock` never goes back: a presence ends after its time, whatever becomes of the wall clock."""
        self._clock = clock
        self.relay, self.store, self.writer, self.members, self.fanout = relay, store, writer, members, fanout
        self.channels: dict[str, Channel] = {}
        self.on_revoked: Callable[[Live], None] = lambda _: None
        self._presence: dict[str, tuple[float, str]] = {}
        self._recent: dict[str, Stored] = {}
        self._changing: dict[str, asyncio.Future[None]] = {}  # the last change queued for a channel

    def readable(self, public: str) -> set[str]:
        """The channels that the key may read."""
        return {identity for identity, channel in self.channels.items() if channel.may_read(public)}

    def presence(self, public: str) -> str | None:
        """What the key last said of its presence, unless it has gone offline since."""
        held = self._presence.get(public)
        return held[1] if held and held[0] > self._clock() else None

    async def submit(self, event: Event, identity: str, reply: Reply, *, websocket: bool) -> None:
        """Take the event; `reply` is called once, at the latest after its commit. Returns when it is queued."""
        try:
            check_author(event, identity)
            check_kind(event, now=time.time(), websocket=websocket)
            await self._admit(event, reply)
        except Refused as refusal:
            reply(Answer(False, refusal.text, refusal.status))
        except (*Unavailable, TimeoutError):
            reply(Answer(False, NOT_STORED, 503))

    async def _admit(self, event: Event, reply: Reply) -> None:
        raw = orjson.dumps(event).decode()
        if not verified(raw):
            raise Refused("invalid: bad id or signature")
        if event["id"] in self._recent:
            reply(Answer(True, "duplicate:"))
            return
        if first := self.writer.inflight.get(event["id"]):
            first.watchers.append(lambda new: reply(_outcome(None if new is None else False)))
            return
        await self.writer.room()
        if event["kind"] in CHANNEL_CHANGES:
            await self._change(event, raw, reply)
            return
        try:
            await self._judge(event, raw, reply)
        except Refused:
            # Judged anew, a copy may look wrong (the channel is archived by now); it was accepted all the same.
            if event["kind"] in EPHEMERAL or not await self._is_stored(event):
                raise
            reply(Answer(True, "duplicate:"))

    async def _judge(self, event: Event, raw: str, reply: Reply) -> None:
        kind, named = event["kind"], named_event(event)
        target = await self._stored(named) if named else None
        channel = channel_of(event, target)
        if channel is not None and (change := self._changing.get(channel)):
            await change
        owner = self.members.owners.get(event["pubkey"]) if kind == TURN_METRIC else None
        known = Known(
            relay=self.relay,
            now=int(time.time()),
            channel=self.channels.get(channel) if channel else None,
            target=target,
            owner=owner,
            reacted=kind == REACTION and target is not None and await self.store.has_reaction(event, target.id),
            owns_target=target is not None and self.members.owners.get(target.public) == event["pubkey"],
        )
        decision = decide(event, known)
        if kind in EPHEMERAL:
            self._pass_on(event, raw, decision.events[0][1])
            reply(Answer(True))
        else:
            self._queue(decision, event, raw, reply)

    async def _change(self, event: Event, raw: str, reply: Reply) -> None:
        """A change of a channel: alone, judged on the committed state, applied after its commit."""
        identity = tag_value(event, "h") or ""
        before = self._changing.get(identity)
        change = self._changing[identity] = asyncio.get_running_loop().create_future()

        def answered(answer: Answer) -> None:
            change.set_result(None)
            if self._changing.get(identity) is change:
                del self._changing[identity]
            reply(answer)

        try:
            if before is not None:
                await before
            if await self._is_stored(event):
                answered(Answer(True, "duplicate:"))
                return
            kind, target = event["kind"], tag_value(event, "p")
            known = Known(
                relay=self.relay,
                now=int(time.time()),
                channel=self.channels.get(identity),
                owner=self.members.owners.get(target or "") if kind in (ADD_MEMBER, REMOVE_MEMBER) else None,
                policy=await self._policy(target) if kind == ADD_MEMBER and target else "anyone",
                used_before=kind == CREATE_CHANNEL and await self.store.has_channel(identity),
            )
            decision = decide(event, known)
        except Refused as refusal:
            answered(Answer(False, refusal.text, refusal.status))
        except Unavailable:
            answered(Answer(False, NOT_STORED, 503))
        else:
            self._queue(decision, event, raw, answered)

    def _queue(self, decision: Decision, event: Event, raw: str, reply: Reply) -> None:
        rows = tuple(
            Row(each, channel, raw if each is event else orjson.dumps(each).decode())
            for each, channel in decision.events
        )
        channel = decision.before or decision.after
        group = Group(
            rows,
            decision.deletes,
            on_stored=lambda new: self._apply(decision, new),
            still_good=lambda: channel is None or self.channels.get(channel.id) is decision.before,
            watchers=[lambda new: reply(_outcome(new))],
        )
        self.writer.submit(group)

    def _apply(self, decision: Decision, new: list[Row]) -> None:
        if decision.after is not None:
            self.channels[decision.after.id] = decision.after
        elif decision.gone and decision.before is not None:
            del self.channels[decision.before.id]
        for identity in decision.deletes:
            self._recent.pop(identity, None)
        if decision.after is not None:
            # Before the news of it: who is removed hears no more of the channel.
            self._revoke(decision.after)
        for row in new:
            event = row.event
            self._remember(Stored.of(event, row.channel))
            self.fanout.send(event, row.raw, row.channel)
        if decision.gone and decision.before is not None:
            self._revoke(Channel(decision.before.id, "", private=True))

    def _revoke(self, channel: Channel) -> None:
        for live in self.fanout.revoked(channel):
            self.on_revoked(live)

    def _pass_on(self, event: Event, raw: str, channel: str | None) -> None:
        if event["kind"] == PRESENCE:
            if event["content"] == "offline":
                self._presence.pop(event["pubkey"], None)
            else:
                self._presence[event["pubkey"]] = (self._clock() + PRESENCE_S, event["content"])
        self.fanout.send(event, raw, channel)

    def _remember(self, stored: Stored) -> None:
        self._recent[stored.id] = stored
        if len(self._recent) > REMEMBERED_EVENTS:
            del self._recent[next(iter(self._recent))]

    async def _stored(self, identity: str) -> Stored | None:
        """What is known of an event, once it is committed; None where there is none, or it was deleted."""
        if first := self.writer.inflight.get(identity):
            done = asyncio.Event()
            first.watchers.append(lambda _: done.set())
            await done.wait()
        if held := self._recent.get(identity):
            return held
        found = await self.store.stored(identity)
        return found[0] if found and not found[1] else None

    async def _is_stored(self, event: Event) -> bool:
        if event["id"] in self._recent:
            return True
        found = await self.store.stored(event["id"])
        return found is not None and found[0].public == event["pubkey"]

    async def _policy(self, public: str) -> str:
        profile = await self.store.newest(AGENT_PROFILE, public)
        try:
            policy = orjson.loads(profile["content"])["channel_add_policy"] if profile else "anyone"
        except (orjson.JSONDecodeError, KeyError, TypeError):
            return "anyone"
        return policy if policy in ("owner_only", "nobody") else "anyone"


def _outcome(new: bool | None) -> Answer:
    if new is None:
        return Answer(False, NOT_STORED, 503)
    return Answer(True, "" if new else "duplicate:")
