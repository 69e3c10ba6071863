"""The two wires: Anthropic Messages and OpenAI Chat Completions, unstreamed. Pure encoding and decoding.

The requests have the form in which Buzz's own agent makes them (BUZZ.md section 5): the same upstreams take them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from bench.harness.talk import Ask, Call, Reply, Result, Said
from bench.prices import Tokens, hour_writes

ANTHROPIC_VERSION = "2023-06-01"
CACHE = {"cache_control": {"type": "ephemeral"}}
CACHED_MESSAGES = 2
"""Cache marks on the system prompt and on the last block of the last two messages (BUZZ.md section 5)."""


@dataclass(frozen=True)
class Wire:
    """How one dialect is spoken. `path` goes below the gateway's base URL."""

    path: str
    headers: Callable[[str], dict[str, str]]
    encode: Callable[[Ask], dict[str, Any]]
    decode: Callable[[Mapping[str, Any]], Reply]


def encode_anthropic(ask: Ask) -> dict[str, Any]:
    """The body of `POST /v1/messages`."""
    messages = [_anthropic_message(item) for item in ask.conversation]
    for message in messages[-CACHED_MESSAGES:]:
        if message["content"]:
            *head, last = message["content"]
            message["content"] = [*head, {**last, **CACHE}]
    body: dict[str, Any] = {
        "model": ask.generation.model,
        "max_tokens": ask.generation.max_output_tokens,
        "system": [{"type": "text", "text": ask.system, **CACHE}],
        "messages": messages,
        "tools": [{"name": t.name, "description": t.description, "input_schema": t.parameters} for t in ask.tools],
    }
    if ask.generation.thinking_effort:
        body["thinking"] = {"type": "adaptive"}
        body["output_config"] = {"effort": ask.generation.thinking_effort}
    return body


def _anthropic_message(item: Any) -> dict[str, Any]:
    if isinstance(item, Said):
        return {"role": "user", "content": [{"type": "text", "text": item.text}]}
    if isinstance(item, Reply):
        return {"role": "assistant", "content": list(item.raw)}
    return {"role": "user", "content": [_anthropic_result(result) for result in item]}


def _anthropic_result(result: Result) -> dict[str, Any]:
    block: dict[str, Any] = {
        "type": "tool_result",
        "tool_use_id": result.call_id,
        "content": [{"type": "text", "text": result.text}],
    }
    return {**block, "is_error": True} if result.is_error else block


def decode_anthropic(answer: Mapping[str, Any]) -> Reply:
    """The reply in the answer of `POST /v1/messages`. Raises KeyError or TypeError on another form."""
    content = answer["content"]
    usage = answer.get("usage") or {}
    return Reply(
        text="".join(block["text"] for block in content if block["type"] == "text"),
        reasoning="".join(block.get("thinking", "") for block in content if block["type"] == "thinking"),
        calls=tuple(
            Call(block["id"], block["name"], dict(block["input"])) for block in content if block["type"] == "tool_use"
        ),
        tokens=Tokens(
            input=usage.get("input_tokens"),
            cache_read=usage.get("cache_read_input_tokens") or 0,
            cache_write=usage.get("cache_creation_input_tokens") or 0,
            output=usage.get("output_tokens"),
            cache_write_1h=hour_writes(usage) or 0,
        ),
        stop=str(answer.get("stop_reason")),
        raw=tuple(content) or ({"type": "text", "text": "(no answer)"},),
    )


def encode_openai(ask: Ask) -> dict[str, Any]:
    """The body of `POST /v1/chat/completions`."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": ask.system}]
    for item in ask.conversation:
        if isinstance(item, Said):
            messages.append({"role": "user", "content": item.text})
        elif isinstance(item, Reply):
            messages.append(dict(item.raw))
        else:
            messages += [{"role": "tool", "tool_call_id": r.call_id, "content": r.text} for r in item]
    body: dict[str, Any] = {
        "model": ask.generation.model,
        "stream": False,
        "max_completion_tokens": ask.generation.max_output_tokens,
        "messages": messages,
        "tools": [
            {
                "type": "function",
                "function": {"name": t.name, "description": t.description, "parameters": t.parameters},
            }
            for t in ask.tools
        ],
        "tool_choice": "auto",
    }
    if ask.generation.thinking_effort:
        body["reasoning_effort"] = ask.generation.thinking_effort
    return body


def decode_openai(answer: Mapping[str, Any]) -> Reply:
    """The reply in the answer of `POST /v1/chat/completions`. Raises KeyError or TypeError on another form."""
    choice = answer["choices"][0]
    message = choice["message"]
    calls = tuple(_openai_call(call) for call in message.get("tool_calls") or ())
    text = message.get("content") or ""
    raw: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        raw["tool_calls"] = message["tool_calls"]
    usage = answer.get("usage") or {}
    prompt = usage.get("prompt_tokens")
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    return Reply(
        text=text,
        reasoning=str(message.get("reasoning_content") or ""),
        calls=calls,
        tokens=Tokens(
            input=None if prompt is None else prompt - cached,
            cache_read=cached,
            cache_write=0,
            output=usage.get("completion_tokens"),
        ),
        stop=str(choice.get("finish_reason")),
        raw=raw,
    )


def _openai_call(call: Mapping[str, Any]) -> Call:
    function = call["function"]
    try:
        given = orjson.loads(function["arguments"] or "{}")
    except orjson.JSONDecodeError as error:
        return Call(call["id"], function["name"], {}, f"the arguments are not JSON: {error}")
    if not isinstance(given, dict):
        return Call(call["id"], function["name"], {}, "the arguments are not a JSON object")
    return Call(call["id"], function["name"], given)


WIRES = {
    "anthropic": Wire(
        "/v1/messages",
        lambda token: {"x-api-key": token, "anthropic-version": ANTHROPIC_VERSION},
        encode_anthropic,
        decode_anthropic,
    ),
    "openai": Wire(
        "/v1/chat/completions",
        lambda token: {"authorization": f"Bearer {token}"},
        encode_openai,
        decode_openai,
    ),
}
