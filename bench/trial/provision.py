"""A team's place on the relay: fresh keys, attestations, a private channel of the user's, profiles, inboxes (row R1).

    orders of one key go out together, those of different keys side by side; each must be answered before the next step

Everything is in place, and was read back, before the task is posted (public cases 27 and 30).
"""

from __future__ import annotations

import asyncio
import functools
import json
import math
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from bench.channel import RelayClient, RelayRefused, Subscription
from bench.channel.errors import is_trouble
from bench.condition import Agent
from bench.errors import BuzzbenchError
from bench.harness import events
from bench.harness.directory import Channel, Directory
from bench.harness.inbox import Inbox
from bench.harness.post import PATIENCE_S, publish
from bench.nostr import Event, Key, tag_value, tag_values
from bench.trial import order
from bench.trial.evidence import Person, Subject
from bench.trial.handles import Handle
from bench.trial.session import Session
from bench.trial.timings import Timings
from bench.trial.wallclock import WallClock
from bench.useranswers import Answer

USER = "user"
"""The benchmark user's display name."""

ROLL_TRIES, ROLL_PAUSE_S = 10, 0.2
"""To have everybody on a channel's roll."""

DONE = "DONE:"
"""How the orchestrator's last message begins (row R1)."""

PROFILE, MEMBERS = 0, 39002
LONGEST_NAME = 120


class ProvisioningFailed(BuzzbenchError):
    """A team could not be put in place: nobody's failure but the infrastructure's."""


@dataclass(frozen=True)
class Seat:
    """One agent's identity in a trial."""

    agent: Agent
    key: Key
    auth_tag: list[str] = field(repr=False)


@dataclass(frozen=True)
class Cast:
    """Who plays in a trial, and in which channel: chosen before anything is asked of the relay."""

    trial: str
    task: str
    channel: str
    user: Key
    seats: tuple[Seat, ...]

    @classmethod
    def draw(cls, session: Session, *, trial: str, task: str) -> Cast:
        """Fresh keys, attested by the owner, for a condition's agents, and a fresh channel id."""
        seats = []
        for agent in session.condition.agents:
            key = Key.generate()
            seats.append(Seat(agent, key, session.owner.attest(key.public)))
        return cls(trial, task, str(uuid.uuid4()), session.user, tuple(seats))

    @property
    def orchestrator(self) -> Seat:
        return next(seat for seat in self.seats if seat.agent.kind == "orchestrator")

    @property
    def main(self) -> Channel:
        """The trial's channel, with all in it."""
        return Channel(self.channel, _channel_name(self.task), USER, set(self.people))

    @property
    def people(self) -> dict[str, str]:
        """Public keys by name, the user's among them."""
        return {USER: self.user.public, **{seat.agent.name: seat.key.public for seat in self.seats}}

    def handle(self, condition_sha256: str) -> Handle:
        """What is kept of it in the database."""
        agents = {seat.agent.name: seat.key.public for seat in self.seats}
        return Handle(self.trial, self.task, self.channel, condition_sha256, self.user.public, agents)

    @property
    def subject(self) -> Subject:
        """Whom the evidence is about."""
        roster = tuple(
            Person(s.agent.name, s.key.public, s.agent.member, s.agent.kind, s.agent.role) for s in self.seats
        )
        return Subject(self.trial, self.task, self.channel, Person(USER, self.user.public), roster)


