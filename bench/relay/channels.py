"""The state of a channel, and how the relay announces it. Pure: events in, values and signed events out.

A channel is whatever its newest 39000 and 39002 say: so the state is rebuilt from the store at boot. Forms: BUZZ.md
section 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import orjson

from bench.nostr import Event, Key, tag_value

METADATA, ADMINS, MEMBERS = 39000, 39001, 39002
SYSTEM_MESSAGE = 40099
MEMBER_ADDED, MEMBER_REMOVED = 44100, 44101
ROLES = frozenset({"owner", "admin", "member", "guest", "bot"})
ELEVATED = frozenset({"owner", "admin"})


@dataclass(frozen=True)
class Channel:
    """One channel. `members` maps keys to roles in the order of joining; `version` is the created_at of its
    announcements, which grows with each change and may run ahead of the clock."""

    id: str
    name: str
    private: bool
    type: str = "stream"
    about: str = ""
    topic: str = ""
    purpose: str = ""
    archived: bool = False
    members: Mapping[str, str] = field(default_factory=dict)
    version: int = 0

    def may_read(self, public: str) -> bool:
        """Whether the key may read, and write, here."""
        return not self.private or public in self.members

    def may_manage(self, public: str) -> bool:
        """Whether the key is an owner or admin."""
        return self.members.get(public) in ELEVATED

    def with_member(self, public: str, role: str) -> Channel:
        return replace(self, members={**self.members, public: role})

    def without_member(self, public: str) -> Channel:
        return replace(self, members={k: r for k, r in self.members.items() if k != public})

    def announced(self, now: int) -> Channel:
        """The channel with the version of its next announcement."""
        return replace(self, version=max(now, self.version + 1))

    def announcements(self, relay: Key) -> tuple[Event, Event, Event]:
        """39000, 39001 and 39002, signed by the relay."""
        metadata = [["d", self.id], ["name", self.name]]
        if self.about:
            metadata.append(["about", self.about])
        metadata += [["private" if self.private else "public"], ["closed"], ["t", self.type]]
        if self.topic:
            metadata.append(["topic", self.topic])
        if self.purpose:
            metadata.append(["purpose", self.purpose])
        if self.archived:
            metadata.append(["archived", "true"])
        admins = [["p", public, role] for public, role in self.members.items() if role in ELEVATED]
        members = [["p", public, "", role] for public, role in self.members.items()]
        return (
            relay.sign(METADATA, "", metadata, self.version),
            relay.sign(ADMINS, "", [["d", self.id], *admins], self.version),
            relay.sign(MEMBERS, "", [["d", self.id], *members], self.version),
        )


def from_announcements(metadata: Event, members: Event) -> Channel:
    """The channel that its newest 39000 and 39002 describe."""
    flags = {tag[0] for tag in metadata["tags"]}
    return Channel(
        id=tag_value(metadata, "d") or "",
        name=tag_value(metadata, "name") or "",
        private="private" in flags,
        type=tag_value(metadata, "t") or "stream",
        about=tag_value(metadata, "about") or "",
        topic=tag_value(metadata, "topic") or "",
        purpose=tag_value(metadata, "purpose") or "",
        archived=tag_value(metadata, "archived") == "true",
        members={tag[1]: tag[3] for tag in members["tags"] if tag[0] == "p"},
        version=max(metadata["created_at"], members["created_at"]),
    )


def system_message(relay: Key, channel: str, now: int, **content: str) -> Event:
    """A 40099 for people to read: what happened, who did it, to whom."""
    text = orjson.dumps(content, option=orjson.OPT_SORT_KEYS).decode()
    return relay.sign(SYSTEM_MESSAGE, text, [["h", channel]], now)


def membership_notice(relay: Key, kind: int, channel: str, target: str, actor: str, now: int) -> Event:
    """A 44100 or 44101: tells one key that it was added to a channel, or removed from it."""
    what = "member_added" if kind == MEMBER_ADDED else "member_removed"
    content = {"actor": actor, "channel_id": channel, "type": what}
    return relay.sign(kind, orjson.dumps(content).decode(), [["p", target], ["h", channel]], now)
