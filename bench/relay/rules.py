"""Which events the relay takes, from whom, and what follows from them. Pure: an event and what is known, a decision.

Kinds, rules and texts: BUZZ.md section 3.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import orjson

from bench.nostr import Event, Key, tag_value, tag_values
from bench.relay.channels import (
    ELEVATED,
    MEMBER_ADDED,
    MEMBER_REMOVED,
    ROLES,
    Channel,
    membership_notice,
    system_message,
)
from bench.relay.protocol import CLOCK_WINDOW_S, HEX_32, Refused

PROFILE, DELETION, REACTION, MESSAGE = 0, 5, 7, 9
ADD_MEMBER, REMOVE_MEMBER, EDIT_CHANNEL, DELETE_MESSAGE = 9000, 9001, 9002, 9005
CREATE_CHANNEL, DELETE_CHANNEL, JOIN, LEAVE = 9007, 9008, 9021, 9022
AGENT_PROFILE, PRESENCE, TYPING, OBSERVER_CONTROL = 10100, 20001, 20002, 24200
EDIT_MESSAGE, DIFF, CANVAS, TURN_METRIC = 40003, 40008, 40100, 44200
PRESENCE_QUERY = 40902

CHANNEL_CHANGES = frozenset({ADD_MEMBER, REMOVE_MEMBER, EDIT_CHANNEL, CREATE_CHANNEL, DELETE_CHANNEL, JOIN, LEAVE})
MESSAGES = frozenset({MESSAGE, 40002, 40007, DIFF, 45001, 45002, 45003, CANVAS})
"""Messages, reminders, diffs, forum posts, votes and comments, and the canvas."""
GLOBAL = frozenset({PROFILE, 1, 3, AGENT_PROFILE, TURN_METRIC, 30023, 30174, 30177, 30315})
"""Of a person, not of a channel: profile, notes, contacts, policy, metric, articles, memory, managed agents, status."""
EPHEMERAL = frozenset({PRESENCE, TYPING, OBSERVER_CONTROL})
RELAY_ONLY = frozenset({13534, *range(39000, 39010), 40099, MEMBER_ADDED, MEMBER_REMOVED})
AIMED = frozenset({REACTION, DELETION, DELETE_MESSAGE, EDIT_MESSAGE})
"""Kinds that name another event, which has to be there."""
GATED = frozenset({MEMBER_ADDED, MEMBER_REMOVED, TURN_METRIC, OBSERVER_CONTROL, 1059, 30622})
"""Readable only by the key of the p tag."""
NO_ID_OPENS = frozenset({TURN_METRIC, 30622})
"""Gated also for those who know an event's id."""

MAX_EMOJI = 64
MAX_DIFF_BYTES = 60 * 1024
COMMIT = re.compile(r"[0-9a-fA-F]{7,}")
CHANNEL_TYPES = frozenset({"stream", "forum"})
VISIBILITIES = frozenset({"open", "private"})
MEMBERS_EDIT = frozenset({"topic", "purpose"})
MANAGERS_EDIT = frozenset({"name", "about", "archived", "visibility"})
"""Tags of a 9002, by who may give them."""

NOT_IN_CHANNEL = "restricted: not a channel member"
NO_CHANNEL = "invalid: channel-scoped events must include an h tag"


@dataclass(frozen=True)
class Stored:
    """What is known of an event that the relay has: enough to judge another one that names it."""

    id: str
    public: str
    kind: int
    channel: str | None
    root: str  # of the thread that it is in; its own id where it begins one

    @classmethod
    def of(cls, event: Event, channel: str | None) -> Self:
        """What is known of an event stored under that channel."""
        marked = marked_events(event)
        root = marked.get("root") or marked.get("reply") or event["id"]
        return cls(event["id"], event["pubkey"], event["kind"], channel, root)


