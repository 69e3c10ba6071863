"""Our relay held against Buzz's own: the same signed events and questions to both, and the same answers.

Skipped without BUZZBENCH_REAL_RELAY: the state directory of an installation of this machine whose stack is Buzz's relay
(`inv up --stack compose`). It is only added to: a few channels of keys that nobody else has.
"""

from __future__ import annotations

import os
import re
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from bench.keys import load
from bench.nostr import Event, Key
from bench.stack import address
from tests.relay.running import RunningRelay, Wire, add, create, note

GIVEN = os.environ.get("BUZZBENCH_REAL_RELAY")
pytestmark = pytest.mark.skipif(
    GIVEN is None, reason="BUZZBENCH_REAL_RELAY names no installation with Buzz's own relay"
)

NOW = int(time.time())
OWNER, ADMIN, MEMBER, OUTSIDER = PEOPLE = tuple(Key.generate() for _ in range(4))
ROOM, OPENED = create(OWNER)
HALL, HALL_OPENED = create(OWNER, private=False, name="hall")


def said(key: Key, kind: int, content: str = "", *tags: list[str], room: str | None = ROOM) -> Event:
    return key.sign(kind, content, ([["h", room]] if room else []) + list(tags), NOW)


FIRST = note(MEMBER, ROOM, "first needle", ["p", OWNER.public])
REPLY = note(OWNER, ROOM, "reply", ["e", FIRST["id"], "", "reply"])
SECOND = note(MEMBER, ROOM, "second")
REACTION = MEMBER.sign(7, "👀", [["e", FIRST["id"]]])
ADDED = add(OWNER, ROOM, MEMBER.public)
LAST = note(OWNER, ROOM, "the end")
UNKNOWN = "ab" * 32
SUMMARY = 39005

STEPS: list[tuple[Key, Event]] = [
    (OWNER, OPENED),
    (OWNER, HALL_OPENED),
    (OWNER, OWNER.sign(9007, "", [["h", str(uuid.uuid4())]])),
    (OWNER, OWNER.sign(9007, "again", [["h", ROOM], ["name", "room"]])),
    (OWNER, ADDED),
    (OWNER, add(OWNER, ROOM, ADMIN.public, "admin")),
    (MEMBER, add(MEMBER, ROOM, OUTSIDER.public)),
    (OUTSIDER, said(OUTSIDER, 9021)),
    (OUTSIDER, said(OUTSIDER, 9000, "", ["p", MEMBER.public], room=HALL)),
    (OWNER, said(OWNER, 9000, "", ["p", OWNER.public], ["role", "member"])),
    (OWNER, said(OWNER, 9000, "", ["p", MEMBER.public], ["role", "king"])),
    (MEMBER, FIRST),
    (MEMBER, FIRST),
    (OUTSIDER, note(OUTSIDER, ROOM)),
    (OUTSIDER, note(OUTSIDER, HALL)),
    (MEMBER, note(MEMBER, str(uuid.uuid4()))),
    (MEMBER, said(MEMBER, 9, "nowhere", room=None)),
    (OWNER, REPLY),
    (MEMBER, note(MEMBER, ROOM, "nested", ["e", REPLY["id"], "", "reply"])),
    (MEMBER, note(MEMBER, ROOM, "nested", ["e", FIRST["id"], "", "root"], ["e", REPLY["id"], "", "reply"])),
    (MEMBER, note(MEMBER, ROOM, "to nobody", ["e", UNKNOWN, "", "reply"])),
    (MEMBER, note(MEMBER, HALL, "elsewhere", ["e", FIRST["id"], "", "reply"])),
    (MEMBER, SECOND),
    (MEMBER, said(MEMBER, 40008, "diff")),
    (MEMBER, said(MEMBER, 40008, "diff", ["repo", "https://example.org/x"], ["commit", "abcdef0"])),
    (OWNER, said(OWNER, 40003, "not mine", ["e", FIRST["id"]])),
    (MEMBER, said(MEMBER, 40003, "better", ["e", FIRST["id"]])),
    (MEMBER, REACTION),
    (MEMBER, MEMBER.sign(7, "👀", [["e", FIRST["id"]], ["x", "again"]])),
    (MEMBER, MEMBER.sign(7, "x" * 65, [["e", FIRST["id"]]])),
    (MEMBER, MEMBER.sign(7, "+", [["e", UNKNOWN]])),
    (OUTSIDER, OUTSIDER.sign(7, "+", [["e", FIRST["id"]]])),
    (OWNER, OWNER.sign(5, "", [["e", REACTION["id"]]])),
    (MEMBER, MEMBER.sign(5, "", [["e", REACTION["id"]]])),
    (MEMBER, said(MEMBER, 9005, "", ["e", REPLY["id"]])),
    (ADMIN, said(ADMIN, 9005, "", ["e", REPLY["id"]])),
    (MEMBER, said(MEMBER, 9005, "", ["e", UNKNOWN])),
    (MEMBER, MEMBER.sign(0, "no JSON")),
    (MEMBER, MEMBER.sign(0, '{"display_name":"member"}')),
    (MEMBER, MEMBER.sign(20001, "online")),
    (MEMBER, said(MEMBER, 20002)),
    (MEMBER, said(MEMBER, 5555)),
    (MEMBER, said(MEMBER, 40099)),
    (MEMBER, MEMBER.sign(1, "old", [], NOW - 1000)),
    (MEMBER, said(MEMBER, 9002, "", ["name", "new"])),
    (MEMBER, said(MEMBER, 9002, "", ["topic", "today"])),
    (ADMIN, said(ADMIN, 9002, "", ["archived", "true"])),
    (MEMBER, note(MEMBER, ROOM, "too late")),
    (ADMIN, said(ADMIN, 9002, "", ["archived", "false"])),
    (MEMBER, said(MEMBER, 9001, "", ["p", ADMIN.public])),
    (OWNER, said(OWNER, 9022)),
    (ADMIN, said(ADMIN, 9001, "", ["p", MEMBER.public])),
    (MEMBER, note(MEMBER, ROOM, "still here?")),
    (OWNER, LAST),
]

