"""Who hears what: private channels, removed members, and what is for one key alone."""

from __future__ import annotations

import uuid

from bench.nostr import Key
from tests.relay.running import RunningRelay, note, room


async def test_a_private_channel_is_private_on_every_way(relay: RunningRelay) -> None:
    outsider, tag = relay.agent()
    async with relay.socket(relay.owner) as owner, relay.socket(outsider, tag) as spy:
        channel = await room(owner, relay.owner)
        await spy.request("all", {"kinds": [9, 7, 40099, 39000, 39001, 39002], "limit": 0})
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
        assert await member.receive() == ["CLOSED", "room", "restricted: channel access revoked"], (
            "and not the news of it"
        )
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
            reason = "restricted: p-gated kinds require #p tag matching your pubkey"
            assert await wire.receive() == ["CLOSED", "s", reason]
        assert await wire.request("s", {"kinds": [0], "authors": [agent.public]}) == []
        other = agent.sign(44200, "cipher", [["p", Key.generate().public]])
        text = "restricted: the p tag of a turn metric is not the agent's owner"
        assert await wire.publish(other) == [False, text]
