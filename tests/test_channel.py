"""The client of a relay: authentication whenever it is asked for, and nothing lost or doubled over restarts."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from bench.channel import RelayClient, RelayGone, RelayRefused, open_session
from bench.channel import subscription as subscription_module
from bench.nostr import Event, Key
from bench.stack.postgres import Postgres
from tests.relay.running import RunningRelay, add, create, living_relay, new_database, within


@pytest.fixture(scope="module")
def relay(postgres_server: Postgres) -> Iterator[RunningRelay]:
    with new_database(postgres_server) as dsn, living_relay(dsn) as running:
        yield running


@pytest.fixture
def mortal(database: str) -> Iterator[RunningRelay]:
    """A relay that the test may kill."""
    running = RunningRelay(database).start()
    yield running
    running.stop()


class Inbox(list[Event]):
    """Received events, and a way to wait for them."""

    def __init__(self) -> None:
        super().__init__()
        self._came = asyncio.Event()

    def put(self, event: Event) -> None:
        self.append(event)
        self._came.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not condition():
                self._came.clear()
                await self._came.wait()

    @property
    def texts(self) -> list[str]:
        return [event["content"] for event in self]


async def room(client: RelayClient, *members: Key) -> str:
    channel, event = create(client.key)
    await client.publish(event)
    for member in members:
        await client.publish(add(client.key, channel, member.public))
    return channel


def note(key: Key, channel: str, text: str) -> Event:
    return key.sign(9, text, [["h", channel]])


# -- a relay that runs


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
        how = "restricted: not a channel member; a member of the channel has to add this key first (kind 9000)"
        with pytest.raises(RelayRefused) as caught:
            await outsider.publish(note(agent, channel, "x"))
        assert str(caught.value) == f"the relay refused an event of kind 9: {how}"
        with pytest.raises(RelayRefused) as caught:
            await outsider.subscribe({"#h": [channel]}, lambda _: None)
        assert str(caught.value) == f"the relay refused a subscription: {how}"
        with pytest.raises(RelayRefused, match=r"a query: HTTP 403 .*kind 44200 can be read with #p"):
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


# -- a relay that dies


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
        asking = asyncio.create_task(client.query([{"limit": 0}]))
        await asyncio.to_thread(mortal.start)
        assert await within(asking) == []
    async with RelayClient(mortal.url, mortal.owner, gone_after_s=0.3) as client:
        mortal.stop()
        with pytest.raises(RelayGone, match=r"(has not answered|could not be reached) for 0.3 s: "):
            await client.query([{"limit": 0}])


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


# -- a relay that asks for authentication late, twice or in vain (case 30)

type Script = Callable[[web.WebSocketResponse, list[Any], list[list[Any]]], Awaitable[None]]


@asynccontextmanager
async def served(serve: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    """A server with one route; yields its URL."""
    app = web.Application()
    app.router.add_get("/", serve)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        await web.SockSite(runner, listener).start()
        try:
            yield f"ws://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            await runner.cleanup()


@asynccontextmanager
async def scripted(on_frame: Script) -> AsyncIterator[tuple[str, list[list[Any]]]]:
    """A relay that answers as the script says; yields its URL and the frames that it got."""
    frames: list[list[Any]] = []

    async def serve(request: web.Request) -> web.WebSocketResponse:
        peer = web.WebSocketResponse()
        await peer.prepare(request)
        async for message in peer:
            frame = message.json()
            frames.append(frame)
            await on_frame(peer, frame, frames)
        return peer

    async with served(serve) as url:
        yield url, frames


NEEDED = "auth-required: please"
KEY = Key.generate()


def kinds(frames: list[list[Any]]) -> list[str]:
    return [frame[0] for frame in frames]


async def test_a_challenge_after_a_refusal_is_met_and_the_event_sent_once_more() -> None:
    known: set[str] = set()

    async def late(peer: web.WebSocketResponse, frame: list[Any], _: list[list[Any]]) -> None:
        match frame:
            case ["AUTH", answer]:
                known.add(answer["pubkey"])
                await peer.send_json(["OK", answer["id"], True, ""])
            case ["EVENT" | "REQ", *_] if not known:
                await peer.send_json(["AUTH", "challenge"])
                if frame[0] == "EVENT":
                    await peer.send_json(["OK", frame[1]["id"], False, NEEDED])
                else:
                    await peer.send_json(["CLOSED", frame[1], NEEDED])
            case ["EVENT", event]:
                await peer.send_json(["OK", event["id"], True, ""])
            case ["REQ", name, _]:
                await peer.send_json(["EOSE", name])

    async with scripted(late) as (url, frames), RelayClient(url, KEY) as client:
        event = KEY.sign(1, "x")
        assert await within(client.publish(event)) == event["id"]
        assert kinds(frames) == ["EVENT", "AUTH", "EVENT"]
    known.clear()
    async with scripted(late) as (url, frames), RelayClient(url, KEY) as client:
        await within(client.subscribe({"kinds": [1]}, lambda _: None))
        assert kinds(frames) == ["REQ", "AUTH", "REQ"]


async def test_a_second_refusal_raises_with_the_relays_text_after_two_sends() -> None:
    async def stubborn(peer: web.WebSocketResponse, frame: list[Any], frames: list[list[Any]]) -> None:
        if frame[0] == "AUTH":
            await peer.send_json(["OK", frame[1]["id"], True, ""])
        else:
            if len(frames) == 1:
                await peer.send_json(["AUTH", "challenge"])
            await peer.send_json(["OK", frame[1]["id"], False, NEEDED])

    async with scripted(stubborn) as (url, frames), RelayClient(url, KEY) as client:
        with pytest.raises(RelayRefused) as caught:
            await within(client.publish(KEY.sign(1, "x")))
        assert caught.value.reason == NEEDED
        assert str(caught.value).endswith("the relay did not accept this key's answer to its challenge (NIP-42)")
        assert sorted(kinds(frames)) == ["AUTH", "EVENT", "EVENT"]


async def test_after_a_refused_authentication_nothing_is_sent_again() -> None:
    refused = "restricted: not a relay member"

    async def closed(peer: web.WebSocketResponse, frame: list[Any], _: list[list[Any]]) -> None:
        if frame[0] == "AUTH":
            await peer.send_json(["OK", frame[1]["id"], False, refused])
        else:
            await peer.send_json(["AUTH", "challenge"])
            await peer.send_json(["OK", frame[1]["id"], False, NEEDED])

    async with scripted(closed) as (url, frames), RelayClient(url, KEY) as client:
        with pytest.raises(RelayRefused, match=r"the authentication: restricted: not a relay member"):
            await within(client.publish(KEY.sign(1, "x")))
        assert kinds(frames) == ["EVENT", "AUTH"]


async def test_another_refusal_is_final() -> None:
    async def full(peer: web.WebSocketResponse, frame: list[Any], _: list[list[Any]]) -> None:
        await peer.send_json(["NOTICE", "full"])
        await peer.send_json(["OK", frame[1]["id"], False, "blocked: full"])

    async with scripted(full) as (url, frames), RelayClient(url, KEY) as client:
        with pytest.raises(RelayRefused, match=r"^the relay refused an event of kind 1: blocked: full$"):
            await within(client.publish(KEY.sign(1, "x")))
        assert kinds(frames) == ["EVENT"]


async def test_trouble_of_the_relay_is_waited_out_and_is_no_refusal() -> None:
    async def troubled(peer: web.WebSocketResponse, frame: list[Any], frames: list[list[Any]]) -> None:
        if frame[0] == "EVENT":
            stored = frames.count(frame) == 3
            await peer.send_json(["OK", frame[1]["id"], stored, "" if stored else "error: the database is away"])

    async with scripted(troubled) as (url, frames), RelayClient(url, KEY) as client:
        await within(client.publish(KEY.sign(1, "x")))
        assert kinds(frames) == ["EVENT"] * 3

    async def hopeless(peer: web.WebSocketResponse, frame: list[Any], _: list[list[Any]]) -> None:
        await peer.send_json(["OK", frame[1]["id"], False, "error: the database is away"])

    async with scripted(hopeless) as (url, _), RelayClient(url, KEY, answer_s=0.8) as client:
        with pytest.raises(RelayGone, match=r"has not answered an event of kind 1 for 0.8 s$"):
            await within(client.publish(KEY.sign(1, "x")))


async def test_a_subscription_that_the_relay_ends_for_its_own_trouble_is_asked_for_again() -> None:
    """As one does that is shutting down, to a client that was quick to come back."""

    async def troubled(peer: web.WebSocketResponse, frame: list[Any], frames: list[list[Any]]) -> None:
        if frame[0] == "REQ":
            asked = [each[0] for each in frames].count("REQ")
            await peer.send_json(["EOSE", frame[1]] if asked == 3 else ["CLOSED", frame[1], "error: no database"])

    async with scripted(troubled) as (url, frames), RelayClient(url, KEY) as client:
        subscription = await within(client.subscribe({"kinds": [1]}, lambda _: None))
        assert (subscription.closed, kinds(frames)) == (None, ["REQ"] * 3)

    async def hopeless(peer: web.WebSocketResponse, frame: list[Any], _: list[list[Any]]) -> None:
        await peer.send_json(["CLOSED", frame[1], "error: no database"])

    async with scripted(hopeless) as (url, _), RelayClient(url, KEY, answer_s=1.5) as client:
        with pytest.raises(RelayGone, match=r"has not answered a subscription for 1.5 s$"):
            await within(client.subscribe({"kinds": [1]}, lambda _: None))


async def test_a_relay_in_trouble_at_the_authentication_is_dialled_again_for_as_long_as_allowed() -> None:
    async def troubled(peer: web.WebSocketResponse, frame: list[Any], frames: list[list[Any]]) -> None:
        if frame[0] == "EVENT":
            await peer.send_json(["AUTH", "challenge"])
            await peer.send_json(["OK", frame[1]["id"], False, NEEDED])
        elif len(frames) < 4:
            await peer.send_json(["OK", frame[1]["id"], False, "error: the database is away"])
        else:
            await peer.send_json(["OK", frame[1]["id"], True, ""])
            await peer.send_json(["OK", frames[0][1]["id"], True, ""])

    async with scripted(troubled) as (url, frames), RelayClient(url, KEY) as client:
        await within(client.publish(KEY.sign(1, "x")))
        assert kinds(frames)[:4] == ["EVENT", "AUTH", "EVENT", "AUTH"]
        [lost] = client.interruptions
        assert lost.cause == "the authentication failed: error: the database is away"


async def test_a_relay_that_always_hangs_up_is_gone_in_the_end() -> None:
    async def hang_up(request: web.Request) -> web.WebSocketResponse:
        peer = web.WebSocketResponse()
        await peer.prepare(request)
        await peer.close()
        return peer

    async with served(hang_up) as url:
        with pytest.raises(RelayGone, match=r"could not be reached for 0.3 s: closed with code 1000$"):
            await RelayClient(url, KEY, gone_after_s=0.3).connect()


async def test_a_server_that_is_no_relay_is_refused() -> None:
    async def nothing(_: web.Request) -> web.StreamResponse:
        raise web.HTTPNotFound

    async with served(nothing) as url:
        with pytest.raises(RelayRefused, match="the connection: HTTP 404"):
            await RelayClient(url, KEY).connect()
