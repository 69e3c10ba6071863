"""An agent's steps from what it said to buzz-acp, and from the receipts of its calls."""

from __future__ import annotations

import json
from typing import Any

from bench.harness.builtin import UNFINISHED, Step
from bench.prices import Tokens
from bench.trial.acp import steps
from bench.trial.calls import Call


def prompt(number: int, *texts: str) -> dict[str, Any]:
    parts = [{"type": "text", "text": text} for text in texts]
    return {"id": number, "method": "session/prompt", "params": {"sessionId": "s", "prompt": parts}}


def update(kind: str, **more: Any) -> dict[str, Any]:
    return {"method": "session/update", "params": {"sessionId": "s", "update": {"sessionUpdate": kind, **more}}}


def said(text: str) -> dict[str, Any]:
    return update("agent_message_chunk", content={"type": "text", "text": text})


def tool(identity: str, command: str) -> dict[str, Any]:
    return update("tool_call", toolCallId=identity, title="x__shell", status="pending", rawInput={"command": command})


def result(identity: str, text: str, status: str = "completed") -> dict[str, Any]:
    content = [{"type": "content", "content": {"type": "text", "text": text}}]
    return update("tool_call_update", toolCallId=identity, status=status, content=content)


def call(at: float, tool_calls: int | None, outcome: str = "ok", reason: str = "") -> Call:
    return Call("orch", at, at + 1, outcome, 200, Tokens(1, 2, 3, 4), tool_calls, reason)


def made(told: list[dict[str, Any]], heard: list[dict[str, Any]], *calls: Call) -> list[Step]:
    return steps("\n".join(map(json.dumps, told)), "\n".join(map(json.dumps, heard)), calls)


def shape(found: list[Step]) -> list[tuple[str, list[str], bool]]:
    """(text, commands, whether a model made it) of each step."""
    return [(s.text, [str(u.call.input["command"]) for u in s.uses], s.tokens is not None) for s in found]


def test_turns_calls_tools_and_texts_are_put_together_in_their_order() -> None:
    heard = [
        said("I look."),
        tool("a", "ls"),
        update("tool_call_update", toolCallId="a", status="in_progress"),
        result("a", "files"),
        tool("b", "cat 1"),
        tool("c", "cat 2"),
        result("c", "two"),
        result("b", "one", "failed"),
        said("Well."),
        {"id": 1, "result": {"stopReason": "end_turn"}},
        said("again"),
        {"id": 2, "result": {"stopReason": "end_turn"}},
    ]
    found = made(
        [prompt(1, "context", "event"), prompt(2, "more")], heard, call(1, 1), call(3, 2), call(5, 0), call(9, 0)
    )
    assert shape(found) == [
        ("context\n\nevent", [], False),
        ("I look.", ["ls"], True),
        ("", ["cat 1", "cat 2"], True),
        ("Well.", [], True),
        ("more", [], False),
        ("again", [], True),
    ]
    assert [(use.result.text, use.result.is_error) for use in found[2].uses] == [("one", True), ("two", False)]


def test_a_turn_that_was_cut_keeps_what_was_under_way() -> None:
    found = made([prompt(1, "go")], [said("so"), tool("a", "sleep 9")], call(1, 1))
    assert shape(found) == [("go", [], False), ("so", ["sleep 9"], True)]
    assert found[1].uses[0].result.text == UNFINISHED


def test_a_call_that_failed_is_a_step_that_says_why() -> None:
    heard = [{"id": 1, "error": {"code": -32000, "message": "llm"}}]
    found = made([prompt(1, "go")], heard, call(1, None, "error", "overloaded"))
    assert shape(found) == [("go", [], False), ("overloaded", [], True)]


def test_without_frames_the_receipts_still_tell_the_calls() -> None:
    assert shape(made([], [], call(1, 1), call(2, 0))) == [("", [], True), ("", [], True)]


def test_lines_that_were_cut_off_are_passed_over() -> None:
    assert shape(steps(json.dumps(prompt(1, "go")) + '\n{"id": 2, "meth', "{", ())) == [("go", [], False)]


def test_what_was_thought_before_a_call_is_told_with_it() -> None:
    thought = update("agent_thought_chunk", content={"type": "text", "text": "The file first."})
    heard = [thought, said("I look."), tool("a", "ls"), result("a", "files"), said("so")]
    heard.append({"id": 1, "result": {"stopReason": "end_turn"}})
    found = made([prompt(1, "go")], heard, call(1, 1), call(3, 0))
    assert [(step.text, step.reasoning) for step in found] == [("go", ""), ("I look.", "The file first."), ("so", "")]


def test_a_tool_that_failed_says_why_whether_it_ran_or_not() -> None:
    """One that ran is `completed` although it failed; why one did not run is in the raw output."""
    heard = [
        tool("a", "ls"),
        tool("b", "ls"),
        result("a", "workdir does not exist"),
        update("tool_call_update", toolCallId="b", status="failed", rawOutput={"error": "unknown tool: x"}),
        {"id": 1, "result": {"stopReason": "end_turn"}},
    ]
    heard[2]["params"]["update"]["rawOutput"] = {"isError": True}
    uses = made([prompt(1, "go")], heard, call(1, 2), call(3, 0))[1].uses
    assert [(use.result.text, use.result.is_error) for use in uses] == [
        ("workdir does not exist", True),
        ("unknown tool: x", True),
    ]
