"""Who may do what in a channel, in which words others are refused, and what the relay announces in which order."""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import replace
from typing import Any

import pytest

from bench.nostr import Event, Key, tag_value
from bench.relay.channels import Channel
from bench.relay.protocol import Refused
from bench.relay.rules import (
    RELAY_ONLY,
    Decision,
    Known,
    Stored,
    channel_of,
    check_author,
    check_kind,
    decide,
    named_event,
)

RELAY, OWNER, MEMBER, ADMIN, STRANGER = (Key.generate() for _ in range(5))
NOW = int(time.time())
ROOM = Channel(
    id=str(uuid.uuid4()),
    name="room",
    private=True,
    members={OWNER.public: "owner", MEMBER.public: "member", ADMIN.public: "admin"},
    version=NOW,
)
HALL = replace(ROOM, private=False)
MESSAGE = Stored("a" * 64, MEMBER.public, 9, ROOM.id, "a" * 64)


def event(key: Key, kind: int, *tags: list[str], content: str = "", room: bool = True) -> Event:
    return key.sign(kind, content, [["h", ROOM.id], *tags] if room else tags, NOW)


def judge(given: Event, channel: Channel | None = ROOM, **known: Any) -> Decision:
    return decide(given, Known(relay=RELAY, now=NOW, channel=channel, **known))


def refusal(given: Event, channel: Channel | None = ROOM, **known: Any) -> tuple[str, int]:
    with pytest.raises(Refused) as caught:
        judge(given, channel, **known)
    return caught.value.text, caught.value.status


def kinds(decision: Decision) -> list[int]:
    return [each["kind"] for each, _ in decision.events]


NOT_MEMBER = ("restricted: not a channel member", 400)


# -- kinds and times


@pytest.mark.parametrize("kind", [4, 9003, 22242, 27235, 41010, 40902, 46010, 65535])
def test_an_unknown_kind_is_refused(kind: int) -> None:
    with pytest.raises(Refused, match=r"^restricted: unknown event kind$"):
        check_kind(event(OWNER, kind), now=NOW, websocket=True)


@pytest.mark.parametrize("kind", sorted(RELAY_ONLY))
def test_what_the_relay_signs_nobody_else_may(kind: int) -> None:
    with pytest.raises(Refused, match=rf"^restricted: kind {kind} is signed by the relay only$"):
        check_kind(event(OWNER, kind), now=NOW, websocket=True)


@pytest.mark.parametrize("kind", [20001, 20002])
def test_ephemeral_kinds_come_by_websocket_only(kind: int) -> None:
    check_kind(event(OWNER, kind), now=NOW, websocket=True)
    with pytest.raises(Refused, match=rf"^invalid: kind {kind} is only accepted via WebSocket$"):
        check_kind(event(OWNER, kind), now=NOW, websocket=False)


@pytest.mark.parametrize("off", [901, -901])
def test_an_event_from_another_time_is_refused(off: int) -> None:
    check_kind(event(OWNER, 9), now=NOW + (900 if off > 0 else -900), websocket=True)
    with pytest.raises(Refused, match=r"^invalid: created_at is more than 900 s from the relay's clock$"):
        check_kind(event(OWNER, 9), now=NOW + off, websocket=True)


def test_an_event_is_sent_by_its_author() -> None:
    check_author(event(OWNER, 9), OWNER.public)
    with pytest.raises(Refused, match=r"^invalid: event pubkey does not match authenticated identity$"):
        check_author(event(OWNER, 9), MEMBER.public)


# -- messages


@pytest.mark.parametrize("kind", [9, 40002, 40100, 45001, 45002, 45003])
def test_a_member_writes_and_an_outsider_of_a_private_channel_does_not(kind: int) -> None:
    message = event(MEMBER, kind)
    assert judge(message).events == ((message, ROOM.id),)
    assert refusal(event(STRANGER, kind)) == NOT_MEMBER
    assert kinds(judge(event(STRANGER, kind), HALL)) == [kind]


def test_a_message_needs_a_channel_that_is_there() -> None:
    text = "invalid: channel-scoped events must include an h tag"
    assert refusal(event(MEMBER, 9, room=False), None) == (text, 400)
    assert refusal(event(MEMBER, 9), None) == NOT_MEMBER


