"""The websocket of a member: publishing, stored and live events, and what is only passed on."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack

import aiohttp

from bench.nostr import Key, tag_value, verified
from tests.relay.running import WAIT_S, RunningRelay, Wire, add, create, note, room


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
        altered = {**message, "content": "something else"}
        assert await wire.publish(altered) == [False, "invalid: bad id or signature"]


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
        await wire.send("COUNT", "c", {"authors": [agent.public], "kinds": [0]})
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
        messages = [note(relay.owner, channel, str(i)) for i in range(1100)]
        for message in messages:
            await wire.send("EVENT", message)
        for _ in messages:
            assert (await wire.receive())[2] is True
        found = await wire.request("s", {"#h": [channel], "kinds": [9], "limit": 10_000})
        assert len({event["id"] for event in found}) == 1000, "what one answer holds"


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
