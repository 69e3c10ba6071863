"""One whole loop of Buzz's own programs, captured: our relay takes the same requests and answers in the same forms.

data/one-loop.jsonl holds what unmodified `buzz`, `buzz-acp` and an observer sent to Buzz's relay, and its answers,
while a user gave a task to an orchestrator, who handed it to a worker and said DONE (keys made for that capture).
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from bench.nostr import Event, Key, attested_owner, tag_value, verified
from bench.relay.access import Authority, RequestProofs, attestation_of, check_answer
from bench.relay.protocol import parse_event
from bench.stack.postgres import Postgres
from tests.relay.running import RunningRelay, living_relay, new_database, within

CAPTURE = Path(__file__).parent / "data/one-loop.jsonl"
LINES = [json.loads(line) for line in CAPTURE.read_text(encoding="utf-8").splitlines()]
POSTS = [line for line in LINES if line["dir"] == "c>s" and line.get("http", {}).get("line", "").startswith("POST")]
FIRST_S = int(LINES[0]["t"])
AUTHORITY = Authority.of("ws://localhost:13700")


def events_in(value: Any) -> Iterator[Event]:
    """Every event anywhere in a frame or body."""
    if isinstance(value, dict):
        if {"id", "sig", "kind"} <= value.keys():
            yield value
        for each in value.values():
            yield from events_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from events_in(each)


# -- the captured bytes themselves


def test_every_captured_event_is_well_formed_and_verified() -> None:
    found = [event for line in LINES for event in events_in(line)]
    assert len(found) == 98
    for event in found:
        assert parse_event(event) == event
        assert verified(event)


def test_every_captured_request_passes_as_nip_98_with_its_attestation() -> None:
    for line in POSTS:
        headers, body = line["http"]["headers"], orjson.dumps(line["http"]["json"])
        _, path, _ = line["http"]["line"].split()
        proofs = RequestProofs(AUTHORITY, clock=lambda at=line["t"]: at)  # type: ignore[misc]
        public = proofs.identity(headers["authorization"], "POST", path, body)
        assert attested_owner(headers["x-auth-tag"], public)
        assert AUTHORITY.is_host(headers["host"])


def test_every_captured_answer_to_a_challenge_passes_as_nip_42() -> None:
    challenges = {}
    answers = 0
    for line in LINES:
        match line.get("ws"), line["dir"]:
            case ["AUTH", str(challenge)], "s>c":
                challenges[line["conn"]] = challenge
            case ["AUTH", dict(event)], "c>s":
                check_answer(event, challenges[line["conn"]], AUTHORITY, line["t"])
                assert attested_owner(attestation_of(event) or "", event["pubkey"])
                answers += 1
    assert answers == 3


# -- the same loop against our relay


class Actors:
    """Our keys in the place of the captured ones, and every captured event made anew with them."""

    def __init__(self, relay: RunningRelay) -> None:
        self.relay = relay
        self.keys: dict[str, Key] = {}
        self.made: dict[str, str] = {}  # captured event id -> ours
        self.shift = int(time.time()) - FIRST_S
        owner = next(tag_value(e, "auth") for line in POSTS for e in events_in(line) if tag_value(e, "auth"))
        assert owner is not None
        self.owner = owner
        self.keys[owner] = relay.owner
        for line in LINES:
            if line["dir"] == "c>s":
                for event in events_in(line):
                    self.key(event["pubkey"])
        self.captured_relay = next(
            line["http"]["json"]["self"] for line in LINES if "self" in str(line.get("http", {}).get("json"))
        )

    def key(self, captured: str) -> Key:
        return self.keys.setdefault(captured, Key.generate())

    def attestation(self, captured: str) -> list[str]:
        return self.relay.owner.attest(self.key(captured).public)

    def translate(self, value: Any) -> Any:
        """The value with our keys, ids and times."""
        match value:
            case str() if value in self.made:
                return self.made[value]
            case str() if value in self.keys:
                return self.keys[value].public
            case list():
                return [self.translate(each) for each in value]
            case dict():
                return {
                    name: each + self.shift if name in ("since", "until") else self.translate(each)
                    for name, each in value.items()
                }
        return value

    def remake(self, event: Event) -> Event:
        tags = [self.attestation(event["pubkey"]) if tag[0] == "auth" else self.translate(tag) for tag in event["tags"]]
        at = event["created_at"] + self.shift
        made = self.key(event["pubkey"]).sign(event["kind"], event["content"], tags, at)
        self.made[event["id"]] = made["id"]
        return made

    def names(self) -> dict[str, str]:
        """What stands for what, both ways to one name: our keys and ids, and the captured ones."""
        known = {self.captured_relay: "<relay>", self.relay.key.public: "<relay>"}
        for number, (captured, key) in enumerate(self.keys.items()):
            known[captured] = known[key.public] = f"<key {number}>"
        for number, (captured, ours) in enumerate(self.made.items()):
            known[captured] = known[ours] = f"<event {number}>"
        return known

    def plain(self, event: Event) -> str:
        """The event without what differs by nature: its id, signature and time, and whose keys they are."""
        tags = [tag[:2] if tag[0] == "auth" else tag for tag in event["tags"]]
        text = json.dumps([event["kind"], event["pubkey"], tags, event["content"]])
        for value, name in self.names().items():
            text = text.replace(value, name)
        return text


@pytest.fixture(scope="module")
def relay(postgres_server: Postgres) -> Iterator[RunningRelay]:
    with new_database(postgres_server) as dsn, living_relay(dsn) as running:
        yield running


class Listener:
    """One websocket of the loop: what came, subscription by subscription."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self.frames: list[list[Any]] = []
        self._came = asyncio.Event()
        self.task = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        async for message in self.socket:
            self.frames.append(json.loads(message.data))
            self._came.set()

    async def until(self, *head: Any) -> list[Any]:
        """The first frame that begins like that."""
        async with asyncio.timeout(15):
            while True:
                for frame in self.frames:
                    if frame[: len(head)] == list(head):
                        return frame
                self._came.clear()
                await self._came.wait()

    async def until_as_many_as(self, theirs: list[list[Any]]) -> None:
        while kinds(self.frames).total() < kinds(theirs).total():
            self._came.clear()
            await self._came.wait()


