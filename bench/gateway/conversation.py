"""What a request shows to the scripted model, in either dialect: new messages and results, and the tools offered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import orjson

from bench.endpoints import Dialect
from bench.gateway.scripted import Shown


@dataclass(frozen=True)
class Conversation:
    """What a request holds. `prompt_characters` counts system, messages and tools; `cached`: caching is wished for."""

    shown: Shown
    tools: tuple[str, ...]
    prompt_characters: int
    cached: bool


def read(dialect: Dialect, body: dict[str, Any]) -> Conversation:
    """The conversation in a parsed request. What is not understood is not shown: the script then doesn't match."""
    messages = [m for m in body["messages"] if isinstance(m, dict)]
    newest = list(takewhile(lambda m: m.get("role") != "assistant", reversed(messages)))[::-1]
    prompt = orjson.dumps([body.get("system"), body["messages"], body.get("tools")])
    return Conversation(
        shown=_anthropic(newest) if dialect == "anthropic" else _openai(newest),
        tools=tuple(_tools(body.get("tools"))),
        prompt_characters=len(prompt),
        cached=dialect == "openai" or b'"cache_control"' in prompt,
    )


def _anthropic(newest: Sequence[dict[str, Any]]) -> Shown:
    messages: list[str] = []
    results: list[str] = []
    for message in newest:
        if message.get("role") != "user":
            continue
        content = message.get("content")
        if isinstance(content, str):
            messages.append(content)
            continue
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict) and block.get("type") == "tool_result":
                results.append(_text(block.get("content")))
            elif isinstance(block, dict) and block.get("type") == "text":
                messages.append(str(block.get("text", "")))
    return Shown(tuple(messages), tuple(results))


def _openai(newest: Sequence[dict[str, Any]]) -> Shown:
    texts = [(m.get("role"), _text(m.get("content"))) for m in newest]
    return Shown(
        messages=tuple(text for role, text in texts if role == "user"),
        results=tuple(text for role, text in texts if role == "tool"),
    )


def _text(content: Any) -> str:
    """The text of a content that is a string, or a list of text blocks."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    return "\n".join(str(p.get("text", "")) for p in parts if isinstance(p, dict))


def _tools(tools: Any) -> Iterator[str]:
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, dict):
            function = tool.get("function")
            name = (function if isinstance(function, dict) else tool).get("name")
            if isinstance(name, str):
                yield name
