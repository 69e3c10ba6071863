"""The kinds of a team's events, and how their threads are tagged (BUZZ.md section 3). Pure."""

from __future__ import annotations

from collections.abc import Sequence

from bench.nostr import Event

MESSAGE, MESSAGE_V2, EDIT, REACTION = 9, 40002, 40003, 7
MESSAGE_KINDS = (9, 40002, 40008, 45001, 45003)
"""Messages, diffs, forum posts and comments."""

CHANNEL_KINDS = (
    *(5, 7, 9, 1063, 1984, 9000, 9001, 9002, 9005, 9007, 9008, 9009, 9021, 9022, 39000, 39001, 39002),
    *(40002, 40003, 40004, 40005, 40006, 40007, 40008, 40099, 40100, 41001, 41010, 41011, 41012),
    *(43001, 43002, 43003, 43004, 43005, 43006, 45001, 45002, 45003),
    *(46001, 46002, 46003, 46004, 46005, 46006, 46007, 46010, 46011, 46012, 46020, 46030, 46031),
    *(48100, 48101, 48102, 48103, 48106),
)
"""All that Buzz keeps in a channel. A query that names no kinds asks for what only its owner may read, and its relay
refuses that (measured)."""

SIGNS_OF_LIFE = (20002,)
"""What is seen of a channel besides, and kept by nobody: that somebody's turn is under way."""

CREATE_CHANNEL, ADD_MEMBER, REMOVE_MEMBER = CHANNEL_ORDERS = 9007, 9000, 9001
ADDED_NOTICE, REMOVED_NOTICE = 44100, 44101


def is_ephemeral(event: Event) -> bool:
    """Whether nobody stores it (NIP-01): presence, typing."""
    return 20000 <= int(event["kind"]) < 30000


def thread_of(event: Event) -> tuple[str | None, str | None]:
    """(root, parent) of a message; the root of a direct reply is its parent; (None, None) outside threads."""
    marked = {tag[3]: tag[1] for tag in event["tags"] if len(tag) > 3 and tag[0] == "e"}
    parent = marked.get("reply")
    return marked.get("root") or parent, parent


def message_tags(channel: str, *, mentions: Sequence[str] = (), reply_to: Event | None = None) -> list[list[str]]:
    """The tags of a message. A reply also mentions whom it answers: filters on `p` would miss it else (case 32)."""
    people = list(mentions)
    tags = [["h", channel]]
    if reply_to is not None:
        root, _ = thread_of(reply_to)
        if root is not None:
            tags.append(["e", root, "", "root"])
        tags.append(["e", reply_to["id"], "", "reply"])
        people.append(reply_to["pubkey"])
    return tags + [["p", public] for public in dict.fromkeys(people)]