@contextlib.asynccontextmanager
async def replayed(relay: RunningRelay) -> AsyncIterator[tuple[Actors, dict[int, Any], dict[int, Listener]]]:
    """Send every captured request in its order, waiting for each answer; yields the answers by line number."""
    actors = Actors(relay)
    answers: dict[int, Any] = {}
    listeners: dict[int, Listener] = {}
    async with aiohttp.ClientSession() as session:
        for number, line in enumerate(LINES):
            if line["dir"] != "c>s":
                continue
            if "ws" in line:
                await send(actors, listeners[line["conn"]], line["ws"])
            elif line["http"]["headers"].get("upgrade"):
                listeners[line["conn"]] = Listener(await session.ws_connect(relay.url))
            elif line["http"]["line"].startswith("POST"):
                answers[number] = await post(actors, line["http"])
        yield actors, answers, listeners
        for listener in listeners.values():
            await listener.socket.close()
            await listener.task


async def send(actors: Actors, listener: Listener, frame: list[Any]) -> None:
    match frame:
        case ["AUTH", event]:
            _, challenge = await listener.until("AUTH")
            captured = event["pubkey"]
            answer = actors.key(captured).answer_challenge(challenge, actors.relay.url, actors.attestation(captured))
            await listener.socket.send_json(["AUTH", answer])
            assert await listener.until("OK", answer["id"]) == ["OK", answer["id"], True, ""]
        case ["EVENT", event]:
            made = actors.remake(event)
            await listener.socket.send_json(["EVENT", made])
            assert await listener.until("OK", made["id"]) == ["OK", made["id"], True, ""]
        case ["REQ", name, *filters]:
            await listener.socket.send_json(["REQ", name, *actors.translate(filters)])
            await listener.until("EOSE", name)


async def post(actors: Actors, captured: dict[str, Any]) -> tuple[int, Any]:
    header = captured["headers"]["authorization"].removeprefix("Nostr ")
    author = json.loads(base64.b64decode(header))["pubkey"]
    _, path, _ = captured["line"].split()
    given = captured["json"]
    body = actors.remake(given) if path == "/events" else actors.translate(given)
    return await actors.relay.post(path, body, actors.key(author), tag=actors.attestation(author))


def captured_answers() -> dict[int, tuple[int, Any]]:
    """The captured answer of each POST, by the line number of its request: on a connection they alternate."""
    open_requests: dict[int, int] = {}
    answers = {}
    for number, line in enumerate(LINES):
        if "http" not in line:
            continue
        if line["dir"] == "c>s":
            open_requests[line["conn"]] = number
        else:
            status = int(line["http"]["line"].split()[1])
            answers[open_requests[line["conn"]]] = (status, line["http"]["json"])
    return answers


async def test_the_loop_runs_on_our_relay_with_the_same_answers(relay: RunningRelay) -> None:
    async with replayed(relay) as (actors, answers, listeners):
        captured = captured_answers()
        assert len(answers) == len(POSTS) == 58
        for number, (status, ours) in answers.items():
            expected_status, theirs = captured[number]
            assert status == expected_status, LINES[number]
            if isinstance(theirs, list):
                assert [set(e) for e in ours] == [set(e) for e in theirs]
                plain = Counter(map(actors.plain, ours)), Counter(map(actors.plain, theirs))
                assert plain[0] == plain[1], LINES[number]
                assert all(verified(event) for event in ours)
                times = [event["created_at"] for event in ours]
                assert times == sorted(times, reverse=True)
            else:
                assert ours == {**theirs, "event_id": actors.made[theirs["event_id"]]}, LINES[number]
        for connection, listener in listeners.items():
            theirs = [
                line["ws"] for line in LINES if (line["conn"], line["dir"]) == (connection, "s>c") and "ws" in line
            ]
            await within(listener.until_as_many_as(theirs))
            assert kinds(listener.frames) == kinds(theirs)
            assert heard(actors, listener.frames) == heard(actors, theirs)


def kinds(frames: list[list[Any]]) -> Counter[str]:
    """How many of each; without OK: `send` waits for each one, and acp left without its last."""
    return Counter(frame[0] for frame in frames if frame[0] != "OK")


def heard(actors: Actors, frames: list[list[Any]]) -> Counter[tuple[str, str]]:
    return Counter((frame[1], actors.plain(frame[2])) for frame in frames if frame[0] == "EVENT")


async def test_the_information_document_has_the_fields_of_buzzs(relay: RunningRelay) -> None:
    theirs = next(line["http"]["json"] for line in LINES if "limitation" in str(line.get("http")))
    status, body = await relay.get("/", Accept="application/nostr+json")
    ours = json.loads(body)
    assert status == 200
    assert theirs.keys() == ours.keys()
    extension = {"due_delivery_mode", "max_not_before_delta"}  # of Buzz's reminders, which we don't have
    assert theirs["limitation"].keys() - extension == ours["limitation"].keys()
    # `max_limit` is not among them: the one recorded told 10000, later ones tell the 1000 that they hold to.
    for name in ("max_message_length", "max_subscriptions", "max_filters", "max_subid_length"):
        assert ours["limitation"][name] == theirs["limitation"][name]
