"""The websocket, frame by frame: authentication, publishing, subscriptions, privacy, limits."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import pytest

from bench.nostr import Event, Key, tag_value, verified
from tests.relay.running import WAIT_S, RunningRelay, Wire, add, create

NOT_AUTHENTICATED = "auth-required: not authenticated"


async def room(wire: Wire, owner: Key, *members: Key, private: bool = True) -> str:
    """A new channel of the owner, who speaks on the wire, with these members."""
    channel, event = create(owner, private=private)
    assert await wire.publish(event) == [True, ""]
    for member in members:
        assert await wire.publish(add(owner, channel, member.public)) == [True, ""]
    return channel


def note(key: Key, channel: str, text: str = "hello", *tags: list[str]) -> Event:
    return key.sign(9, text, [["h", channel], *tags])


# -- authentication


async def test_the_challenge_comes_first_and_the_owner_answers_it(relay: RunningRelay) -> None:
    async with relay.socket() as wire:
        assert len(wire.challenge) == 64
        answer = await wire.authenticate(relay.owner)
        assert answer[0] == "OK"
        assert answer[2:] == [True, ""]


async def test_an_agent_with_the_owners_attestation_is_a_member(relay: RunningRelay) -> None:
    agent, tag = relay.agent()
    async with relay.socket(agent, tag) as wire:
        await wire.silent()


@pytest.mark.parametrize("case", ["none", "a stranger's", "another agent's", "two"])
async def test_whoever_the_owner_does_not_attest_is_no_member(relay: RunningRelay, case: str) -> None:
    key = Key.generate()
    tags = {
        "none": [],
        "a stranger's": [Key.generate().attest(key.public)],
        "another agent's": [relay.agent()[1]],
        "two": [relay.owner.attest(key.public)] * 2,
    }[case]
    async with relay.socket() as wire:
        event = key.sign(22242, "", [["relay", relay.url], ["challenge", wire.challenge], *tags])
        await wire.send("AUTH", event)
        assert await wire.receive() == ["OK", event["id"], False, "restricted: not a relay member"]


async def test_after_a_failed_answer_the_connection_is_dead_for_authentication(relay: RunningRelay) -> None:
    async with relay.socket() as wire:
        right, wire.challenge = wire.challenge, "wrong"
        assert (await wire.authenticate(relay.owner))[2:] == [False, "auth-required: verification failed"]
        wire.challenge = right
        again = await wire.authenticate(relay.owner)
        assert again[2:] == [False, "auth-required: authentication already failed"]


async def test_before_authentication_every_request_says_so(relay: RunningRelay) -> None:
    async with relay.socket() as wire:
        assert await wire.publish(relay.owner.sign(0, "{}")) == [False, NOT_AUTHENTICATED]
        for what in ("REQ", "COUNT"):
            await wire.send(what, "s", {})
            assert await wire.receive() == ["NOTICE", NOT_AUTHENTICATED]
            assert await wire.receive() == ["CLOSED", "s", NOT_AUTHENTICATED]


@pytest.mark.slow
async def test_who_does_not_authenticate_within_five_seconds_is_shown_out(relay: RunningRelay) -> None:
    async with relay.socket() as wire:
        assert await wire.receive() == ["NOTICE", f"{NOT_AUTHENTICATED} within 5 s"]
        message = await wire.socket.receive(WAIT_S)
        assert message.type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED)


# -- garbage and limits


@pytest.mark.parametrize(
    "text", ["", "garbage", "{}", "[]", '["NOPE"]', '["EVENT"]', '["REQ"]', '["CLOSE",5]', "[" * 3000]
)
async def test_garbage_gets_a_notice_and_the_connection_goes_on(relay: RunningRelay, text: str) -> None:
    async with relay.socket(relay.owner) as wire:
        await wire.socket.send_str(text)
        kind, said = await wire.receive()
        assert kind == "NOTICE"
        assert said.startswith("invalid message: ")
        await wire.silent()


async def test_binary_frames_get_a_notice(relay: RunningRelay) -> None:
    async with relay.socket(relay.owner) as wire:
        await wire.socket.send_bytes(b"[]")
        assert await wire.receive() == ["NOTICE", "invalid message: not a text frame"]


async def test_a_lone_surrogate_is_invalid_and_the_event_is_answered(relay: RunningRelay) -> None:
    event = relay.owner.sign(0, "x")
    async with relay.socket(relay.owner) as wire:
        await wire.socket.send_str(json.dumps(["EVENT", {**event, "content": "\ud800"}]))
        answer = await wire.receive()
        assert answer[:3] == ["OK", event["id"], False]
        assert answer[3] == "invalid: the text holds a lone surrogate, which is not valid Unicode"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"content": "forged"}, "invalid: bad id or signature"),
        ({"sig": "0" * 128}, "invalid: bad id or signature"),
        ({"kind": "0"}, "invalid: an event needs id, pubkey, created_at, kind, tags, content and sig"),
        ({"pubkey": "0" * 64}, "invalid: event pubkey does not match authenticated identity"),
        ({"content": "x" * 262_145}, "invalid: content exceeds 262144 bytes"),
    ],
    ids=str,
)
async def test_an_invalid_event_is_answered_with_the_reason(
    relay: RunningRelay, change: dict[str, Any], text: str
) -> None:
    event = {**relay.owner.sign(0, "{}"), **change}
    async with relay.socket(relay.owner) as wire:
        assert await wire.publish(event) == [False, text]


async def test_the_largest_content_passes_and_comes_back_as_it_was(relay: RunningRelay) -> None:
    event = relay.owner.sign(0, "ü" * 131_072)
    async with relay.socket(relay.owner) as wire:
        assert await wire.publish(event) == [True, ""]
        assert await wire.request("s", {"ids": [event["id"]]}) == [event]


async def test_a_frame_that_is_too_big_ends_the_connection_with_its_code(relay: RunningRelay) -> None:
    async with relay.socket(relay.owner) as wire:
        await wire.socket.send_str("x" * (512 * 1024 + 1))
        message = await wire.socket.receive(WAIT_S)
        assert (message.type, message.data) == (aiohttp.WSMsgType.CLOSE, 1009)


async def test_too_many_filters_or_a_long_name_are_refused(relay: RunningRelay) -> None:
    async with relay.socket(relay.owner) as wire:
        await wire.send("REQ", "s", *[{}] * 11)
        assert await wire.receive() == ["CLOSED", "s", "invalid: at most 10 filters"]
        await wire.send("REQ", "s", {"kinds": "9"})
        reason = "invalid: kinds of a filter is a list of numbers from 0 to 65535"
        assert await wire.receive() == ["CLOSED", "s", reason]
        for name in ("", "s" * 257):
            await wire.send("REQ", name, {})
            text = "invalid message: a subscription's id has 1 to 256 characters"
            assert await wire.receive() == ["NOTICE", text]


async def test_a_connection_has_1024_subscriptions_and_may_close_them(relay: RunningRelay) -> None:
    async with relay.socket(relay.owner) as wire:
        for number in range(1024):
            await wire.request(f"s{number}", {"limit": 0})
        await wire.send("REQ", "more", {"limit": 0})
        assert await wire.receive() == ["CLOSED", "more", "error: more than 1024 subscriptions"]
        await wire.request("s5", {"limit": 0})
        await wire.send("CLOSE", "s5")
        await wire.request("more", {"limit": 0})


# -- publishing and reading


async def test_a_member_sees_a_message_live_and_it_is_found_again(relay: RunningRelay) -> None:
    agent, tag = relay.agent()
    async with relay.socket(relay.owner) as owner, relay.socket(agent, tag) as member:
        channel = await room(owner, relay.owner, agent)
        assert await member.request("live", {"#h": [channel], "limit": 0}) == []
        message = note(relay.owner, channel)
        assert await owner.publish(message) == [True, ""]
        assert await member.receive() == ["EVENT", "live", message]
        assert await member.request("again", {"#h": [channel], "kinds": [9]}) == [message]


async def test_on_a_new_member_the_subscriber_hears_everything_in_order(relay: RunningRelay) -> None:
    agent, tag = relay.agent()
    async with (
        relay.socket(relay.owner) as owner,
        relay.socket(agent, tag) as newcomer,
        relay.socket(relay.owner) as watcher,
    ):
        channel = await room(owner, relay.owner)
        await watcher.request("room", {"#h": [channel], "limit": 0})
        await newcomer.request("notices", {"kinds": [44100, 44101], "#p": [agent.public], "limit": 0})
        addition = add(relay.owner, channel, agent.public)
        assert await owner.publish(addition) == [True, ""]
        seen = [(await watcher.receive())[2] for _ in range(5)]
        assert [event["kind"] for event in seen] == [40099, 39000, 39001, 39002, 9000]
        assert all(verified(event) and event["pubkey"] == relay.key.public for event in seen[:4])
        assert seen[4] == addition
        notice = (await newcomer.receive())[2]
        assert (notice["kind"], tag_value(notice, "h")) == (44100, channel)
        assert (await watcher.request("members", {"kinds": [39002], "#d": [channel]})) == [seen[3]]


async def test_a_duplicate_is_accepted_and_nobody_hears_it_twice(relay: RunningRelay) -> None:
    async with relay.socket(relay.owner) as wire, relay.socket(relay.owner) as watcher:
        channel = await room(wire, relay.owner)
        await watcher.request("live", {"#h": [channel], "limit": 0})
        message = note(relay.owner, channel)
        for _ in range(3):
            await wire.send("EVENT", message)
        answers = sorted([(await wire.receive())[2:] for _ in range(3)])
        assert answers == [[True, ""], [True, "duplicate:"], [True, "duplicate:"]]
        assert await watcher.receive() == ["EVENT", "live", message]
        await watcher.silent()


async def test_a_repeated_change_is_a_duplicate_also_when_it_would_be_refused_now(
    relay: RunningRelay,
) -> None:
    async with relay.socket(relay.owner) as wire:
        channel, event = create(relay.owner)
        message = note(relay.owner, channel)
        assert await wire.publish(event) == [True, ""]
        assert await wire.publish(message) == [True, ""]
        assert await wire.publish(event) == [True, "duplicate:"]
        archived = relay.owner.sign(9002, "", [["h", channel], ["archived", "true"]])
        assert await wire.publish(archived) == [True, ""]
        assert await wire.publish(message) == [True, "duplicate:"]
        assert await wire.publish(note(relay.owner, channel, "late")) == [False, "invalid: channel is archived"]


async def test_what_one_connection_sends_without_waiting_is_judged_in_order(relay: RunningRelay) -> None:
    agent, tag = relay.agent()
    async with relay.socket(relay.owner) as wire, relay.socket(agent, tag) as member:
        channel, event = create(relay.owner)
        first = note(relay.owner, channel, "1")
        reply = note(relay.owner, channel, "2", ["e", first["id"], "", "reply"])
        sent = [event, add(relay.owner, channel, agent.public), first, reply, note(relay.owner, channel, "3")]
        for each in sent:
            await wire.send("EVENT", each)
        answers = [await wire.receive() for _ in sent]
        assert answers == [["OK", each["id"], True, ""] for each in sent]
        found = await member.request("s", {"#h": [channel], "kinds": [9]})
        assert sorted(message["content"] for message in found) == ["1", "2", "3"]


async def test_changes_by_two_connections_at_once_leave_one_state(relay: RunningRelay) -> None:
    keys = [Key.generate() for _ in range(40)]
    async with relay.socket(relay.owner) as one, relay.socket(relay.owner) as two:
        channel = await room(one, relay.owner)
        for number, key in enumerate(keys):
            await (one, two)[number % 2].send("EVENT", add(relay.owner, channel, key.public))
        for wire in (one, two):
            assert [(await wire.receive())[2] for _ in range(20)] == [True] * 20
        [members] = await one.request("m", {"kinds": [39002], "#d": [channel]})
        assert {t[1] for t in members["tags"] if t[0] == "p"} == {relay.owner.public, *(k.public for k in keys)}


async def test_nothing_is_lost_or_doubled_between_the_stored_and_the_live_events(
    relay: RunningRelay,
) -> None:
    """Subscriptions that begin while 300 messages pour in see each of them exactly once."""
    async with AsyncExitStack() as stack:
        wire, *readers = [await stack.enter_async_context(relay.socket(relay.owner)) for _ in range(6)]
        channel = await room(wire, relay.owner)
        messages = [note(relay.owner, channel, str(i)) for i in range(300)]

        async def pour() -> None:
            for message in messages:
                await wire.send("EVENT", message)
                await asyncio.sleep(0)
            for _ in messages:
                assert (await wire.receive())[2] is True

        async def watch(reader: Wire, number: int) -> list[str]:
            for _ in range(number * 20):
                await asyncio.sleep(0)
            await reader.send("REQ", "s", {"#h": [channel], "kinds": [9], "limit": 2000})
            seen: list[str] = []
            settled = False
            while len(seen) < len(messages) or not settled:
                frame = await reader.receive()
                if frame[0] == "EVENT":
                    seen.append(frame[2]["id"])
                settled = settled or frame[0] == "EOSE"
            await reader.silent()
            return seen

        watches = [asyncio.create_task(watch(reader, i)) for i, reader in enumerate(readers)]
        await pour()
        for seen in await asyncio.gather(*watches):
            assert sorted(seen) == sorted(message["id"] for message in messages)


async def test_profiles_are_replaced_and_counts_agree(relay: RunningRelay) -> None:
    agent, tag = relay.agent()
    async with relay.socket(agent, tag) as wire:
        old = agent.sign(0, '{"display_name":"a"}')
        new = agent.sign(0, '{"display_name":"b"}', created_at=old["created_at"] + 1)
        for event in (old, new):
            assert await wire.publish(event) == [True, ""]
        assert await wire.request("s", {"authors": [agent.public], "kinds": [0]}) == [new]
        await wire.send("COUNT", "c", {"authors": [agent.public]})
        assert await wire.receive() == ["COUNT", "c", {"count": 1}]


async def test_reactions_reach_the_channel_of_their_target_and_are_taken_back(relay: RunningRelay) -> None:
    async with relay.socket(relay.owner) as wire, relay.socket(relay.owner) as watcher:
        channel = await room(wire, relay.owner)
        message = note(relay.owner, channel)
        await wire.publish(message)
        await watcher.request("live", {"#h": [channel], "limit": 0})
        reaction = relay.owner.sign(7, "👀", [["e", message["id"]]])
        assert await wire.publish(reaction) == [True, ""]
        assert await watcher.receive() == ["EVENT", "live", reaction]
        wanted = {"kinds": [7], "#e": [message["id"]]}
        assert await wire.request("a", wanted) == [reaction]
        deletion = relay.owner.sign(5, "", [["e", reaction["id"]]])
        assert await wire.publish(deletion) == [True, ""]
        assert await watcher.receive() == ["EVENT", "live", deletion]
        assert await wire.request("b", wanted) == []
        assert await wire.publish(reaction) == [True, "duplicate:"]
        orphan = relay.owner.sign(7, "👀", [["e", "f" * 64]])
        assert await wire.publish(orphan) == [False, "invalid: reaction target event not found"]


async def test_a_request_over_several_channels_or_none_is_not_live(relay: RunningRelay) -> None:
    async with relay.socket(relay.owner) as wire, relay.socket(relay.owner) as watcher:
        one, two = await room(wire, relay.owner), await room(wire, relay.owner)
        await watcher.request("several", {"#h": [one, two], "kinds": [9]})
        await watcher.request("none", {"kinds": [9, 0], "limit": 0})
        await watcher.request("one", {"#h": [one], "kinds": [9]})
        messages = [note(relay.owner, one), note(relay.owner, two)]
        for message in messages:
            await wire.publish(message)
        assert await watcher.receive() == ["EVENT", "one", messages[0]]
        # Newer than any that another test published within this second: of those the relay keeps one.
        profile = relay.owner.sign(0, "{}", created_at=int(time.time()) + 2)
        await wire.publish(profile)
        assert await watcher.receive() == ["EVENT", "none", profile]
        assert len(await watcher.request("history", {"#h": [one, two], "kinds": [9]})) == 2


async def test_a_new_request_of_the_same_name_replaces_the_old_one(relay: RunningRelay) -> None:
    async with relay.socket(relay.owner) as wire:
        channel = await room(wire, relay.owner)
        await wire.request("s", {"#h": [channel], "kinds": [7], "limit": 0})
        await wire.request("s", {"#h": [channel], "kinds": [9], "limit": 0})
        message = note(relay.owner, channel)
        await wire.send("EVENT", message)
        assert await wire.receive() == ["EVENT", "s", message]
        assert (await wire.receive())[0] == "OK"
        await wire.send("CLOSE", "s")
        assert await wire.publish(note(relay.owner, channel, "unheard")) == [True, ""]
        await wire.silent()


async def test_the_bounded_queue_holds_a_long_answer(relay: RunningRelay) -> None:
    async with relay.socket(relay.owner) as wire:
        channel = await room(wire, relay.owner)
        messages = [note(relay.owner, channel, str(i)) for i in range(2100)]
        for message in messages:
            await wire.send("EVENT", message)
        for _ in messages:
            assert (await wire.receive())[2] is True
        found = await wire.request("s", {"#h": [channel], "kinds": [9], "limit": 10_000})
        assert len({event["id"] for event in found}) == 2000, "what one answer holds"


async def test_who_does_not_read_is_cut_and_the_others_go_on(relay: RunningRelay) -> None:
    async with relay.socket(relay.owner) as wire, relay.socket(relay.owner) as sleeper:
        channel = await room(wire, relay.owner)
        await sleeper.request("s", {"#h": [channel], "limit": 0})
        big = "x" * 100_000
        for number in range(60):
            # Ever more subscriptions on the one connection that isn't read.
            await sleeper.send("REQ", f"s{number}", {"#h": [channel], "limit": 0})
        for number in range(60):
            assert await wire.publish(note(relay.owner, channel, f"{number}{big}")) == [True, ""]
        while True:
            message = await sleeper.socket.receive(WAIT_S)
            if message.type is not aiohttp.WSMsgType.TEXT:
                break
        assert message.type in (aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.ERROR)
        await wire.silent()


# -- privacy


async def test_a_private_channel_is_private_on_every_way(relay: RunningRelay) -> None:
    outsider, tag = relay.agent()
    async with relay.socket(relay.owner) as owner, relay.socket(outsider, tag) as spy:
        channel = await room(owner, relay.owner)
        await spy.request("all", {"limit": 0})
        message = note(relay.owner, channel)
        await owner.publish(message)
        closed = ["CLOSED", "s", "restricted: not a channel member"]
        for wanted in ({"#h": [channel]}, {"#h": [channel], "limit": 0}, {"#h": [str(uuid.uuid4())]}):
            await spy.send("REQ", "s", wanted)
            assert await spy.receive() == closed
        await spy.send("COUNT", "s", {"#h": [channel]})
        assert await spy.receive() == closed
        for wanted in ({"ids": [message["id"]]}, {"kinds": [39000, 39001, 39002], "#d": [channel]}):
            assert await spy.request("s", wanted) == []
        assert await spy.publish(note(outsider, channel)) == [False, "restricted: not a channel member"]
        reaction = outsider.sign(7, "+", [["e", message["id"]]])
        assert await spy.publish(reaction) == [False, "restricted: not a channel member"]
        typing = outsider.sign(20002, "", [["h", channel]])
        assert await spy.publish(typing) == [False, "restricted: not a channel member"]
        await spy.silent()


async def test_who_is_removed_loses_the_channel_at_once(relay: RunningRelay) -> None:
    agent, tag = relay.agent()
    async with relay.socket(relay.owner) as owner, relay.socket(agent, tag) as member:
        channel = await room(owner, relay.owner, agent)
        await member.request("room", {"#h": [channel], "limit": 0})
        removal = relay.owner.sign(9001, "", [["h", channel], ["p", agent.public]])
        assert await owner.publish(removal) == [True, ""]
        frames = [await member.receive()]
        while frames[-1][0] != "CLOSED":
            frames.append(await member.receive())
        assert frames[-1] == ["CLOSED", "room", "restricted: channel access revoked"]
        await owner.publish(note(relay.owner, channel, "secret"))
        await member.silent()


async def test_an_open_channel_is_open(relay: RunningRelay) -> None:
    guest, tag = relay.agent()
    async with relay.socket(relay.owner) as owner, relay.socket(guest, tag) as wire:
        channel = await room(owner, relay.owner, private=False)
        await wire.request("s", {"#h": [channel], "limit": 0})
        message = note(guest, channel)
        await wire.send("EVENT", message)
        assert await wire.receive() == ["EVENT", "s", message]


async def test_metrics_and_notices_are_for_the_key_they_name(relay: RunningRelay) -> None:
    agent, tag = relay.agent()
    async with relay.socket(relay.owner) as owner, relay.socket(agent, tag) as wire:
        await owner.request("mine", {"kinds": [44200], "#p": [relay.owner.public], "limit": 0})
        metric = agent.sign(44200, "cipher", [["p", relay.owner.public], ["agent", agent.public]])
        assert await wire.publish(metric) == [True, ""]
        assert await owner.receive() == ["EVENT", "mine", metric]
        for kind, rest in ((44200, {}), (44100, {"#p": [relay.owner.public]})):
            await wire.send("REQ", "s", {"kinds": [9, kind], **rest})
            reason = f"restricted: kind {kind} can be read with #p of your own key only"
            assert await wire.receive() == ["CLOSED", "s", reason]
        assert await wire.request("s", {"authors": [agent.public]}) == []
        other = agent.sign(44200, "cipher", [["p", Key.generate().public]])
        text = "restricted: the p tag of a turn metric is not the agent's owner"
        assert await wire.publish(other) == [False, text]


# -- what passes by


async def test_presence_and_typing_pass_by_and_are_not_stored(relay: RunningRelay) -> None:
    agent, tag = relay.agent()
    async with relay.socket(relay.owner) as owner, relay.socket(agent, tag) as wire:
        channel = await room(owner, relay.owner, agent)
        await owner.request("presence", {"kinds": [20001], "limit": 0})
        await owner.request("typing", {"kinds": [20002], "#h": [channel], "limit": 0})
        for name, event in (
            ("presence", agent.sign(20001, "online")),
            ("typing", agent.sign(20002, "", [["h", channel]])),
        ):
            assert await wire.publish(event) == [True, ""]
            assert await owner.receive() == ["EVENT", name, event]
        assert await wire.request("s", {"kinds": [20001, 20002]}) == []