@dataclass
class Room:
    """A provisioned trial: connected, subscribed, ready for the task.

    `posted` is the event of the task, or of its newest step, once it is posted.
    """

    cast: Cast
    user: RelayClient
    clients: dict[str, RelayClient]
    inboxes: dict[str, Inbox]
    directory: Directory
    posted: Event | None = None
    done: asyncio.Future[Event] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    """The event by which the orchestrator said that the work is done."""
    done_seen_at: float | None = None
    """When that event was seen, in Unix seconds."""
    seen_at: dict[str, float] = field(default_factory=dict)
    """When each event was seen, in Unix seconds, by id."""
    on_sign: Callable[[Event], None] | None = None
    """Called for whatever arrives, typing and the like included, which are no part of the evidence."""
    posted_at: float = math.inf
    """When that was posted, in Unix seconds."""
    heeds: Callable[[Event], bool] | None = None
    """Whether a `DONE:` of the orchestrator is one of the step that is under way, where that may be doubtful."""
    roams: bool = False
    """Whether agents may be in channels that nobody here was told of."""
    own: set[str] = field(default_factory=set)
    """The ids of what we have said with the user's key."""
    answers: Sequence[Answer] = ()
    """What the user answers (the task's `user.yaml`)."""
    asked: asyncio.Queue[Event] = field(default_factory=asyncio.Queue)
    """What agents have said to the user in the trial's channel, in order of arrival."""
    clock: WallClock = field(default_factory=WallClock)
    """By which `seen_at` and the like are."""
    answered: Counter[int] = field(default_factory=Counter)
    """How often each of the answers was given."""
    _watches: list[Subscription] = field(default_factory=list)

    async def watch(self, channel: Channel, client: RelayClient) -> None:
        """Note every event of a channel as it arrives, through a member of it."""
        kinds = [*events.CHANNEL_KINDS, *events.SIGNS_OF_LIFE]
        self._watches.append(await client.subscribe({"kinds": kinds, "#h": [channel.id]}, self._saw))

    async def joined(self, name: str, channel: str) -> None:
        """Watch a channel that an agent is added to by somebody whom we don't see act."""
        if self.roams and channel not in self.directory.channels:
            self.directory.channels[channel] = found = Channel(channel, "", name)
            await self.watch(found, self.clients[name])

    def _saw(self, event: Event) -> None:
        if self.on_sign is not None:
            self.on_sign(event)
        if events.is_ephemeral(event):
            return
        known = event["id"] in self.seen_at
        if not known and self._asks_user(event):
            self.asked.put_nowait(event)
        self.seen_at.setdefault(event["id"], time.time())
        self.directory.saw(event)
        if not self.done.done() and not known and self._says_done(event) and (not self.heeds or self.heeds(event)):
            self.done_seen_at = time.time()
            self.done.set_result(event)

    def _says_done(self, event: Event) -> bool:
        return (
            event["content"].startswith(DONE)
            and event["kind"] in (events.MESSAGE, events.MESSAGE_V2, events.EDIT)
            and event["pubkey"] == self.cast.orchestrator.key.public
            and tag_value(event, "h") == self.cast.channel
        )

    def _asks_user(self, event: Event) -> bool:
        """Whether an agent mentions the user with something else than `DONE:`."""
        return (
            event["kind"] in (events.MESSAGE, events.MESSAGE_V2)
            and event["pubkey"] in {seat.key.public for seat in self.cast.seats}
            and self.cast.user.public in tag_values(event, "p")
            and tag_value(event, "h") == self.cast.channel
            and not event["content"].startswith(DONE)
        )

    def listen_anew(self) -> None:
        """Wait for the end of a further step, after those that were said before."""
        self.done = asyncio.get_running_loop().create_future()
        self.posted, self.posted_at, self.done_seen_at = None, math.inf, None

    async def post(self, instruction: str) -> None:
        """Post the task, or a step of it, as the user's mention of the orchestrator."""
        self.posted, self.posted_at = self._to_orchestrator(instruction), time.time()
        await publish(self.user, self.posted)

    async def remind(self, text: str) -> None:
        """Say something more to the orchestrator as the user."""
        await publish(self.user, self._to_orchestrator(text))

    async def answer(self, question: Event, text: str) -> None:
        """Answer a question as the user, in its thread, which mentions whoever asked."""
        await publish(self.user, self._by_user(text, events.message_tags(self.cast.channel, reply_to=question)))

    def _to_orchestrator(self, text: str) -> Event:
        tags = events.message_tags(self.cast.channel, mentions=[self.cast.orchestrator.key.public])
        return self._by_user(text, tags)

    def _by_user(self, text: str, tags: list[list[str]]) -> Event:
        event = self.cast.user.sign(events.MESSAGE, text, tags)
        self.own.add(event["id"])
        return event

    @property
    def everyone(self) -> tuple[RelayClient, ...]:
        return (self.user, *self.clients.values())

    @property
    def interrupted(self) -> bool:
        """Whether some connection is lost now."""
        return any(c.interruptions and c.interruptions[-1].back_at is None for c in self.everyone)

    @property
    def deaf(self) -> str:
        """Why the relay itself ended a subscription that the trial needs, empty where it didn't."""
        watches = (w.closed for w in self._watches if w.closed and is_trouble(w.closed))
        return next(watches, "") or next((i.deaf for i in self.inboxes.values() if i.deaf), "")

    @property
    def interruptions_survived(self) -> bool:
        """Whether some connection was lost and is back, nothing having been missed."""
        return any(i.back_at is not None for client in self.everyone for i in client.interruptions)


