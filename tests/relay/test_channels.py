"""A channel's announcements: the forms that Buzz's programs read, and the state that comes back out of them."""

from __future__ import annotations

import json

from bench.nostr import Key, verified
from bench.relay.channels import (
    MEMBER_ADDED,
    MEMBER_REMOVED,
    Channel,
    from_announcements,
    membership_notice,
    system_message,
)

RELAY = Key.generate()
ROOM = Channel(
    id="c7d37b60-4e98-4504-ad15-b5505e57cb14",
    name="room",
    private=True,
    about="e2e",
    topic="today",
    archived=True,
    members={"aa": "owner", "bb": "admin", "cc": "member", "dd": "bot"},
    version=1_796_029_328,
)


def test_the_announcements_have_the_forms_of_the_wire() -> None:
    metadata, admins, members = ROOM.announcements(RELAY)
    assert [e["kind"] for e in (metadata, admins, members)] == [39000, 39001, 39002]
    assert metadata["tags"] == [
        ["d", ROOM.id],
        ["name", "room"],
        ["about", "e2e"],
        ["private"],
        ["closed"],
        ["t", "stream"],
        ["topic", "today"],
        ["archived", "true"],
    ]
    assert admins["tags"] == [["d", ROOM.id], ["p", "aa", "owner"], ["p", "bb", "admin"]]
    assert members["tags"][1:] == [
        ["p", "aa", "", "owner"],
        ["p", "bb", "", "admin"],
        ["p", "cc", "", "member"],
        ["p", "dd", "", "bot"],
    ]
    for event in (metadata, admins, members):
        assert verified(event)
        assert (event["pubkey"], event["created_at"]) == (RELAY.public, ROOM.version)


def test_an_open_channel_without_extras_is_announced_plainly() -> None:
    metadata, _, _ = Channel("id", "n", private=False).announcements(RELAY)
    assert metadata["tags"] == [["d", "id"], ["name", "n"], ["public"], ["closed"], ["t", "stream"]]


def test_the_state_comes_back_out_of_the_announcements() -> None:
    for channel in (ROOM, Channel("id", "", private=False, version=7)):
        metadata, _, members = channel.announcements(RELAY)
        assert from_announcements(metadata, members) == channel
        assert list(from_announcements(metadata, members).members) == list(channel.members)


def test_versions_grow_even_within_one_second() -> None:
    assert ROOM.announced(5).version == ROOM.version + 1
    assert ROOM.announced(ROOM.version + 100).version == ROOM.version + 100


def test_a_private_channel_is_read_by_members_and_managed_by_owners_and_admins() -> None:
    assert ROOM.may_read("cc")
    assert not ROOM.may_read("zz")
    assert Channel("id", "", private=False).may_read("zz")
    assert [key for key in ROOM.members if ROOM.may_manage(key)] == ["aa", "bb"]


def test_notices_tell_who_did_what_to_whom() -> None:
    message = system_message(RELAY, ROOM.id, 9, type="member_joined", actor="aa", target="cc")
    assert (message["kind"], message["tags"]) == (40099, [["h", ROOM.id]])
    assert message["content"] == '{"actor":"aa","target":"cc","type":"member_joined"}'
    for kind, what in ((MEMBER_ADDED, "member_added"), (MEMBER_REMOVED, "member_removed")):
        notice = membership_notice(RELAY, kind, ROOM.id, "cc", "aa", 9)
        assert notice["tags"] == [["p", "cc"], ["h", ROOM.id]]
        assert json.loads(notice["content"]) == {"actor": "aa", "channel_id": ROOM.id, "type": what}