def test_a_reply_needs_its_parent_in_the_same_channel() -> None:
    direct = event(MEMBER, 9, ["e", MESSAGE.id, "", "reply"])
    assert named_event(direct) == MESSAGE.id
    for tags in ([["e", "b" * 64]], [["e", "b" * 64, "", "root"]], [["e", "b", "", "reply"]]):
        assert named_event(event(MEMBER, 9, *tags)) is None
    assert kinds(judge(direct, target=MESSAGE)) == [9]
    assert refusal(direct, target=None) == ("invalid: the event replied to is not there", 400)
    text = "invalid: the event replied to is not in this channel"
    assert refusal(direct, target=replace(MESSAGE, channel="elsewhere")) == (text, 400)


def test_a_reply_in_a_thread_names_the_root_of_that_thread() -> None:
    first = event(MEMBER, 9, content="first")
    second = event(MEMBER, 9, ["e", first["id"], "", "reply"])
    third = event(MEMBER, 9, ["e", first["id"], "", "root"], ["e", second["id"], "", "reply"])
    assert [Stored.of(each, ROOM.id).root for each in (first, second, third)] == [first["id"]] * 3
    assert kinds(judge(third, target=Stored.of(second, ROOM.id))) == [9]
    text = "invalid: the root tag is not the root of the thread that is replied to"
    without = event(MEMBER, 9, ["e", second["id"], "", "reply"])
    assert refusal(without, target=Stored.of(second, ROOM.id)) == (text, 400)
    wrong = event(MEMBER, 9, ["e", second["id"], "", "root"], ["e", first["id"], "", "reply"])
    assert refusal(wrong, target=Stored.of(first, ROOM.id)) == (text, 400)


def test_a_diff_says_of_which_repository_and_commit_it_is() -> None:
    repo, commit = ["repo", "https://example.org/x"], ["commit", "abcdef0"]
    assert kinds(judge(event(MEMBER, 40008, repo, commit))) == [40008]
    no_repo = ("invalid: a diff needs a repo tag with an http or https URL", 400)
    no_commit = ("invalid: a diff needs a commit tag of 7 hex digits or more", 400)
    assert refusal(event(MEMBER, 40008, commit)) == refusal(event(MEMBER, 40008, ["repo", "x"], commit)) == no_repo
    assert refusal(event(MEMBER, 40008, repo)) == refusal(event(MEMBER, 40008, repo, ["commit", "abc"])) == no_commit
    long = event(MEMBER, 40008, repo, commit, content="x" * 61_441)
    assert refusal(long) == ("invalid: a diff has 61440 bytes at most", 400)


def test_a_profile_is_json() -> None:
    assert refusal(MEMBER.sign(0, "me"), None) == ("invalid: the content of a profile is not JSON", 400)


def test_a_reaction_is_short_and_given_once() -> None:
    long = event(MEMBER, 7, ["e", MESSAGE.id], content="x" * 65, room=False)
    assert refusal(long, target=MESSAGE) == ("invalid: a reaction has 64 characters at most", 400)
    again = event(MEMBER, 7, ["e", MESSAGE.id], content="+", room=False)
    assert refusal(again, target=MESSAGE, reacted=True) == ("duplicate: reaction already exists", 200)


def test_the_owner_of_an_agent_may_edit_and_delete_what_it_said() -> None:
    for kind in (5, 9005, 40003):
        given = event(OWNER, kind, ["e", MESSAGE.id], content="new")
        assert kinds(judge(given, target=MESSAGE, owns_target=True))[-1] == kind


def test_nothing_is_written_to_an_archived_channel_until_it_is_unarchived() -> None:
    archived = replace(ROOM, archived=True)
    for given in (event(MEMBER, 9), event(OWNER, 9000, ["p", STRANGER.public]), event(OWNER, 9002, ["name", "x"])):
        assert refusal(given, archived) == ("invalid: channel is archived", 400)
    reaction = event(MEMBER, 7, ["e", MESSAGE.id], room=False)
    assert refusal(reaction, archived, target=MESSAGE) == ("invalid: channel is archived", 400)
    given = event(OWNER, 9002, ["archived", "false"])
    decision = judge(given, archived)
    assert decision.after is not None and not decision.after.archived
    back = {tag_value(each, "p") for each, _ in decision.events if each["kind"] == 44100}
    assert back == set(ROOM.members), "the members are told, so that they listen again"
    assert judge(given).events == ((given, ROOM.id),)


# -- what names another event


@pytest.mark.parametrize("kind", [5, 7, 9005, 40003])
def test_it_names_exactly_one(kind: int) -> None:
    for tags in ([], [["e", "x"]], [["e", "a" * 64], ["e", "b" * 64]]):
        with pytest.raises(Refused, match=rf"^invalid: kind {kind} names exactly one event \(e tag\)$"):
            named_event(event(MEMBER, kind, *tags))