@asynccontextmanager
async def provisioned(session: Session, cast: Cast, timings: Timings) -> AsyncIterator[Room]:
    """The room of a trial, closed at the end. Raises ProvisioningFailed, RelayRefused or RelayGone."""
    url = session.provisioner.relay_ws_url

    def client(key: Key, auth_tag: Sequence[str]) -> RelayClient:
        return RelayClient(url, key, auth_tag=auth_tag, session=session.http, gone_after_s=PATIENCE_S)

    user = client(session.user, session.user_tag)
    clients = {seat.agent.name: client(seat.key, seat.auth_tag) for seat in cast.seats}
    room = Room(cast, user, clients, {}, Directory(cast.people, cast.main))
    room.inboxes |= {name: Inbox(c, functools.partial(room.joined, name)) for name, c in clients.items()}
    try:
        with timings.step("connect"):
            await asyncio.gather(user.connect(), *(_for(s, clients[s.agent.name].connect()) for s in cast.seats))
        await _furnish(session, room, timings)
        yield room
    finally:
        with timings.step("close"):
            for inbox in room.inboxes.values():
                inbox.close()
            await asyncio.gather(*(c.close() for c in room.everyone), return_exceptions=True)


async def _furnish(session: Session, room: Room, timings: Timings) -> None:
    cast, main = room.cast, room.directory.main
    with timings.step("create"):
        tags = [["h", main.id], ["name", main.name], ["visibility", "private"], ["channel_type", "stream"]]
        await publish(room.user, cast.user.sign(events.CREATE_CHANNEL, "", tags))
    with timings.step("members"):
        profiles = {seat.agent.name: _profile(seat.key, seat.agent.name, seat.auth_tag) for seat in cast.seats}
        await asyncio.gather(
            room.watch(main, room.user),
            _introduce(session, room.user),
            _admit(room, cast.seats),
            *(_for(s, publish(room.clients[s.agent.name], profiles[s.agent.name])) for s in cast.seats),
        )
        for profile in profiles.values():
            room.directory.saw(profile)
    with timings.step("subscribe"):
        inboxes = (_for(seat, room.inboxes[seat.agent.name].open(main.id)) for seat in cast.seats)
        await asyncio.gather(read_back(room), *inboxes)


def _profile(key: Key, name: str, *tags: Sequence[str]) -> Event:
    return key.sign(PROFILE, json.dumps({"display_name": name, "name": name}), [list(tag) for tag in tags])


async def _introduce(session: Session, user: RelayClient) -> None:
    """The user is the same in every trial, so its profile is set once for the job.

    It has no attestation, which would make an agent of the user: buzz-acp then tells those that it runs nothing of how
    people are answered.
    """
    if not session.introduced:
        await publish(user, _profile(session.user, USER))
        session.introduced = True


def _membership(room: Room, seat: Seat) -> Event:
    tags = [["h", room.cast.channel], ["p", seat.key.public], ["role", "bot"]]
    return room.cast.user.sign(events.ADD_MEMBER, "", tags)


async def _admit(room: Room, seats: Iterable[Seat]) -> None:
    """Add them to the trial's channel, one after the other: of two at once, Buzz's relay may lose one from its roll."""
    for seat in seats:
        await _for(seat, publish(room.user, _membership(room, seat)))


