"""The scripted model's answer as its dialect's JSON: calls of the tools that the request offers, and usage.

With the builtin tools an action is a call by name; with another shell (that of Buzz's agents, whose name ends so) all
actions are one command, of the `buzz` CLI's. Everything is deterministic: the same call gets the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from bench.endpoints import Dialect
from bench.gateway import buzzcli
from bench.gateway.buzzcli import CannotRender
from bench.gateway.conversation import Conversation
from bench.gateway.protocol import Context
from bench.gateway.scripted import Action, Call, Done, Post, Run, Say

CHARACTERS_PER_TOKEN = 4
"""The usual rule of thumb for English; the scripted model has no tokenizer."""


COMMAND_MS, MOST_MS = 120_000, 600_000
"""What buzz-dev-mcp's shell gives a command by itself, and at most (BUZZ.md section 6): several have more than one."""

BUILTIN_SHELL = "shell"
"""What the builtin agents' own shell is called. Another's has the `buzz` CLI beside it (BUZZ.md section 5)."""

DONE = "DONE:"
"""How the message begins that the builtin tool `done` posts (SEED.md row R1)."""


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
    doing = [action for action in actions if not isinstance(action, Say)]
    shell = next((name for name in tools if name.endswith("shell")), None)
    if shell in (None, BUILTIN_SHELL):
        return tuple(_call(action, tools) for action in doing)
    commands = [_command(action, context) for action in doing]
    if not commands:
        return ()
    given: dict[str, Any] = {"command": buzzcli.script(commands)}
    if len(commands) > 1:
        given["timeout_ms"] = min(len(commands) * COMMAND_MS, MOST_MS)
    return (ToolCall(shell, given),)


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


def _call(action: Action, tools: Sequence[str]) -> ToolCall:
    """The call of a builtin tool."""
    match action:
        case Call(name, given):
            return ToolCall(_offered(name, tools), given)
        case Run(command):
            return ToolCall(_offered(BUILTIN_SHELL, tools), {"command": command})
        case Post():
            fields = {"mention": list(action.mention), "reply_to": action.reply_to, "channel": action.channel}
            given = {"text": action.text, **{k: v for k, v in fields.items() if v}}
            return ToolCall(_offered("send_message", tools), given)
        case Done(text):
            return ToolCall(_offered("done", tools), {"text": text})
    raise AssertionError(action)


def _command(action: Action, context: Context) -> str:
    """The command for a shell that has the `buzz` CLI."""
    match action:
        case Call(name, given):
            command = buzzcli.tool(context, name, given)
            if command is None:
                raise CannotRender(f"a shell with the buzz CLI has nothing for the tool {name!r}")
            return command
        case Run(command):
            return command
        case Post():
            woken = dict.fromkeys((*action.mention, *((action.author,) if action.author in context.members else ())))
            return buzzcli.send(
                context, action.text, mention=list(woken), reply_to=action.reply_to, channel=action.channel
            )
        case Done(text):
            said = text if text.startswith(DONE) else f"{DONE} {text}"
            user = (context.user,) if context.user in context.members else ()
            return buzzcli.send(context, said, mention=user, reply_to=None, channel=None)
    raise AssertionError(action)


def _offered(name: str, tools: Sequence[str]) -> str:
    if name not in tools:
        raise CannotRender(f"the tool {name!r} is not offered: {_list(tools)}")
    return name


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