@dataclass(frozen=True)
class Known:
    """What a decision may look at."""

    relay: Key
    now: int
    channel: Channel | None = None  # of the h tag, or of the event that is named
    target: Stored | None = None  # the event that is named
    owner: str | None = None  # of the author (44200) or of the p tag (9000, 9001), by NIP-OA
    policy: str = "anyone"  # channel_add_policy of the p tag (9000)
    used_before: bool = False  # a channel of that id existed (9007)
    reacted: bool = False  # the author's same reaction to the target is there (7)
    owns_target: bool = False  # the author is, by NIP-OA, the owner of the target's author (5, 9005, 40003)


@dataclass(frozen=True)
class Decision:
    """What to store, in the order in which subscribers see it: (event, channel) pairs. `after` is the channel's
    new state if it changes (`gone`: it ceases to be), `deletes` the ids of events that are taken back."""

    events: tuple[tuple[Event, str | None], ...]
    before: Channel | None = None
    after: Channel | None = None
    gone: bool = False
    deletes: tuple[str, ...] = ()


def check_author(event: Event, identity: str) -> None:
    """Raise Refused unless the event is of the key that sends it."""
    if event["pubkey"] != identity:
        raise Refused("invalid: event pubkey does not match authenticated identity", 403)


def check_kind(event: Event, *, now: float, websocket: bool) -> None:
    """Raise Refused where kind or time alone decide. Cheap: it comes before the signature."""
    kind = event["kind"]
    if abs(event["created_at"] - now) > CLOCK_WINDOW_S:
        raise Refused(f"invalid: created_at is more than {CLOCK_WINDOW_S} s from the relay's clock")
    if kind in EPHEMERAL:
        if not websocket:
            raise Refused(f"invalid: kind {kind} is only accepted via WebSocket")
    elif kind in RELAY_ONLY:
        raise Refused(f"restricted: kind {kind} is signed by the relay only")
    elif kind not in CHANNEL_CHANGES | MESSAGES | GLOBAL | AIMED:
        raise Refused("restricted: unknown event kind")


def named_event(event: Event) -> str | None:
    """The id of the event that this one is about and that has to be there: a target, or the parent of a reply."""
    if event["kind"] in AIMED:
        targets = tag_values(event, "e")
        if len(targets) != 1 or not HEX_32.fullmatch(targets[0]):
            raise Refused(f"invalid: kind {event['kind']} names exactly one event (e tag)")
        return targets[0]
    if event["kind"] in MESSAGES:
        return marked_events(event).get("reply")
    return None


def marked_events(event: Event) -> dict[str, str]:
    """The ids of the e tags with a marker (NIP-10), by the marker; what is no id is passed over."""
    tags = (tag for tag in event["tags"] if tag[0] == "e" and len(tag) > 3)
    return {tag[3]: tag[1] for tag in tags if HEX_32.fullmatch(tag[1])}


def emoji_of(reaction: Event) -> str:
    """What a reaction says; nothing is a plus (NIP-25)."""
    return str(reaction["content"]) or "+"


def channel_of(event: Event, target: Stored | None) -> str | None:
    """The id of the channel that the event belongs to; reactions and deletions inherit their target's."""
    if event["kind"] in (REACTION, DELETION):
        return target.channel if target else None
    return None if event["kind"] in GLOBAL else tag_value(event, "h")


def decide(event: Event, known: Known) -> Decision:
    """What follows from a verified event. Raises Refused."""
    kind = event["kind"]
    check_content(event)
    if kind == TURN_METRIC and (known.owner is None or tag_value(event, "p") != known.owner):
        raise Refused("restricted: the p tag of a turn metric is not the agent's owner", 403)
    if kind in GLOBAL or kind in (OBSERVER_CONTROL, PRESENCE):
        return Decision(((event, None),))
    if kind in (REACTION, DELETION):
        target = _target(event, known)
        if target.channel is None:
            return Decision(((event, None),), deletes=(target.id,) if kind == DELETION else ())
    if kind == CREATE_CHANNEL:
        return _create(event, known)
    return CHANGES.get(kind, _say)(event, _channel(event, known), known)


