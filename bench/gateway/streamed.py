"""The scripted model's answer as a stream: the same as its whole answer, in the events of its dialect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from bench.endpoints import Dialect


def events(dialect: Dialect, answer: dict[str, Any], *, with_usage: bool) -> bytes:
    """All events of a whole answer. `with_usage` is for OpenAI's dialect, where a client has to ask for it."""
    told = _anthropic(answer) if dialect == "anthropic" else _chat(answer, with_usage)
    return b"".join(told)


def _anthropic(answer: dict[str, Any]) -> Iterator[bytes]:
    content, usage = answer["content"], answer["usage"]
    begun = answer | {"content": [], "stop_reason": None, "usage": usage | {"output_tokens": 1}}
    yield _named("message_start", message=begun)
    for index, block in enumerate(content):
        if block["type"] == "text":
            emptied: dict[str, Any] = block | {"text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        else:
            emptied = block | {"input": {}}
            delta = {"type": "input_json_delta", "partial_json": orjson.dumps(block["input"]).decode()}
        yield _named("content_block_start", index=index, content_block=emptied)
        yield _named("content_block_delta", index=index, delta=delta)
        yield _named("content_block_stop", index=index)
    stop = {"stop_reason": answer["stop_reason"], "stop_sequence": answer["stop_sequence"]}
    yield _named("message_delta", delta=stop, usage={"output_tokens": usage["output_tokens"]})
    yield _named("message_stop")


def _chat(answer: dict[str, Any], with_usage: bool) -> Iterator[bytes]:
    (choice,) = answer["choices"]
    common = {name: answer[name] for name in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    calls = [call | {"index": index} for index, call in enumerate(choice["message"].get("tool_calls", ()))]
    delta = choice["message"] | ({"tool_calls": calls} if calls else {})
    for part, reason in ((delta, None), ({}, choice["finish_reason"])):
        yield _data(common | {"choices": [{"index": 0, "delta": part, "finish_reason": reason}]})
    if with_usage:
        yield _data(common | {"choices": [], "usage": answer["usage"]})
    yield b"data: [DONE]\n\n"


def _named(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\n".encode() + _data({"type": kind, **fields})


def _data(value: dict[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(value) + b"\n\n"
