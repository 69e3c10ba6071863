"""buzzkit's client, which nobody here wrote, against our relay.

It is unchanged but for the header with an agent's attestation, which its calls of the bridge lack, and without which
Buzz's own relay refuses them.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Iterator
from functools import partial

import buzzkit
import httpx
import pytest

from bench.nostr import Key, tag_value
from bench.stack.postgres import Postgres
from tests.relay.running import RunningRelay, living_relay, new_database, within


@pytest.fixture(scope="module")
def relay(postgres_server: Postgres) -> Iterator[RunningRelay]:
    with new_database(postgres_server) as dsn, living_relay(dsn) as running:
        yield running


@pytest.fixture
async def owner(relay: RunningRelay) -> AsyncIterator[buzzkit.BuzzClient]:
    async with buzzkit.BuzzClient(relay.url, relay.owner.nsec) as client:
        yield client


@pytest.fixture
async def agent(relay: RunningRelay, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[buzzkit.BuzzClient]:
    key, tag = relay.agent()
    monkeypatch.setattr(httpx, "AsyncClient", partial(httpx.AsyncClient, headers={"x-auth-tag": json.dumps(tag)}))
    async with buzzkit.BuzzClient(relay.url, key.secret, auth_tag=json.dumps(tag)) as client:
        yield client


async def room(owner: buzzkit.BuzzClient, relay: RunningRelay, *members: str, visibility: str = "private") -> str:
    channel = str(uuid.uuid4())
    event = buzzkit.build_create_channel_event(relay.owner.secret, channel, "room", visibility, "stream")
    assert (await owner.publish(event))["accepted"]
    for member in members:
        addition = relay.owner.sign(9000, "", [["h", channel], ["p", member]])
        assert (await owner.publish(json.dumps(addition)))["accepted"]
    return channel


async def test_a_stranger_is_refused_in_the_words_it_expects(relay: RunningRelay) -> None:
    with pytest.raises(RuntimeError, match="NIP-42 auth rejected: restricted: not a relay member"):
        await buzzkit.BuzzClient(relay.url, Key.generate().secret).connect()


async def test_a_message_over_http_is_seen_by_its_subscriber(
    relay: RunningRelay, owner: buzzkit.BuzzClient, agent: buzzkit.BuzzClient
) -> None:
    channel = await room(owner, relay, agent.pubkey_hex)
    seen = agent.subscribe_channel(channel)
    first = asyncio.ensure_future(anext(seen))
    sent = await owner.send_message(channel, "hello", [agent.pubkey_hex])
    assert sent == {"event_id": sent["event_id"], "accepted": True, "message": ""}
    event = await within(first)
    assert (event["id"], event["content"]) == (sent["event_id"], "hello")
    assert tag_value(event, "p") == agent.pubkey_hex


async def test_a_thread_an_edit_a_reaction_and_their_ends(
    relay: RunningRelay, owner: buzzkit.BuzzClient, agent: buzzkit.BuzzClient
) -> None:
    channel = await room(owner, relay, agent.pubkey_hex)
    root = (await owner.send_message(channel, "root"))["event_id"]
    reply = (await agent.send_message(channel, "reply", reply_to=root))["event_id"]
    nested = await owner.send_message(channel, "nested", reply_to=reply, reply_root=root)
    assert nested["accepted"]
    assert (await agent.edit_message(channel, reply, "better"))["accepted"]
    reaction = (await agent.react(root, "👀"))["event_id"]
    asked = [{"kinds": [7], "#e": [root]}]
    assert [event["id"] for event in await owner.query(asked)] == [reaction]
    assert (await agent.remove_reaction(reaction))["accepted"]
    assert await owner.query(asked) == []
    assert (await agent.delete_message(channel, reply))["accepted"]
    refused = await agent.delete_message(channel, root, reason="spam")
    assert refused["accepted"] is False
    texts = {event["content"] for event in await owner.query([{"kinds": [9, 40003], "#h": [channel]}])}
    assert texts == {"root", "nested", "better"}
    with pytest.raises(RuntimeError, match="invalid: edit target event not found"):
        await agent.edit_message(channel, reply, "again")


async def test_channels_are_listed_joined_named_and_left(
    relay: RunningRelay, owner: buzzkit.BuzzClient, agent: buzzkit.BuzzClient
) -> None:
    hidden = await room(owner, relay)
    channel = await room(owner, relay, visibility="open")
    listed = {each["channel_id"]: each["name"] for each in await agent.list_channels()}
    assert listed.get(channel) == "room"
    assert hidden not in listed
    assert (await agent.join_channel(channel))["accepted"]
    assert (await agent.set_topic(channel, "today"))["accepted"]
    [metadata] = await agent.query([{"kinds": [39000], "#d": [channel]}])
    assert tag_value(metadata, "topic") == "today"
    assert (await agent.leave_channel(channel))["accepted"]
    [members] = await agent.query([{"kinds": [39002], "#d": [channel]}])
    assert [tag[1] for tag in members["tags"] if tag[0] == "p"] == [relay.owner.public]


async def test_an_agent_is_found_by_its_profile_and_its_owners_record(
    relay: RunningRelay, owner: buzzkit.BuzzClient, agent: buzzkit.BuzzClient
) -> None:
    assert (await agent.set_profile("Worker", about="works"))["accepted"]
    assert (await agent.set_status("busy", emoji="🔨"))["accepted"]
    record = relay.owner.sign(30177, '{"name":"Worker"}', [["d", agent.pubkey_hex]])
    assert (await owner.post_event(json.dumps(record)))["accepted"]
    [found] = await owner.resolve_agent("worker")
    assert (found["pubkey"], found["verification"]) == (agent.pubkey_hex, "verified")


async def test_presence_goes_by_websocket_only(agent: buzzkit.BuzzClient) -> None:
    assert (await agent.publish_presence("online"))["accepted"]
    event = buzzkit.build_presence_event(agent._secret, "online")
    with pytest.raises(RuntimeError, match=r"HTTP bridge error 400 on /events: .*only accepted via WebSocket"):
        await agent.post_event(event)


async def test_a_relay_that_stops_says_that_it_restarts(database: str) -> None:
    with living_relay(database) as own:
        client = buzzkit.BuzzClient(own.url, own.owner.secret)
        await client.connect()
        seen = client.subscribe_channel(await room(client, own))
        waiting = asyncio.ensure_future(anext(seen, None))
        await asyncio.sleep(0)
        await asyncio.to_thread(own.stop)
        assert await within(waiting) is None
        assert client.close_code == 1012
        await client.close()