def check_content(event: Event) -> None:
    """Raise Refused where a kind asks for more of its content or tags than others, and they lack it."""
    kind, content = event["kind"], event["content"]
    if kind == PROFILE:
        try:
            orjson.loads(content)
        except orjson.JSONDecodeError:
            raise Refused("invalid: the content of a profile is not JSON") from None
    if kind == REACTION and len(content) > MAX_EMOJI:
        raise Refused(f"invalid: a reaction has {MAX_EMOJI} characters at most")
    if kind == DIFF:
        if not (tag_value(event, "repo") or "").startswith(("http://", "https://")):
            raise Refused("invalid: a diff needs a repo tag with an http or https URL")
        if not COMMIT.fullmatch(tag_value(event, "commit") or ""):
            raise Refused("invalid: a diff needs a commit tag of 7 hex digits or more")
        if len(content.encode()) > MAX_DIFF_BYTES:
            raise Refused(f"invalid: a diff has {MAX_DIFF_BYTES} bytes at most")


def _target(event: Event, known: Known) -> Stored:
    """What a reaction or a deletion is of. Raises Refused."""
    if known.target is None:
        what = "reaction" if event["kind"] == REACTION else "deletion"
        raise Refused(f"invalid: {what} target event not found")
    if event["kind"] == DELETION and known.target.public != event["pubkey"] and not known.owns_target:
        raise Refused("invalid: only the author may delete an event")
    return known.target


def _channel(event: Event, known: Known) -> Channel:
    """The channel that the author may act in. Raises Refused."""
    kind, channel = event["kind"], known.channel
    if channel is None and kind not in (REACTION, DELETION) and tag_value(event, "h") is None:
        raise Refused(NO_CHANNEL)
    if channel is None or not _may_act(event, channel):
        raise Refused(NOT_IN_CHANNEL)
    unarchives = kind == EDIT_CHANNEL and tag_value(event, "archived") == "false"
    if channel.archived and not unarchives and kind != TYPING:
        raise Refused("invalid: channel is archived")
    return channel


def _may_act(event: Event, channel: Channel) -> bool:
    """Members may; in an open channel anyone may write, join and let others join."""
    kind = event["kind"]
    return event["pubkey"] in channel.members or (
        not channel.private and (kind in (JOIN, ADD_MEMBER) or kind not in CHANNEL_CHANGES)
    )


def _changed(
    event: Event, before: Channel | None, after: Channel, known: Known, *notes: Event, first: Sequence[Event] = ()
) -> Decision:
    """The order that subscribers see on a change: 40099, 39000, 39001, 39002, notices, then the event itself."""
    after = after.announced(known.now)
    events: list[tuple[Event, str | None]] = [(each, after.id) for each in first]
    events += [(each, after.id) for each in after.announcements(known.relay)]
    events += [(each, None) for each in notes]
    return Decision((*events, (event, after.id)), before=before, after=after)


def _create(event: Event, known: Known) -> Decision:
    identity = tag_value(event, "h")
    if identity is None:
        raise Refused(NO_CHANNEL)
    try:
        canonical = str(uuid.UUID(identity))
    except ValueError:
        canonical = ""
    if canonical != identity:
        raise Refused("invalid: the h tag of a new channel is not a UUID")
    if known.channel is not None or known.used_before:
        raise Refused("duplicate: channel already exists", 200)
    visibility = tag_value(event, "visibility") or "open"
    kind = tag_value(event, "channel_type") or "stream"
    _check_visibility(visibility)
    if kind not in CHANNEL_TYPES:
        raise Refused(f"invalid: channel_type is not one of {', '.join(sorted(CHANNEL_TYPES))}")
    actor = event["pubkey"]
    channel = Channel(
        id=identity,
        name=_name(tag_value(event, "name")),
        private=visibility == "private",
        type=kind,
        about=tag_value(event, "about") or "",
        members={actor: "owner"},
    )
    told = system_message(known.relay, identity, known.now, type="channel_created", actor=actor)
    notice = membership_notice(known.relay, MEMBER_ADDED, identity, actor, actor, known.now)
    return _changed(event, None, channel, known, notice, first=[told])


