"""What the team said and did on the relay, derived from its signed events alone. Pure.

The form is ARCHITECTURE's `buzzbench-evidence-1`. Events come in order of arrival, and what is drawn from one has its
number among them as `seq`; names stand for keys, and a key that nobody of the trial has stays hex.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from bench.harness.events import (
    ADD_MEMBER,
    CREATE_CHANNEL,
    EDIT,
    MESSAGE_KINDS,
    REACTION,
    REMOVE_MEMBER,
    thread_of,
)
from bench.nostr import Event, tag_value, tag_values, verified

SCHEMA = "buzzbench-evidence-1"

MEMBERSHIP_KINDS = frozenset({ADD_MEMBER, REMOVE_MEMBER, 9021, 9022})
DELETION_KIND = 5
CHANNEL_KIND, MEMBERS_KIND = 39000, 39002

KEY, NO_KEY = re.compile("[0-9a-f]{64}"), "?"
"""A key in hex, and what stands for a text in its place that is none."""

type Numbered = Mapping[int, Event]
"""Events by their number in order of arrival."""


@dataclass(frozen=True)
class Person:
    """One key with a name in the trial: a roster member, or the user."""

    name: str
    public: str
    member: str = ""
    kind: str = ""
    role: str = ""


@dataclass(frozen=True)
class Part:
    """The part of a trial in which the team was at one step of its task; `posted` is the id of that step's message."""

    name: str
    number: int
    of: int
    posted: str | None

    def among(self, events: Sequence[Event]) -> dict[str, Any]:
        """As evidence has it: `since` is the `seq` of the step's own message, that of the next event without one."""
        since = next((number for number, event in enumerate(events) if event["id"] == self.posted), len(events))
        return {"name": self.name, "number": self.number, "of": self.of, "since": since}


@dataclass(frozen=True)
class Subject:
    """Whom and what the evidence is about."""

    trial: str
    task: str
    channel: str
    user: Person
    roster: tuple[Person, ...]


def build(
    subject: Subject, events: Iterable[Event], unexplained: Iterable[str] = (), step: Part | None = None
) -> dict[str, Any]:
    """The evidence as it goes into the file. Events with a wrong id or signature are listed and not drawn from.

    `unexplained` are the ids of events that an agent's key signed while the agent was not at work. `step` is the one
    of the task's steps that is judged; what was said in earlier ones is there as well.
    """
    arrived = _unique(events)
    invalid = {event["id"] for event in arrived if not verified(event)}
    valid = {number: event for number, event in enumerate(arrived) if event["id"] not in invalid}
    names = {p.public: p.name for p in (subject.user, *subject.roster)}
    return {
        "schema": SCHEMA,
        "trial": subject.trial,
        "task": subject.task,
        "channel": subject.channel,
        "user": {"name": subject.user.name, "public": subject.user.public},
        "roster": [
            {"name": p.name, "member": p.member, "kind": p.kind, "role": p.role, "public": p.public}
            for p in subject.roster
        ],
        "channels": channels(list(valid.values()), names),
        "messages": messages(valid, names),
        "edits": edits(valid, names),
        "reactions": reactions(valid, names),
        "memberships": memberships(valid, names),
        "step": step and step.among(arrived),
        "events": arrived,
        "invalid": sorted(invalid),
        "unexplained": list(unexplained),
    }


def messages(events: Numbered, names: Mapping[str, str]) -> list[dict[str, Any]]:
    """Every message, with its first text and its latest: an edit counts only where the author signed it."""
    latest = {(edit["target"], edit["author"]): edit["text"] for edit in edits(events, names)}
    found: list[dict[str, Any]] = []
    for number, event in events.items():
        if event["kind"] not in MESSAGE_KINDS:
            continue
        root, parent = thread_of(event)
        author = _name(names, event["pubkey"])
        edited = latest.get((event["id"], author))
        found.append(
            {
                "id": event["id"],
                "seq": number,
                "author": author,
                "channel": tag_value(event, "h"),
                "kind": event["kind"],
                "text": event["content"] if edited is None else edited,
                "first_text": event["content"],
                "mentions": [_name(names, key) for key in dict.fromkeys(tag_values(event, "p"))],
                "root": root,
                "parent": parent,
                "edited": edited is not None,
                "created_at": event["created_at"],
            }
        )
    return found


def edits(events: Numbered, names: Mapping[str, str]) -> list[dict[str, Any]]:
    """Every edit, whoever signed it."""
    return [
        {
            "id": event["id"],
            "seq": number,
            "author": _name(names, event["pubkey"]),
            "target": tag_value(event, "e"),
            "text": event["content"],
        }
        for number, event in events.items()
        if event["kind"] == EDIT
    ]


def reactions(events: Numbered, names: Mapping[str, str]) -> list[dict[str, Any]]:
    """Every reaction that its author didn't take back."""
    taken_back = {
        (target, event["pubkey"])
        for event in events.values()
        if event["kind"] == DELETION_KIND
        for target in tag_values(event, "e")
    }
    return [
        {
            "id": event["id"],
            "seq": number,
            "author": _name(names, event["pubkey"]),
            "target": tag_value(event, "e"),
            "emoji": event["content"],
        }
        for number, event in events.items()
        if event["kind"] == REACTION and (event["id"], event["pubkey"]) not in taken_back
    ]


def memberships(events: Numbered, names: Mapping[str, str]) -> list[dict[str, Any]]:
    """Every accepted order to add or remove a member; who joins or leaves is its own target."""
    return [
        {
            "id": event["id"],
            "seq": number,
            "kind": event["kind"],
            "author": _name(names, event["pubkey"]),
            "channel": tag_value(event, "h"),
            "target": _name(names, tag_value(event, "p") or event["pubkey"]),
        }
        for number, event in events.items()
        if event["kind"] in MEMBERSHIP_KINDS
    ]


def channels(events: Sequence[Event], names: Mapping[str, str]) -> list[dict[str, Any]]:
    """Every channel with its last known name and members, from the relay's own lists (39000 and 39002).

    A relay takes those kinds from nobody else (BUZZ.md section 3), so that their signer needs no check here. Who has
    signed the order to make it is its `creator`, None where that order is not among the events.
    """
    creators = {tag_value(e, "h"): _name(names, e["pubkey"]) for e in events if e["kind"] == CREATE_CHANNEL}
    titles: dict[str, str] = {}
    members: dict[str, list[str]] = {}
    for event in sorted(events, key=lambda e: int(e["created_at"])):
        channel = tag_value(event, "d")
        if channel is None:
            continue
        if event["kind"] == CHANNEL_KIND:
            titles[channel] = tag_value(event, "name") or ""
        elif event["kind"] == MEMBERS_KIND:
            members[channel] = [_name(names, key) for key in tag_values(event, "p")]
    return [
        {"id": c, "name": titles.get(c, ""), "creator": creators.get(c), "members": members.get(c, [])}
        for c in titles | members
    ]


def encode(evidence: Mapping[str, Any]) -> bytes:
    """The file's bytes."""
    return orjson.dumps(evidence)


def sha256(encoded: bytes) -> str:
    return hashlib.sha256(encoded).hexdigest()


def _unique(events: Iterable[Event]) -> list[Event]:
    return list({event["id"]: event for event in events}.values())


def _name(names: Mapping[str, str], key: str) -> str:
    """A key's name, else the key in hex. A tag may hold any text, which mustn't pass for somebody's name."""
    return names.get(key) or (key if KEY.fullmatch(key) else NO_KEY)
