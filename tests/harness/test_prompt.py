"""What a model is told: who it is, who the others are, and each message as a block that is whole."""

from __future__ import annotations

from typing import Any

from bench.condition import Agent
from bench.harness import prompt
from bench.harness.directory import Channel, Directory
from bench.harness.events import message_tags
from bench.nostr import Key

KEYS = {name: Key.generate() for name in ("user", "orch", "worker-1")}
CHANNEL = "0c5a0e5e-0000-4000-8000-000000000001"


def directory() -> Directory:
    return Directory({name: key.public for name, key in KEYS.items()}, Channel(CHANNEL, "buzz/t", "user"))


def agent(name: str, kind: Any) -> Agent:
    return Agent(name, name, 1, kind, "lead", "builtin", "e", "m", "Be brave.", persona="A pirate.", skills=("Knots.",))


ORCH, WORKER = agent("orch", "orchestrator"), agent("worker-1", "worker")


def test_the_system_prompt_holds_the_conditions_texts_then_the_situation() -> None:
    text = prompt.system(ORCH, (ORCH, WORKER), directory(), user="user", workdir="/app")
    assert text.startswith("Be brave.\n\nA pirate.\n\nKnots.\n\n[Situation]\nYou are orch (orchestrator, lead)")
    assert f"buzz/t (#{CHANNEL})" in text
    assert "- orch: orchestrator, lead (you)\n- worker-1: worker, lead\n" in text
    assert "call `done` once" in text
    assert "(/app)" in text


def test_a_worker_is_told_who_ends_the_work() -> None:
    text = prompt.system(WORKER, (ORCH, WORKER), directory(), user="user", workdir=None)
    assert "Only orch ends the work." in text
    assert "call `done`" not in text


def test_a_message_is_a_block_with_its_whole_text() -> None:
    first = KEYS["user"].sign(9, "do\n\nthis", message_tags(CHANNEL, mentions=[KEYS["orch"].public]))
    answer = KEYS["orch"].sign(9, "yes", message_tags(CHANNEL, reply_to=first))
    assert prompt.mentions([first, answer], directory()) == (
        f"[Buzz event: @mention]\nEvent ID: {first['id']}\nChannel: buzz/t (#{CHANNEL})\nFrom: user\n"
        f"Content: do\n\nthis\n\n"
        f"[Buzz event: @mention]\nEvent ID: {answer['id']}\nChannel: buzz/t (#{CHANNEL})\nFrom: orch\n"
        f"Thread: root {first['id']}, reply to {first['id']}\nContent: yes"
    )


def test_a_reply_mentions_whom_it_answers_and_keeps_the_threads_root() -> None:
    first = KEYS["user"].sign(9, "a", message_tags(CHANNEL))
    second = KEYS["orch"].sign(9, "b", message_tags(CHANNEL, reply_to=first))
    user, orch = KEYS["user"].public, KEYS["orch"].public
    assert second["tags"] == [["h", CHANNEL], ["e", first["id"], "", "reply"], ["p", user]]
    assert message_tags(CHANNEL, reply_to=second, mentions=[orch]) == [
        ["h", CHANNEL],
        ["e", first["id"], "", "root"],
        ["e", second["id"], "", "reply"],
        ["p", orch],
    ]