def _add(event: Event, channel: Channel, known: Known) -> Decision:
    actor, relay, now = event["pubkey"], known.relay, known.now
    target = actor if event["kind"] == JOIN else tag_value(event, "p")
    if target is None or not HEX_32.fullmatch(target):
        raise Refused("invalid: the p tag names no key")
    held = channel.members.get(target)
    if held is not None and event["kind"] == JOIN:
        return Decision(((event, channel.id),))
    manages = channel.may_manage(actor)
    if channel.private and target != actor and not manages:
        raise Refused("invalid: only an owner or admin may add others to a private channel")
    role = (None if event["kind"] == JOIN else tag_value(event, "role")) or held or "member"
    if role not in ROLES:
        raise Refused(f"invalid: role is not one of {', '.join(sorted(ROLES))}")
    changes = role != held if held is not None else role in ELEVATED
    if changes and not manages:
        raise Refused("invalid: only an owner or admin may change a role or grant an elevated one")
    if role != "owner":
        _keep_an_owner(channel, target)
    admits = known.policy == "anyone" or (known.policy == "owner_only" and actor == known.owner)
    if target != actor and not admits:
        raise Refused(f"invalid: the key's profile lets it be added by {known.policy}")
    # Who is a member already is told of again, too.
    told = system_message(relay, channel.id, now, type="member_joined", actor=actor, target=target)
    notice = membership_notice(relay, MEMBER_ADDED, channel.id, target, actor, now)
    return _changed(event, channel, channel.with_member(target, role), known, notice, first=[told])


def _keep_an_owner(channel: Channel, leaving: str) -> None:
    """Raise Refused where a channel would be left without an owner."""
    if [public for public, role in channel.members.items() if role == "owner"] == [leaving]:
        raise Refused("invalid: the last owner of a channel stays its owner")


def _remove(event: Event, channel: Channel, known: Known) -> Decision:
    actor, relay, now = event["pubkey"], known.relay, known.now
    target = actor if event["kind"] == LEAVE else tag_value(event, "p")
    if target is None or not HEX_32.fullmatch(target):
        raise Refused("invalid: the p tag names no key")
    if target not in channel.members and not (target != actor and channel.may_manage(actor)):
        raise Refused("invalid: the key to remove is no member")
    if target != actor and not channel.may_manage(actor) and known.owner != actor:
        raise Refused("invalid: only an owner, an admin or the agent's owner may remove a member")
    if target not in channel.members:
        return Decision(((event, channel.id),))
    _keep_an_owner(channel, target)
    if event["kind"] == LEAVE:
        told = system_message(relay, channel.id, now, type="member_left", actor=actor)
    else:
        what = "member_left" if target == actor else "member_removed"
        told = system_message(relay, channel.id, now, type=what, actor=actor, target=target)
    notice = membership_notice(relay, MEMBER_REMOVED, channel.id, target, actor, now)
    return _changed(event, channel, channel.without_member(target), known, notice, first=[told])


