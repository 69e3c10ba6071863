"""The client of a relay that dies, hangs or holds back: nothing is lost or doubled, and one that is gone is said."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator

import pytest

from bench.channel import RelayClient, RelayGone
from bench.nostr import Event, Key
from tests.channel.kit import Inbox, room
from tests.relay.running import RunningRelay, note, within


async def test_a_kill_while_publishing_loses_and_doubles_nothing(mortal: RunningRelay) -> None:
    agent, tag = mortal.agent()
    inbox = Inbox()
    accepted: set[str] = set()
    async with (
        RelayClient(mortal.url, mortal.owner) as owner,
        RelayClient(mortal.url, agent, auth_tag=tag) as member,
    ):
        channel = await room(owner, agent)
        await member.subscribe({"kinds": [9], "#h": [channel]}, inbox.put)
        messages = [note(mortal.owner, channel, str(i)) for i in range(600)]
        todo = iter(messages)
        last_kill = asyncio.Event()

        async def publish() -> None:
            for number, message in enumerate(todo):
                if number >= 60:  # of about 75 each: however fast the relay is, some are left for after the last kill
                    await last_kill.wait()
                accepted.add(await owner.publish(message))

        publishers = [asyncio.create_task(publish()) for _ in range(8)]
        for share in (100, 300):
            await inbox.until(lambda share=share: len(inbox) >= share)  # type: ignore[misc]
            await asyncio.to_thread(mortal.stop, signal.SIGKILL)
            await asyncio.to_thread(mortal.start)
        last_kill.set()
        await within(asyncio.gather(*publishers))
        everything = {message["id"] for message in messages}
        assert accepted == everything
        await inbox.until(lambda: len(inbox) >= 600)
        assert len(inbox) == 600, "nothing twice"
        assert {event["id"] for event in inbox} == everything
        stored = await member.query([{"kinds": [9], "#h": [channel], "limit": 2000}])
        assert {event["id"] for event in stored} == everything
        for client in (owner, member):
            assert len(client.interruptions) == 2
            assert all(i.back_at is not None and i.back_at >= i.lost_at for i in client.interruptions)


async def test_what_was_published_while_one_was_away_is_delivered_oldest_first(relay: RunningRelay) -> None:
    inbox = Inbox()
    async with RelayClient(relay.url, relay.owner) as away:
        channel = await room(away)
        await away.subscribe({"kinds": [9], "#h": [channel]}, inbox.put)
        await away.publish(note(relay.owner, channel, "before"))
        connection = away._connection
        real, connection.url = connection.url, "ws://localhost:1"
        assert connection._socket is not None
        await connection._socket.close()
        base = relay.owner.sign(9)["created_at"]
        async with RelayClient(relay.url, relay.owner) as other:
            for number in range(5):
                tags = [["h", channel]]
                await other.publish(relay.owner.sign(9, str(number), tags, created_at=base - 800 + number))
        connection.url = real
        await inbox.until(lambda: len(inbox) == 6)
        assert inbox.texts == ["before", "0", "1", "2", "3", "4"]
        [lost] = away.interruptions
        assert lost.cause.startswith("closed with code")


@pytest.fixture
def strict(database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningRelay]:
    """A relay that takes twenty frames in five seconds from a key."""
    monkeypatch.setenv("BUZZ_RATE_LIMIT_HUMAN_WS_EVENTS_PER_SEC", "4")
    started = RunningRelay(database).start()
    yield started
    started.stop()


async def test_what_is_too_much_for_the_relay_is_said_again_when_it_may_be_and_nothing_is_lost(
    strict: RunningRelay,
) -> None:
    """An event that is too much has no answer at all: only a notice tells of it."""
    async with RelayClient(strict.url, strict.owner) as client:
        channel = await room(client)
        notes = [note(strict.owner, channel, f"note {number}") for number in range(40)]
        await asyncio.gather(*(client.publish(each) for each in notes))
        heard: list[Event] = []
        await client.subscribe({"#h": [channel], "kinds": [9]}, heard.append)
        assert sorted(event["id"] for event in heard) == sorted(event["id"] for event in notes)
        assert client.interruptions == ()


async def test_a_relay_that_stays_away_is_gone_for_everyone(mortal: RunningRelay) -> None:
    async with RelayClient(mortal.url, mortal.owner, gone_after_s=0.5) as client:
        channel = await room(client)
        mortal.stop(signal.SIGKILL)
        publishing = asyncio.create_task(client.publish(note(mortal.owner, channel, "x")))
        reason = rf"^{mortal.url} could not be reached for 0.5 s: connection refused$"
        assert isinstance(await within(client.wait_gone()), RelayGone)
        with pytest.raises(RelayGone, match=reason):
            await within(publishing)
        with pytest.raises(RelayGone, match=reason):
            await client.subscribe({}, lambda _: None)
        with pytest.raises(RelayGone, match=reason):
            await client.query([{}])
        [lost] = client.interruptions
        assert lost.back_at is None


async def test_a_relay_that_was_never_there_is_gone() -> None:
    with pytest.raises(RelayGone, match=r"^ws://localhost:1 could not be reached for 0.2 s: "):
        await RelayClient("ws://localhost:1", Key.generate(), gone_after_s=0.2).connect()


async def test_a_query_waits_for_a_relay_that_restarts_and_not_for_one_that_is_gone(
    mortal: RunningRelay,
) -> None:
    async with RelayClient(mortal.url, mortal.owner, gone_after_s=20) as client:
        mortal.stop(signal.SIGKILL)
        asking = asyncio.create_task(client.query([{"kinds": [9], "limit": 0}]))
        await asyncio.to_thread(mortal.start)
        assert await within(asking) == []
    async with RelayClient(mortal.url, mortal.owner, gone_after_s=0.3) as client:
        mortal.stop()
        with pytest.raises(RelayGone, match=r"(has not answered|could not be reached) for 0.3 s: "):
            await client.query([{"kinds": [9], "limit": 0}])


async def test_closing_ends_whatever_waits(mortal: RunningRelay) -> None:
    client = await RelayClient(mortal.url, mortal.owner).connect()
    mortal.pause()
    try:
        publishing = asyncio.create_task(client.publish(mortal.owner.sign(0, "{}")))
        await asyncio.sleep(0)
        closing = asyncio.create_task(client.close())
        with pytest.raises(RelayGone, match="this client of the relay was closed"):
            await within(publishing)
    finally:
        mortal.proceed()
    await within(closing)
    await client.close()
    with pytest.raises(RelayGone):
        await client.publish(mortal.owner.sign(0, "{}"))


async def test_a_relay_that_hangs_is_noticed(mortal: RunningRelay) -> None:
    async with RelayClient(mortal.url, mortal.owner, answer_s=0.2) as client:
        mortal.pause()
        try:
            with pytest.raises(RelayGone, match=r"has not answered an event of kind 0 for 0.2 s$"):
                await client.publish(mortal.owner.sign(0, "{}"))
        finally:
            mortal.proceed()