def test_a_reaction_belongs_to_the_channel_of_its_target() -> None:
    reaction = event(MEMBER, 7, ["e", MESSAGE.id], content="👀", room=False)
    assert channel_of(reaction, MESSAGE) == ROOM.id
    assert judge(reaction, target=MESSAGE).events == ((reaction, ROOM.id),)
    assert refusal(event(STRANGER, 7, ["e", MESSAGE.id]), target=MESSAGE) == NOT_MEMBER
    assert refusal(reaction, None) == ("invalid: reaction target event not found", 400)


def test_only_the_author_deletes_with_kind_5() -> None:
    deletion = event(MEMBER, 5, ["e", MESSAGE.id], room=False)
    decision = judge(deletion, target=MESSAGE)
    assert (decision.events, decision.deletes) == (((deletion, ROOM.id),), (MESSAGE.id,))
    text = "invalid: only the author may delete an event"
    assert refusal(event(OWNER, 5, ["e", MESSAGE.id]), target=MESSAGE) == (text, 400)
    assert refusal(deletion, None) == ("invalid: deletion target event not found", 400)
    profile = Stored("d" * 64, MEMBER.public, 0, None, "d" * 64)
    assert judge(event(MEMBER, 5, ["e", profile.id]), None, target=profile).deletes == (profile.id,)


def test_a_message_is_deleted_by_its_author_or_a_manager_with_a_tombstone() -> None:
    for key in (MEMBER, OWNER, ADMIN):
        decision = judge(event(key, 9005, ["e", MESSAGE.id]), target=MESSAGE)
        assert kinds(decision) == [40099, 9005]
        assert decision.deletes == (MESSAGE.id,)
    assert json.loads(decision.events[0][0]["content"]) == {
        "type": "message_deleted",
        "actor": ADMIN.public,
        "target_event_id": MESSAGE.id,
    }
    text = "invalid: only the author, an owner or an admin may delete a message"
    others = replace(MESSAGE, public=OWNER.public)
    assert refusal(event(MEMBER, 9005, ["e", MESSAGE.id]), target=others) == (text, 400)
    moderation = event(MEMBER, 9005, ["e", MESSAGE.id], ["public_reason", "spam"])
    assert refusal(moderation, target=MESSAGE) == (text, 400)
    elsewhere = replace(MESSAGE, channel="elsewhere")
    missing = ("invalid: deletion target event not found", 400)
    assert refusal(event(OWNER, 9005, ["e", MESSAGE.id]), target=elsewhere) == missing


def test_only_the_author_edits_and_the_original_stays() -> None:
    decision = judge(event(MEMBER, 40003, ["e", MESSAGE.id], content="new"), target=MESSAGE)
    assert (kinds(decision), decision.deletes) == ([40003], ())
    text = "invalid: only the author may edit a message"
    assert refusal(event(OWNER, 40003, ["e", MESSAGE.id]), target=MESSAGE) == (text, 400)
    missing = ("invalid: edit target event not found", 400)
    assert refusal(event(MEMBER, 40003, ["e", MESSAGE.id])) == missing


# -- channels


def create(*tags: list[str], channel: str | None = None) -> Event:
    return OWNER.sign(9007, "", [["h", channel or ROOM.id], ["name", "room"], *tags], NOW)


def test_the_creator_owns_the_channel_and_is_told_so() -> None:
    given = create(["visibility", "private"], ["channel_type", "stream"], ["about", "e2e"])
    decision = judge(given, None)
    assert kinds(decision) == [40099, 39000, 39001, 39002, 44100, 9007]
    assert decision.after is not None
    assert decision.after.members == {OWNER.public: "owner"}
    assert (decision.after.private, decision.after.about) == (True, "e2e")
    assert decision.events[4][1] is None, "the notice is global"
    assert {channel for each, channel in decision.events if each["kind"] != 44100} == {ROOM.id}


def test_a_channel_is_open_unless_it_says_private() -> None:
    after = judge(create(), None).after
    assert after is not None and not after.private
    text = "invalid: visibility is neither open nor private"
    assert refusal(create(["visibility", "secret"]), None) == (text, 400)


def test_a_channel_has_a_name_and_a_known_type() -> None:
    for tags in ([], [["name", ""]], [["name", "# "]]):
        given = OWNER.sign(9007, "", [["h", ROOM.id], *tags], NOW)
        assert refusal(given, None) == ("invalid: a channel needs a name", 400)
    text = "invalid: channel_type is not one of forum, stream"
    assert refusal(create(["channel_type", "pub"]), None) == (text, 400)


