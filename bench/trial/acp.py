"""A real agent's steps: what buzz-acp and buzz-agent said to each other (ACP), and its receipts. Pure.

The frames carry no times and the receipts no words; a turn's calls and frames come in the same order, and a receipt
says how many tools its answer called.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from bench.harness.builtin import UNFINISHED, Step, Use
from bench.harness.talk import Call as ToolCall
from bench.harness.talk import Result
from bench.trial.calls import Call


@dataclass
class _Words:
    """What was said and thought up to a tool call, or to the end."""

    text: str = ""
    thought: str = ""


@dataclass
class _Turn:
    """One prompt and what came of it: tool calls in order, for each the words before it, and the words at the end."""

    told: str
    uses: list[Use] = field(default_factory=list)
    words: list[_Words] = field(default_factory=list)
    last: _Words = field(default_factory=_Words)


def steps(told: str, said: str, calls: Sequence[Call]) -> list[Step]:
    """One agent's steps: `told` are the frames to it, `said` those from it, JSON lines; `calls` are its own."""
    left = sorted((call for call in calls if call.outcome != "refused"), key=lambda call: call.began)
    found: list[Step] = []
    for turn in _turns(told, said):
        at = _iso(left[0].began) if left else datetime.now(UTC).isoformat(timespec="milliseconds")
        found.append(Step(at, turn.told))
        uses, words = list(turn.uses), [*turn.words, turn.last]
        while left:
            call = left.pop(0)
            number = len(uses) if call.tool_calls is None else call.tool_calls
            taken, uses = uses[:number], uses[number:]
            before, words = words[: len(taken) or 1], words[len(taken) or 1 :]
            text, thought = "".join(each.text for each in before), "".join(each.thought for each in before)
            found.append(Step(_iso(call.ended), text or call.reason, thought, tuple(taken), call.tokens))
            if call.ends_turn:
                break
    found += [Step(_iso(call.ended), call.reason, "", (), call.tokens) for call in left]
    return found


def _turns(told: str, said: str) -> Iterator[_Turn]:
    prompts = {
        frame["id"]: _text(frame["params"]) for frame in _frames(told) if frame.get("method") == "session/prompt"
    }
    turn = _Turn("")
    open_calls: dict[str, int] = {}
    for frame in _frames(said):
        if frame.get("method") == "session/update":
            _note(turn, open_calls, frame["params"]["update"])
        elif "method" not in frame and frame.get("id") in prompts:
            turn.told = prompts.pop(frame["id"])
            yield turn
            turn, open_calls = _Turn(""), {}
    for prompt in prompts.values():  # under way when it was ended
        turn.told = prompt
        yield turn
        turn = _Turn("")


def _note(turn: _Turn, open_calls: dict[str, int], update: dict[str, Any]) -> None:
    match update.get("sessionUpdate"):
        case "agent_message_chunk":
            turn.last.text += _chunk(update)
        case "agent_thought_chunk":
            turn.last.thought += _chunk(update)
        case "tool_call":
            identity = str(update.get("toolCallId"))
            given = update.get("rawInput")
            call = ToolCall(identity, str(update.get("title")), given if isinstance(given, dict) else {})
            open_calls[identity] = len(turn.uses)
            turn.uses.append(Use(call, Result(identity, UNFINISHED, is_error=True)))
            turn.words.append(turn.last)
            turn.last = _Words()
        case "tool_call_update" if update.get("status") in ("completed", "failed"):
            number = open_calls.get(str(update.get("toolCallId")))
            if number is not None:
                call = turn.uses[number].call
                turn.uses[number] = Use(call, _result(call.id, update))


def _result(identity: str, update: dict[str, Any]) -> Result:
    """A tool's result: one that ran has its text in the content, one that didn't only says why in the raw output."""
    raw = update.get("rawOutput")
    raw = raw if isinstance(raw, dict) else {}
    failed = update["status"] == "failed" or raw.get("isError") is True
    return Result(identity, _content(update.get("content")) or str(raw.get("error", "")), failed)


def _chunk(update: dict[str, Any]) -> str:
    return str((update.get("content") or {}).get("text", ""))


def _content(parts: Any) -> str:
    texts = ((part.get("content") or {}).get("text", "") for part in parts or () if isinstance(part, dict))
    return "\n".join(str(text) for text in texts)


def _text(params: dict[str, Any]) -> str:
    return "\n\n".join(str(part.get("text", "")) for part in params.get("prompt", ()) if isinstance(part, dict))


def _frames(lines: str) -> Iterator[dict[str, Any]]:
    for line in lines.splitlines():
        try:
            frame = json.loads(line)
        except json.JSONDecodeError:
            continue  # cut off when the agent was ended
        if isinstance(frame, dict):
            yield frame


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
