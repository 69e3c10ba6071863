"""The builtin tools as a model meets them, in a real trial: what they do, and how they say that they can't."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.trial.upstream import Asked, Blocks, Upstream, serving, text, use

HEX = "a" * 64


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_MODEL_KEY", "sk-test")


class Script:
    """A lead that calls tools one after the other; each may be made from the result before."""

    def __init__(self, *calls: Any) -> None:
        self.calls: Iterator[Any] = iter(calls)

    def __call__(self, asked: Asked) -> Blocks:
        if asked.model == "help":
            return [text("I listen")]
        call = next(self.calls, None)
        if call is None:
            return [use("done", text="end")]
        return [call(asked.text) if callable(call) else call]


async def results(bench: Any, tmp_path: Path, *calls: Any) -> tuple[list[str], Any]:
    """What the lead was told of each call but the last `done`, and the trial."""
    async with serving(Upstream(Script(*calls)), tmp_path) as terms:
        trial = bench.trial(bench.task("tools"), **terms)
        await trial.run()
    assert trial.facts["ended"] == "done", trial.facts
    members = json.loads((trial.directory / "agent" / "trajectory.json").read_text())["subagent_trajectories"]
    said = [r["content"] for s in members[0]["steps"] for r in s.get("observation", {}).get("results", ())]
    return said[:-1], trial


def sent(shown: str) -> str:
    """The id in a result of send_message."""
    found = re.search("Event ID: ([0-9a-f]{64})", shown)
    assert found
    return found[1]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            use("send_message", text="x", mention=["wroker"]),
            "nobody here is called 'wroker'; there are user, orch, worker",
        ),
        (use("send_message", text="  "), "text must be a text"),
        (use("send_message", text="x", mention="worker"), "mentioned: worker"),
        (use("send_message", text="x", mention=[3]), "mention must be a list of names"),
        (use("send_message", text="x", channel="#lobby"), "there is no channel '#lobby'; there are #buzz/tools"),
        (use("send_message", text="x", reply_to=HEX), f"there is no message with the Event ID '{HEX}'"),
        (use("react", event_id="123", emoji="+1"), "there is no message with the Event ID '123'"),
        (use("edit_message", event_id=HEX, text="x"), "there is no message with the Event ID"),
        (use("add_member", name="nobody"), "nobody here is called 'nobody'"),
        (use("create_channel", name="buzz/tools"), "there is a channel #buzz/tools already"),
        (use("read_messages", limit=0), "limit must be a whole number from 1"),
        (use("shell", command="x", timeout_s="soon"), "timeout_s must be a number of seconds"),
        (use("shell", command="sleep 5", timeout_s=1), "command timeout: stopped after 1."),
        (use("shell", command="echo hi; echo no >&2; exit 3"), "exit code: 3\nstdout:\nhi\n\nstderr:\nno\n"),
        (use("fly", to="the moon"), "there is no tool 'fly'; there are shell, send_message"),
        (use("list_members"), "user, orch, worker"),
        (use("list_channels"), "buzz/tools (#"),
    ],
)
async def test_each_tool_says_what_it_did_or_why_not(
    bench: Any, tmp_path: Path, call: dict[str, Any], says: str
) -> None:
    said, _ = await results(bench, tmp_path, call)
    assert says in said[0]


async def test_an_at_sign_in_a_text_is_only_text(bench: Any, tmp_path: Path) -> None:
    message = "see @nobody and @pytest.fixture"
    said, trial = await results(bench, tmp_path, use("send_message", text=message, mention=["worker"]))
    assert "mentioned: worker" in said[0]
    assert [(m["text"], m["mentions"]) for m in trial.evidence["messages"][1:2]] == [(message, ["worker"])]


async def test_a_reply_reaches_the_author_it_answers(bench: Any, tmp_path: Path) -> None:
    calls = (
        use("read_messages"),
        lambda shown: use("send_message", text="understood", reply_to=sent(shown)),
    )
    said, trial = await results(bench, tmp_path, *calls)
    assert "Content: make the file" in said[0]
    task, answer = trial.evidence["messages"][:2]
    assert (answer["parent"], answer["mentions"]) == (task["id"], ["user"])


async def test_the_same_words_twice_are_two_messages(bench: Any, tmp_path: Path) -> None:
    say = use("send_message", text="ok")
    _, trial = await results(bench, tmp_path, say, say)
    assert [m["text"] for m in trial.evidence["messages"]].count("ok") == 2


async def test_messages_are_read_in_the_order_of_their_arrival_with_their_edits(bench: Any, tmp_path: Path) -> None:
    calls = (
        *(use("send_message", text=f"number {n}") for n in range(3)),
        lambda shown: use("edit_message", event_id=sent(shown), text="number 2, corrected"),
        use("read_messages", limit=3),
    )
    said, _ = await results(bench, tmp_path, *calls)
    assert re.findall("Content: (.*)", said[-1]) == ["number 0", "number 1", "number 2, corrected"]


async def test_a_thread_can_be_read_alone(bench: Any, tmp_path: Path) -> None:
    first: list[str] = []

    def answer(shown: str) -> dict[str, Any]:
        first.append(sent(shown))
        return use("send_message", text="in the thread", reply_to=first[0])

    calls = (
        use("send_message", text="the root"),
        answer,
        use("send_message", text="beside it"),
        lambda _: use("read_messages", thread=first[0]),
    )
    said, _ = await results(bench, tmp_path, *calls)
    assert re.findall("Content: (.*)", said[-1]) == ["the root", "in the thread"]


async def test_only_the_author_edits_a_message(bench: Any, tmp_path: Path) -> None:
    calls = (use("read_messages"), lambda shown: use("edit_message", event_id=sent(shown), text="x"))
    said, _ = await results(bench, tmp_path, *calls)
    assert said[1] == "only its author, user, can edit that message"


async def test_somebody_who_is_not_in_the_channel_is_told_of(bench: Any, tmp_path: Path) -> None:
    calls = (
        use("create_channel", name="alone"),
        use("send_message", text="hello", channel="alone", mention=["worker"]),
        use("add_member", name="worker", channel="#alone"),
        use("list_members", channel="alone"),
        use("remove_member", name="worker", channel="alone"),
        use("list_members", channel="alone"),
    )
    said, trial = await results(bench, tmp_path, *calls)
    assert "not in #alone, so it won't see this: worker" in said[1]
    assert said[3].endswith("orch, worker")
    assert said[5].endswith(": orch")
    assert [(m["kind"], m["target"]) for m in trial.evidence["memberships"][-2:]] == [
        (9000, "worker"),
        (9001, "worker"),
    ]