def test_a_channel_is_made_once() -> None:
    exists = ("duplicate: channel already exists", 200)
    assert refusal(create()) == exists
    assert refusal(create(), None, used_before=True) == exists


def test_a_channels_id_is_a_uuid() -> None:
    text = "invalid: the h tag of a new channel is not a UUID"
    for bad in ("room", ROOM.id.upper(), ROOM.id.replace("-", "")):
        assert refusal(create(channel=bad), None) == (text, 400)
    without = OWNER.sign(9007, "", [["name", "x"]], NOW)
    assert refusal(without, None) == ("invalid: channel-scoped events must include an h tag", 400)


def test_a_manager_adds_another_and_everyone_hears_in_order() -> None:
    given = event(ADMIN, 9000, ["p", STRANGER.public])
    decision = judge(given)
    assert kinds(decision) == [40099, 39000, 39001, 39002, 44100, 9000]
    assert decision.after is not None
    assert decision.after.members[STRANGER.public] == "member"
    assert decision.after.version == ROOM.version + 1
    assert json.loads(decision.events[0][0]["content"]) == {
        "type": "member_joined",
        "actor": ADMIN.public,
        "target": STRANGER.public,
    }
    assert tag_value(decision.events[4][0], "p") == STRANGER.public
    assert refusal(event(STRANGER, 9000, ["p", STRANGER.public])) == NOT_MEMBER
    text = "invalid: only an owner or admin may add others to a private channel"
    assert refusal(event(MEMBER, 9000, ["p", STRANGER.public])) == (text, 400)
    for key in (MEMBER, STRANGER):
        after = judge(event(key, 9000, ["p", "f" * 64]), HALL).after
        assert after is not None and after.members["f" * 64] == "member"


def test_elevated_roles_are_given_and_taken_by_managers_only() -> None:
    text = "invalid: only an owner or admin may change a role or grant an elevated one"
    assert refusal(event(MEMBER, 9000, ["p", STRANGER.public], ["role", "admin"]), HALL) == (text, 400)
    assert refusal(event(MEMBER, 9000, ["p", OWNER.public], ["role", "guest"]), HALL) == (text, 400)
    assert refusal(event(MEMBER, 9000, ["p", MEMBER.public], ["role", "owner"])) == (text, 400)
    after = judge(event(ADMIN, 9000, ["p", STRANGER.public], ["role", "admin"])).after
    assert after is not None and after.members[STRANGER.public] == "admin"
    roles = "admin, bot, guest, member, owner"
    bad = event(OWNER, 9000, ["p", STRANGER.public], ["role", "king"])
    assert refusal(bad) == (f"invalid: role is not one of {roles}", 400)


def test_adding_a_member_again_keeps_its_role_and_tells_of_it_again() -> None:
    decision = judge(event(OWNER, 9000, ["p", ADMIN.public]))
    assert decision.after is not None and decision.after.members == ROOM.members
    assert kinds(decision) == [40099, 39000, 39001, 39002, 44100, 9000]
    joins = event(MEMBER, 9021)
    assert judge(joins, HALL).events == ((joins, HALL.id),)


def test_a_channel_keeps_its_last_owner() -> None:
    demotion = event(OWNER, 9000, ["p", OWNER.public], ["role", "member"])
    for given in (demotion, event(OWNER, 9022), event(OWNER, 9001, ["p", OWNER.public])):
        assert refusal(given) == ("invalid: the last owner of a channel stays its owner", 400)
    two = replace(ROOM, members={**ROOM.members, STRANGER.public: "owner"})
    for given in (demotion, event(OWNER, 9022)):
        assert judge(given, two).after is not None


def test_a_key_says_itself_who_may_add_it() -> None:
    given = event(ADMIN, 9000, ["p", STRANGER.public])
    for policy in ("nobody", "owner_only"):
        text = f"invalid: the key's profile lets it be added by {policy}"
        assert refusal(given, policy=policy, owner=OWNER.public) == (text, 400)
    by_owner = event(OWNER, 9000, ["p", STRANGER.public])
    assert judge(by_owner, policy="owner_only", owner=OWNER.public).after is not None
    assert refusal(by_owner, policy="nobody", owner=OWNER.public)[1] == 400


def test_a_p_tag_names_a_key() -> None:
    for tags in ([], [["p", "me"]]):
        assert refusal(event(OWNER, 9000, *tags)) == ("invalid: the p tag names no key", 400)


def test_an_open_channel_is_joined_and_a_private_one_is_not() -> None:
    for given in (event(STRANGER, 9021), event(STRANGER, 9000, ["p", STRANGER.public], ["role", "bot"])):
        after = judge(given, HALL).after
        assert after is not None and STRANGER.public in after.members
        assert refusal(given) == NOT_MEMBER


