"""The client of a relay that runs: what is published comes, and who is refused hears why."""

from __future__ import annotations

import asyncio

import pytest

from bench.channel import RelayClient, RelayRefused, open_session
from bench.channel import subscription as subscription_module
from bench.nostr import Event, Key
from tests.channel.kit import Inbox, room
from tests.relay.running import RunningRelay, create, note, within


async def test_a_member_gets_what_another_publishes_and_finds_it_again(relay: RunningRelay) -> None:
    agent, tag = relay.agent()
    inbox = Inbox()
    async with (
        open_session() as session,
        RelayClient(relay.url, relay.owner, session=session) as owner,
        RelayClient(relay.url, agent, auth_tag=tag, session=session) as member,
    ):
        channel = await room(owner, agent)
        stored = [note(relay.owner, channel, "1")]
        await owner.publish(stored[0])
        await member.subscribe({"kinds": [9], "#h": [channel]}, inbox.put)
        assert inbox.texts == ["1"], "the history is there when subscribe returns"
        message = note(relay.owner, channel, "2")
        assert await owner.publish(message) == message["id"]
        assert await owner.publish(message) == message["id"], "a duplicate is as good"
        await inbox.until(lambda: len(inbox) == 2)
        assert inbox == [*stored, message]
        assert message in await member.query([{"kinds": [9], "#h": [channel]}])
        assert owner.interruptions == member.interruptions == ()


async def test_the_history_comes_oldest_first_and_longer_than_one_answer(
    relay: RunningRelay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscription_module, "PAGE_EVENTS", 7)
    monkeypatch.setattr("bench.channel.client.PAGE_EVENTS", 7)
    inbox = Inbox()
    async with RelayClient(relay.url, relay.owner) as client:
        channel = await room(client)
        base = relay.owner.sign(9)["created_at"]
        messages = [relay.owner.sign(9, str(i), [["h", channel]], created_at=base - 30 + i // 2) for i in range(30)]
        await asyncio.gather(*(client.publish(message) for message in messages))
        await client.subscribe({"kinds": [9], "#h": [channel]}, inbox.put)
        assert {event["id"] for event in inbox} == {message["id"] for message in messages}
        assert len(inbox) == 30
        times = [event["created_at"] for event in inbox]
        assert times == sorted(times)


async def test_an_ended_subscription_is_silent(relay: RunningRelay) -> None:
    inbox = Inbox()
    async with RelayClient(relay.url, relay.owner) as client:
        channel = await room(client)
        ended = await client.subscribe({"#h": [channel]}, inbox.put)
        await client.unsubscribe(ended)
        await client.unsubscribe(ended)
        before = len(inbox)
        other = Inbox()
        await client.subscribe({"kinds": [9], "#h": [channel]}, other.put)
        await client.publish(note(relay.owner, channel, "x"))
        await other.until(lambda: len(other) == 1)
        assert len(inbox) == before


async def test_many_clients_share_one_session(relay: RunningRelay) -> None:
    async with open_session() as session:
        clients = [RelayClient(relay.url, relay.owner, session=session) for _ in range(128)]
        await within(asyncio.gather(*(client.connect() for client in clients)))
        await asyncio.gather(*(client.close() for client in clients))
        assert not session.closed


async def test_a_stranger_is_refused_with_what_to_do(relay: RunningRelay) -> None:
    stranger = Key.generate()
    with pytest.raises(RelayRefused) as caught:
        await RelayClient(relay.url, stranger).connect()
    assert caught.value.reason == "restricted: not a relay member"
    assert str(caught.value) == (
        "the relay refused the authentication: restricted: not a relay member;"
        " the relay admits its owner, and keys with an attestation (NIP-OA) of the owner"
    )


async def test_an_outsider_of_a_channel_is_told_how_to_get_in(relay: RunningRelay) -> None:
    agent, tag = relay.agent()
    async with (
        RelayClient(relay.url, relay.owner) as owner,
        RelayClient(relay.url, agent, auth_tag=tag) as outsider,
    ):
        channel = await room(owner)
        how = "restricted: not a channel member; an owner or admin of the channel has to add this key first (kind 9000)"
        with pytest.raises(RelayRefused) as caught:
            await outsider.publish(note(agent, channel, "x"))
        assert str(caught.value) == f"the relay refused an event of kind 9: {how}"
        with pytest.raises(RelayRefused) as caught:
            await outsider.subscribe({"#h": [channel]}, lambda _: None)
        assert str(caught.value) == f"the relay refused a subscription: {how}"
        with pytest.raises(RelayRefused, match=r"a query: HTTP 403 .*p-gated kinds require #p tag"):
            await outsider.query([{"kinds": [44200]}])


async def test_a_revoked_subscription_says_so(relay: RunningRelay) -> None:
    agent, tag = relay.agent()
    inbox = Inbox()
    async with (
        RelayClient(relay.url, relay.owner) as owner,
        RelayClient(relay.url, agent, auth_tag=tag) as member,
    ):
        channel = await room(owner, agent)
        live = await member.subscribe({"#h": [channel]}, inbox.put)
        notices = Inbox()
        await member.subscribe({"kinds": [44101], "#p": [agent.public]}, notices.put)
        await owner.publish(relay.owner.sign(9001, "", [["h", channel], ["p", agent.public]]))
        await notices.until(lambda: len(notices) == 1)
        await member.publish(agent.sign(0, "{}"))
        assert live.closed == "restricted: channel access revoked"


async def test_a_live_subscription_has_no_limit(relay: RunningRelay) -> None:
    async with RelayClient(relay.url, relay.owner) as client:
        for limit in ({"limit": 5}, {"until": 5}):
            with pytest.raises(ValueError, match="a live subscription has neither limit nor until"):
                await client.subscribe(limit, lambda _: None)


async def test_what_a_subscriber_raises_ends_the_client_and_everyone_hears_it(relay: RunningRelay) -> None:
    def broken(_: Event) -> None:
        raise ZeroDivisionError("a bug of the subscriber")

    async with RelayClient(relay.url, relay.owner) as client:
        with pytest.raises(ZeroDivisionError):
            await client.subscribe({"kinds": [9007]}, broken)
            await client.publish(create(relay.owner)[1])
            await client.subscribe({"kinds": [9007]}, broken)
        assert isinstance(await within(client.wait_gone()), ZeroDivisionError)
        with pytest.raises(ZeroDivisionError):
            await client.publish(relay.owner.sign(0, "{}"))


async def test_the_wrong_host_is_refused_at_once(relay: RunningRelay) -> None:
    async with open_session() as session:
        session.headers["Host"] = "relay.example"
        with pytest.raises(RelayRefused, match=r"^the relay refused the connection: HTTP 404"):
            await RelayClient(relay.url, relay.owner, session=session).connect()