def _edit(event: Event, channel: Channel, known: Known) -> Decision:
    actor, relay = event["pubkey"], known.relay
    given = {name: value for name in (*MANAGERS_EDIT, *MEMBERS_EDIT) if (value := tag_value(event, name)) is not None}
    if not given:
        raise Refused(f"invalid: give one of {', '.join(sorted(MANAGERS_EDIT | MEMBERS_EDIT))}")
    if not given.keys() <= MEMBERS_EDIT and not channel.may_manage(actor):
        raise Refused(f"invalid: only an owner or admin may change {', '.join(sorted(MANAGERS_EDIT))}")
    if given.get("archived", "true") not in ("true", "false"):
        raise Refused("invalid: archived is neither true nor false")
    _check_visibility(given.get("visibility", "open"))
    after = replace(
        channel,
        name=_name(given.get("name", channel.name)),
        about=given.get("about", channel.about),
        topic=given.get("topic", channel.topic),
        purpose=given.get("purpose", channel.purpose),
        private=given["visibility"] == "private" if "visibility" in given else channel.private,
        archived=given["archived"] == "true" if "archived" in given else channel.archived,
    )
    told = [
        system_message(relay, channel.id, known.now, type=f"{name}_changed", actor=actor, **{name: given[name]})
        for name in ("topic", "purpose", "visibility")
        if name in given
    ]
    if after.archived != channel.archived:
        what = "channel_archived" if after.archived else "channel_unarchived"
        told.append(system_message(relay, channel.id, known.now, type=what, actor=actor))
    if after == channel and not told:
        return Decision(((event, channel.id),))
    # Who had given the channel up comes back to it as one who is added.
    back = channel.members if channel.archived and not after.archived else ()
    notes = [membership_notice(relay, MEMBER_ADDED, channel.id, each, actor, known.now) for each in back]
    return _changed(event, channel, after, known, *notes, first=told)


def _check_visibility(given: str) -> None:
    if given not in VISIBILITIES:
        raise Refused("invalid: visibility is neither open nor private")


def _name(given: str | None) -> str:
    """The name of a channel. Raises Refused where it has none."""
    if given is None or not given.lstrip("#").strip():
        raise Refused("invalid: a channel needs a name")
    return given


def _delete(event: Event, channel: Channel, known: Known) -> Decision:
    if channel.members.get(event["pubkey"]) != "owner":
        raise Refused("invalid: only an owner may delete a channel")
    return Decision(((event, channel.id),), before=channel, gone=True)


def _revise(event: Event, channel: Channel, known: Known) -> Decision:
    kind, actor, target = event["kind"], event["pubkey"], known.target
    what = "edit" if kind == EDIT_MESSAGE else "deletion"
    if target is None or target.channel != channel.id:
        raise Refused(f"invalid: {what} target event not found")
    if kind == EDIT_MESSAGE:
        if target.public != actor and not known.owns_target:
            raise Refused("invalid: only the author may edit a message")
        return Decision(((event, channel.id),))
    if kind == DELETION:
        return Decision(((event, channel.id),), deletes=(target.id,))
    moderates = target.public != actor or tag_value(event, "public_reason") is not None
    if moderates and not channel.may_manage(actor) and not known.owns_target:
        raise Refused("invalid: only the author, an owner or an admin may delete a message")
    content = {"type": "message_deleted", "actor": actor, "target_event_id": target.id}
    told = system_message(known.relay, channel.id, known.now, **content)
    return Decision(((told, channel.id), (event, channel.id)), deletes=(target.id,))


def _say(event: Event, channel: Channel, known: Known) -> Decision:
    if event["kind"] == REACTION:
        if known.reacted:
            raise Refused("duplicate: reaction already exists", 200)
        return Decision(((event, channel.id),))
    parent, target = named_event(event), known.target
    if parent is not None:
        if target is None:
            raise Refused("invalid: the event replied to is not there")
        if target.channel != channel.id:
            raise Refused("invalid: the event replied to is not in this channel")
        if marked_events(event).get("root", parent) != target.root:
            raise Refused("invalid: the root tag is not the root of the thread that is replied to")
    return Decision(((event, channel.id),))


CHANGES = {
    **dict.fromkeys((ADD_MEMBER, JOIN), _add),
    **dict.fromkeys((REMOVE_MEMBER, LEAVE), _remove),
    EDIT_CHANNEL: _edit,
    DELETE_CHANNEL: _delete,
    **dict.fromkeys((DELETE_MESSAGE, EDIT_MESSAGE, DELETION), _revise),
}
"""By kind, what an event does to its channel; all others are only said in it."""