QUESTIONS: list[dict[str, Any]] = [
    {"kinds": [9], "#h": [ROOM]},
    {"kinds": [9], "#h": [ROOM], "limit": 2},
    {"kinds": [9], "#h": [str(uuid.uuid4())]},
    {"kinds": [9], "authors": [MEMBER.public, OWNER.public]},
    {"kinds": [9], "#e": [FIRST["id"]], "#h": [ROOM]},
    {"kinds": [7], "authors": [MEMBER.public], "#e": [FIRST["id"]]},
    {"kinds": [40003], "#h": [ROOM]},
    {"kinds": [0], "authors": [MEMBER.public]},
    {"kinds": [39002], "#d": [ROOM]},
    {"kinds": [39002], "#p": [ADMIN.public]},
    {"kinds": [44101], "#p": [MEMBER.public]},
    {"kinds": [44100]},
    {"ids": [FIRST["id"]]},
    {"ids": [REPLY["id"]]},
    {"ids": ["short"]},
    {"authors": [MEMBER.public]},
    {"kinds": [9], "#h": [ROOM], "search": "NEEDLE"},
    {"kinds": [9], "#h": [ROOM], "search": "need"},
    {"kinds": [9], "#h": [HALL], "before_id": FIRST["id"]},
]


@pytest.fixture
def theirs() -> Iterator[RunningRelay]:
    assert GIVEN is not None
    found = address(Path(GIVEN))
    assert found is not None, "nothing runs there"
    yield RunningRelay("", load(Path(GIVEN)).owner, port=urlsplit(found.relay_url).port or 0)


@dataclass
class Told:
    """What one relay said, in words that don't tell which of the two it is."""

    relay: RunningRelay

    async def answers(self) -> list[str]:
        lines = []
        async with AsyncExitStack() as stack:
            wires = {key: await self._wire(stack, key) for key in PEOPLE}
            watchers = {key: await self._wire(stack, key) for key in (OWNER, MEMBER)}
            for key, event in STEPS:
                accepted, text = await wires[key].publish(event)
                if event is ADDED:
                    for watcher, wire in watchers.items():
                        await wire.request("room", {"#h": [ROOM], "limit": 0})
                        await wire.request("own", {"kinds": [44100, 44101], "#p": [watcher.public], "limit": 0})
                lines.append(f"{event['kind']} {event['tags']} {event['content'][:20]!r}: {accepted} {prefix(text)}")
            lines += sorted(await heard(watchers[OWNER], lambda frame: frame[2]["id"] == LAST["id"]))
            lines += sorted(await heard(watchers[MEMBER], lambda frame: frame[2]["kind"] == 44101))
        for key in (OWNER, MEMBER, OUTSIDER):
            for question in QUESTIONS:
                status, found = await self.relay.post("/query", [question], key, tag=self._tag(key))
                shown = sorted(plain(each) for each in found) if status == 200 else []
                lines.append(f"{PEOPLE.index(key)} asks {question}: {status} {shown}")
        return lines

    def _tag(self, key: Key) -> list[str]:
        return self.relay.owner.attest(key.public)

    async def _wire(self, stack: AsyncExitStack, key: Key) -> Wire:
        return await stack.enter_async_context(self.relay.socket(key, self._tag(key)))


async def heard(wire: Wire, is_last: Callable[[list[Any]], bool]) -> set[str]:
    """What came by subscription, but for summaries of threads: in no order, as Buzz's own comes in none."""
    told: set[str] = set()
    while True:
        frame = await wire.receive()
        if frame[0] == "CLOSED":
            told.add(str(frame))
        elif frame[2]["kind"] != SUMMARY:
            told.add(f"{frame[1]} {plain(frame[2])}")
        if frame[0] == "EVENT" and is_last(frame):
            return told


def prefix(text: str) -> str:
    """The machine's word at the head of a refusal, which alone clients tell apart."""
    found = re.match(r"[a-z]+:", text)
    return found[0] if found else text


def plain(event: Event) -> str:
    """An event of ours by its id; one that a relay signed by what it says."""
    if event["pubkey"] in {key.public for key in PEOPLE}:
        return str(event["id"])
    return f"{event['kind']} {event['tags']} {event['content']}"


async def test_our_relay_answers_as_buzzs_own(relay: RunningRelay, theirs: RunningRelay) -> None:
    ours, real = await Told(relay).answers(), await Told(theirs).answers()
    assert [pair for pair in zip(ours, real, strict=True) if pair[0] != pair[1]] == []
