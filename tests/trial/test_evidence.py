"""Evidence: drawn from signed events alone, in the order of their arrival."""

from __future__ import annotations

import json
from typing import Any

from bench.nostr import Event, Key
from bench.trial import evidence
from bench.trial.evidence import Person, Subject

USER, ORCH, WORKER, STRANGER, RELAY = (Key.generate() for _ in range(5))
CHANNEL = "0c5a0e5e-0000-4000-8000-000000000001"
SUBJECT = Subject(
    "t__1",
    "buzz/t",
    CHANNEL,
    Person("user", USER.public),
    (
        Person("orch", ORCH.public, "orch", "orchestrator", "lead"),
        Person("worker-1", WORKER.public, "worker", "worker", "implementer"),
    ),
)


def say(key: Key, text: str, *tags: list[str], kind: int = 9) -> Event:
    return key.sign(kind, text, [["h", CHANNEL], *tags], created_at=1_700_000_000)


def build(*events: Event) -> dict[str, Any]:
    return evidence.build(SUBJECT, events)


def test_a_tag_that_holds_somebodys_name_in_the_place_of_a_key_is_nobody() -> None:
    built = build(say(ORCH, "told", ["p", "user"], ["p", USER.public]), ORCH.sign(9000, "", [["p", "worker-1"]]))
    assert built["messages"][0]["mentions"] == ["?", "user"], "what names the user by a text mentions nobody"
    assert [one["target"] for one in built["memberships"]] == ["?"]


def test_messages_name_their_people_and_keep_their_order_of_arrival() -> None:
    task = say(USER, "do it", ["p", ORCH.public])
    asked = say(ORCH, "please", ["p", WORKER.public], ["p", WORKER.public], ["p", STRANGER.public])
    answer = say(WORKER, "done", ["e", asked["id"], "", "reply"], ["p", ORCH.public])
    deeper = say(ORCH, "thanks", ["e", asked["id"], "", "root"], ["e", answer["id"], "", "reply"])
    found = build(task, asked, answer, deeper)["messages"]
    assert [(m["seq"], m["author"], m["mentions"]) for m in found] == [
        (0, "user", ["orch"]),
        (1, "orch", ["worker-1", STRANGER.public]),
        (2, "worker-1", ["orch"]),
        (3, "orch", []),
    ]
    assert [(m["root"], m["parent"]) for m in found] == [
        (None, None),
        (None, None),
        (asked["id"], asked["id"]),
        (asked["id"], answer["id"]),
    ]


def test_an_edit_counts_only_from_the_messages_author() -> None:
    message = say(ORCH, "before")
    edits = [
        say(ORCH, "after", ["e", message["id"]], kind=40003),
        say(WORKER, "forged", ["e", message["id"]], kind=40003),
    ]
    built = build(message, *edits)
    (found,) = built["messages"]
    assert (found["text"], found["first_text"], found["edited"]) == ("after", "before", True)
    assert [(e["author"], e["target"], e["text"]) for e in built["edits"]] == [
        ("orch", message["id"], "after"),
        ("worker-1", message["id"], "forged"),
    ]


def test_whatever_is_drawn_from_an_event_has_its_number_in_the_order_of_arrival() -> None:
    message = say(ORCH, "before")
    forged = {**say(ORCH, "false"), "content": "changed"}
    reaction = WORKER.sign(7, "👍", [["e", message["id"]]])
    edit = say(ORCH, "after", ["e", message["id"]], kind=40003)
    removed = ORCH.sign(9001, "", [["h", CHANNEL], ["p", WORKER.public]])
    found = build(message, forged, reaction, edit, removed, say(ORCH, "last"))
    numbers = {part: [row["seq"] for row in found[part]] for part in ("messages", "reactions", "edits", "memberships")}
    assert numbers == {"messages": [0, 5], "reactions": [2], "edits": [3], "memberships": [4]}
    for part, seqs in numbers.items():
        assert [found["events"][seq]["id"] for seq in seqs] == [row["id"] for row in found[part]]


def test_reactions_that_were_taken_back_are_gone() -> None:
    message = say(ORCH, "hello")
    kept, dropped = (WORKER.sign(7, emoji, [["e", message["id"]]]) for emoji in ("👍", "👀"))
    back = WORKER.sign(5, "", [["e", dropped["id"]]])
    forged = ORCH.sign(5, "", [["e", kept["id"]]])
    assert build(message, kept, dropped, back, forged)["reactions"] == [
        {"id": kept["id"], "seq": 1, "author": "worker-1", "target": message["id"], "emoji": "👍"}
    ]


def test_channels_and_memberships_come_from_the_relays_lists_and_the_orders_it_took() -> None:
    added = USER.sign(9000, "", [["h", CHANNEL], ["p", WORKER.public]])
    left = WORKER.sign(9022, "", [["h", CHANNEL]])
    lists = [
        RELAY.sign(39000, "", [["d", CHANNEL], ["name", "t"], ["private"]], created_at=10),
        RELAY.sign(39002, "", [["d", CHANNEL], ["p", USER.public], ["p", ORCH.public]], created_at=12),
        RELAY.sign(39002, "", [["d", CHANNEL], ["p", USER.public]], created_at=11),
    ]
    made = USER.sign(9007, "", [["h", CHANNEL], ["name", "t"]])
    found = build(made, added, left, *lists)
    assert found["channels"] == [{"id": CHANNEL, "name": "t", "creator": "user", "members": ["user", "orch"]}]
    assert build(*lists)["channels"][0]["creator"] is None
    assert [(m["kind"], m["author"], m["target"]) for m in found["memberships"]] == [
        (9000, "user", "worker-1"),
        (9022, "worker-1", "worker-1"),
    ]


def test_an_event_with_a_wrong_signature_is_listed_and_nothing_is_drawn_from_it() -> None:
    true = say(ORCH, "true")
    forged = {**say(ORCH, "false"), "content": "changed"}
    found = build(true, forged)
    assert found["invalid"] == [forged["id"]]
    assert [m["text"] for m in found["messages"]] == ["true"]
    assert found["events"] == [true, forged]


def test_an_event_that_came_twice_is_there_once() -> None:
    event = say(ORCH, "once")
    assert build(event, event)["events"] == [event]


def test_the_form_is_the_documented_one_and_encodes_any_text() -> None:
    found = build(say(ORCH, "ä\u2028☃\n"))
    assert list(found) == [
        *("schema", "trial", "task", "channel", "user", "roster", "channels"),
        *("messages", "edits", "reactions", "memberships", "step", "events", "invalid", "unexplained"),
    ]
    encoded = evidence.encode(found)
    assert json.loads(encoded) == found
    assert len(evidence.sha256(encoded)) == 64
