"""The scripted model's answer as its dialect's JSON: calls of the tools that the request offers, and usage.

With the builtin tools an action is a call by name; with a shell alone (Buzz's agents have `buzz-dev-mcp__shell`;
BUZZ.md section 5) it is a command of the `buzz` CLI. Everything is deterministic: the same call gets the same bytes.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from bench.endpoints import Dialect
from bench.gateway.conversation import Conversation
from bench.gateway.protocol import Context
from bench.gateway.scripted import Action, Call, Done, Post, Run, Say

CHARACTERS_PER_TOKEN = 4
"""The usual rule of thumb for English; the scripted model has no tokenizer."""


DONE = "DONE:"
"""How the message begins that the builtin tool `done` posts (SEED.md row R1)."""


class CannotRender(ValueError):
    """An action that the tools offered can't do. The message names both."""


@dataclass(frozen=True)
class ToolCall:
    """One call of an offered tool."""

    name: str
    input: Mapping[str, Any]


@dataclass(frozen=True)
class Usage:
    """What the scripted model reports, in disjoint tokens."""

    fresh: int
    cache_read: int
    cache_write: int
    output: int


def tool_calls(actions: Sequence[Action], tools: Sequence[str], context: Context) -> tuple[ToolCall, ...]:
    """The calls that do the actions, in order. Raises CannotRender."""
    return tuple(_call(action, tools, context) for action in actions if not isinstance(action, Say))


def answer(dialect: Dialect, *, model: str, number: int, text: str, calls: Sequence[ToolCall], usage: Usage) -> bytes:
    """The response's bytes. `number` is the agent's call so far; ids are made of it."""
    if dialect == "anthropic":
        return orjson.dumps(_anthropic(model, number, text, calls, usage))
    return orjson.dumps(_openai(model, number, text, calls, usage))


def usage(dialect: Dialect, conversation: Conversation, *, known_characters: int, answer_characters: int) -> Usage:
    """Plausible usage: where the request wants caching, what was there at the last call is read from the cache.

    `known_characters` is the prompt's length at the agent's last call. Anthropic writes the rest to the cache, OpenAI
    bills it as fresh.
    """
    prompt = _tokens(conversation.prompt_characters)
    read = min(_tokens(known_characters), prompt) if conversation.cached else 0
    write = prompt - read if conversation.cached and dialect == "anthropic" else 0
    return Usage(prompt - read - write, read, write, _tokens(answer_characters))


def _call(action: Action, tools: Sequence[str], context: Context) -> ToolCall:
    match action:
        case Call(name, given):
            return ToolCall(_offered(name, tools), given)
        case Run(command):
            return ToolCall(_shell(tools, "run a command"), {"command": command})
        case Post() if "send_message" in tools:
            fields = {"mention": list(action.mention), "reply_to": action.reply_to, "channel": action.channel}
            return ToolCall("send_message", {"text": action.text, **{k: v for k, v in fields.items() if v}})
        case Done(text) if "done" in tools:
            return ToolCall("done", {"text": text})
        case Post() if "shell" not in tools:
            return ToolCall(_shell(tools, "send a message"), {"command": _buzz(action, context)})
        case Done(text) if "shell" not in tools:
            said = text if text.startswith(DONE) else f"{DONE} {text}"
            post = Post(said, mention=(context.user,) if context.user in context.members else ())
            return ToolCall(_shell(tools, "say done"), {"command": _buzz(post, context)})
        case _:
            raise CannotRender(f"the tools offered can't {_what(action)}: {_list(tools)}")


def _buzz(post: Post, context: Context) -> str:
    """The `buzz` command that sends a message, quoted for a shell."""
    words = ["buzz", "messages", "send", "--channel", post.channel or context.channel, "--content", post.text]
    for name in post.mention:
        if name not in context.members:
            raise CannotRender(f"nobody is called {name!r}; members are {_list(sorted(context.members))}")
        words += ["--mention", context.members[name]]
    if post.reply_to is not None:
        words += ["--reply-to", post.reply_to]
    return shlex.join(words)


def _shell(tools: Sequence[str], purpose: str) -> str:
    found = next((name for name in tools if name.endswith("shell")), None)
    if found is None:
        raise CannotRender(f"the tools offered can't {purpose}: {_list(tools)}")
    return found


def _offered(name: str, tools: Sequence[str]) -> str:
    if name not in tools:
        raise CannotRender(f"the tool {name!r} is not offered: {_list(tools)}")
    return name


def _what(action: Action) -> str:
    return "say done" if isinstance(action, Done) else "send a message"


def _list(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def _tokens(characters: int) -> int:
    return -(-characters // CHARACTERS_PER_TOKEN)


def _anthropic(model: str, number: int, text: str, calls: Sequence[ToolCall], usage: Usage) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    content += [
        {"type": "tool_use", "id": f"toolu_script_{number}_{i}", "name": call.name, "input": dict(call.input)}
        for i, call in enumerate(calls)
    ]
    return {
        "id": f"msg_script_{number}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": usage.fresh,
            "cache_creation_input_tokens": usage.cache_write,
            "cache_read_input_tokens": usage.cache_read,
            "output_tokens": usage.output,
        },
    }


def _openai(model: str, number: int, text: str, calls: Sequence[ToolCall], usage: Usage) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = [
            {
                "id": f"call_script_{number}_{i}",
                "type": "function",
                "function": {"name": call.name, "arguments": orjson.dumps(dict(call.input)).decode()},
            }
            for i, call in enumerate(calls)
        ]
    prompt = usage.fresh + usage.cache_read + usage.cache_write
    return {
        "id": f"chatcmpl-script-{number}",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": usage.output,
            "total_tokens": prompt + usage.output,
            "prompt_tokens_details": {"cached_tokens": usage.cache_read},
        },
    }