async def read_back(room: Room) -> None:
    """See that what every key wrote can be read, and that the channel's roll has everybody. Raises ProvisioningFailed.

    That each key can read, its inbox proves. By the roll agents find their channel, and Buzz's programs whom they may
    mention; who isn't on it is added again.
    """
    seats = {seat.key.public: seat for seat in room.cast.seats}
    profiles = {"kinds": [PROFILE], "authors": list(seats)}
    roll = {"kinds": [MEMBERS], "#d": [room.cast.channel]}
    found = await room.user.query([profiles, roll])
    if missing := seats.keys() - {event["pubkey"] for event in found if event["kind"] == PROFILE}:
        raise ProvisioningFailed(f"the relay took the profile of {_names(seats, missing)} but doesn't give it back")
    for _ in range(ROLL_TRIES):
        if not (missing := seats.keys() - _on_roll(found)):
            return
        await asyncio.sleep(ROLL_PAUSE_S)
        await _admit(room, (seats[public] for public in missing))
        found = await room.user.query([roll])
    if missing := seats.keys() - _on_roll(found):
        raise ProvisioningFailed(
            f"the relay took {_names(seats, missing)} into the channel but doesn't list them there"
        )


def _on_roll(found: Iterable[Event]) -> set[str]:
    newest = max((e for e in found if e["kind"] == MEMBERS), key=lambda e: int(e["created_at"]), default=None)
    return set(tag_values(newest, "p")) if newest else set()


def _names(seats: Mapping[str, Seat], publics: Iterable[str]) -> str:
    return ", ".join(sorted(seats[public].agent.name for public in publics))


def _channel_name(task: str) -> str:
    return task[:LONGEST_NAME] or "task"


async def _for(seat: Seat, step: Awaitable[object]) -> None:
    """The agent's step; a refusal says whose it is."""
    try:
        await step
    except RelayRefused as error:
        raise ProvisioningFailed(f"{seat.agent.name}: {error}") from error


async def collect(room: Room) -> list[Event]:
    """Every event of the trial, in order of arrival as far as it was seen live; what wasn't is put in by its time.

    The user reads the trial's channel; a channel that agents made is read through the key that made it.
    """
    if room.roams:
        await _discover(room)
    readers: dict[str, list[str]] = {}
    for channel in room.directory.channels.values():
        readers.setdefault(channel.creator, []).append(channel.id)
    answers = await asyncio.gather(*(_read(room, name, ids) for name, ids in readers.items()))
    stored = {event["id"]: event for events_of in answers for event in events_of}
    late = [event for event in stored.values() if event["id"] not in room.directory.arrived]
    return order.put_in(list(room.directory.arrived.values()), late)


async def _discover(room: Room) -> None:
    """Add the channels that agents are in and that were made without us, each to be read through who is in it now."""
    for name, client in room.clients.items():
        for roll in await client.query([{"kinds": [MEMBERS], "#p": [client.key.public]}]):
            channel = tag_value(roll, "d")
            if channel and channel != room.cast.channel:
                members = {room.directory.name(public) for public in tag_values(roll, "p")}
                room.directory.channels[channel] = Channel(channel, "", name, members)


async def _read(room: Room, name: str, channels: list[str]) -> list[Event]:
    reader = room.user if name == USER else room.clients[name]
    filters = [{"kinds": [*events.CHANNEL_KINDS], "#h": [channel]} for channel in channels]
    filters += [{"kinds": [39000, 39001, MEMBERS], "#d": channels}]
    return await reader.query(filters)


def strangers(room: Room) -> list[Event]:
    """Messages in the trial's channels that the user's key signed and we did not post: somebody meddled (row G2)."""
    spoken = {*events.MESSAGE_KINDS, events.EDIT}
    return [
        event
        for event in room.directory.arrived.values()
        if event["pubkey"] == room.cast.user.public
        and event["kind"] in spoken
        and event["id"] not in room.own
        and tag_value(event, "h") in room.directory.channels
    ]
