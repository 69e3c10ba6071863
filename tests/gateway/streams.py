"""What providers stream, in each dialect, as bytes. Usage and texts are the caller's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson


def event(data: Any, name: str | None = None) -> bytes:
    """One server-sent event."""
    text = data if isinstance(data, bytes) else orjson.dumps(data)
    return (f"event: {name}\n".encode() if name else b"") + b"data: " + text + b"\n\n"


def anthropic(usage: dict[str, Any], texts: Sequence[str] = ("hé", "llo"), model: str = "m") -> list[bytes]:
    """Anthropic Messages: the prompt is told at the beginning, the answer's length at the end."""
    output = usage["output_tokens"]
    started = {
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "usage": {**usage, "output_tokens": 1},
    }
    deltas = [{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": t}} for t in texts]
    told: list[dict[str, Any]] = [
        {"type": "message_start", "message": started},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        *deltas,
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "t", "name": "n"}},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": output}},
        {"type": "message_stop"},
    ]
    return [event(part, part["type"]) for part in told]


def chat(
    usage: dict[str, Any] | None, texts: Sequence[str] = ("hé", "llo"), model: str = "m", **fields: Any
) -> list[bytes]:
    """Chat Completions, with a report at the end where `usage` is given; `fields` are in every chunk."""
    common = {"object": "chat.completion.chunk", "model": model, **fields}
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}, *({"content": t} for t in texts)]
    deltas.append({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "n", "arguments": ""}}]})
    deltas.append({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]})
    chunks = [{**common, "choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in deltas]
    chunks.append({**common, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    if usage is not None:
        chunks = [{**chunk, "usage": None} for chunk in chunks]
        chunks.append({**common, "choices": [], "usage": usage})
    return [*map(event, chunks), event(b"[DONE]")]


def responses(usage: dict[str, Any], texts: Sequence[str] = ("hé", "llo"), model: str = "m") -> list[bytes]:
    """OpenAI's Responses: all is told in the last event."""
    response: dict[str, Any] = {
        "object": "response",
        "model": model,
        "status": "in_progress",
        "output": [],
        "usage": None,
    }
    output = [{"type": "message"}, {"type": "function_call", "name": "n"}]
    ended = {**response, "status": "completed", "output": output, "usage": usage}
    told: list[dict[str, Any]] = [
        {"type": "response.created", "response": response},
        *({"type": "response.output_text.delta", "delta": text} for text in texts),
        {"type": "response.completed", "response": ended},
    ]
    return [event(part, part["type"]) for part in told]