def test_a_member_is_removed_by_itself_a_manager_or_its_owner() -> None:
    removal = [["p", MEMBER.public]]
    friend = replace(ROOM, members={**ROOM.members, STRANGER.public: "member"})
    for key, owner in ((MEMBER, None), (OWNER, None), (ADMIN, None), (STRANGER, STRANGER.public)):
        decision = judge(event(key, 9001, *removal), friend, owner=owner)
        assert kinds(decision) == [40099, 39000, 39001, 39002, 44101, 9001]
        assert decision.after is not None and MEMBER.public not in decision.after.members
    left = judge(event(MEMBER, 9022), friend)
    assert left.after == decision.after
    assert json.loads(left.events[0][0]["content"]) == {"type": "member_left", "actor": MEMBER.public}
    text = "invalid: only an owner, an admin or the agent's owner may remove a member"
    assert refusal(event(MEMBER, 9001, ["p", ADMIN.public])) == (text, 400)
    assert refusal(event(STRANGER, 9001, *removal), owner=STRANGER.public) == NOT_MEMBER
    assert refusal(event(MEMBER, 9001, ["p", STRANGER.public])) == ("invalid: the key to remove is no member", 400)
    gone = event(OWNER, 9001, ["p", STRANGER.public])
    assert judge(gone).events == ((gone, ROOM.id),)
    assert refusal(event(OWNER, 9001)) == ("invalid: the p tag names no key", 400)


def test_members_say_what_a_channel_is_about_and_managers_name_open_and_archive_it() -> None:
    said = judge(event(MEMBER, 9002, ["topic", "today"], ["purpose", "work"]))
    assert said.after is not None
    assert (said.after.topic, said.after.purpose, said.after.name) == ("today", "work", "room")
    told = [json.loads(each["content"]) for each, _ in said.events if each["kind"] == 40099]
    assert told == [
        {"type": "topic_changed", "actor": MEMBER.public, "topic": "today"},
        {"type": "purpose_changed", "actor": MEMBER.public, "purpose": "work"},
    ]
    after = judge(event(ADMIN, 9002, ["name", "new"], ["about", ""], ["visibility", "open"])).after
    assert after is not None
    assert (after.name, after.about, after.private) == ("new", "", False)
    decision = judge(event(OWNER, 9002, ["archived", "true"]))
    assert kinds(decision) == [40099, 39000, 39001, 39002, 9002]
    assert json.loads(decision.events[0][0]["content"])["type"] == "channel_archived"
    assert ["archived", "true"] in decision.events[1][0]["tags"]
    text = "invalid: only an owner or admin may change about, archived, name, visibility"
    for tag in (["archived", "true"], ["name", "new"], ["about", "x"], ["visibility", "open"]):
        assert refusal(event(MEMBER, 9002, ["topic", "t"], tag)) == (text, 400)
    nothing = "invalid: give one of about, archived, name, purpose, topic, visibility"
    assert refusal(event(OWNER, 9002)) == (nothing, 400)
    assert refusal(event(OWNER, 9002, ["name", ""])) == ("invalid: a channel needs a name", 400)
    secret = event(OWNER, 9002, ["visibility", "secret"])
    assert refusal(secret) == ("invalid: visibility is neither open nor private", 400)
    bad = event(OWNER, 9002, ["archived", "maybe"])
    assert refusal(bad) == ("invalid: archived is neither true nor false", 400)


def test_a_channel_is_deleted_by_an_owner() -> None:
    decision = judge(event(OWNER, 9008))
    assert (decision.gone, decision.before) == (True, ROOM)
    text = "invalid: only an owner may delete a channel"
    assert refusal(event(ADMIN, 9008)) == (text, 400)


# -- what is in no channel


@pytest.mark.parametrize("kind", [0, 1, 3, 10100, 30023, 30174, 30315])
def test_what_is_of_a_person_is_global(kind: int) -> None:
    given = event(STRANGER, kind, content="{}")
    assert channel_of(given, None) is None
    assert judge(given, None).events == ((given, None),)


def test_a_turn_metric_goes_to_the_agents_proven_owner_only() -> None:
    metric = event(MEMBER, 44200, ["p", OWNER.public], room=False)
    assert judge(metric, None, owner=OWNER.public).events == ((metric, None),)
    text = "restricted: the p tag of a turn metric is not the agent's owner"
    assert refusal(metric, None, owner=STRANGER.public) == (text, 403)
    assert refusal(metric, None) == (text, 403)
