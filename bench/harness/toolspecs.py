"""The tools as a model is told of them: names, inputs and texts. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench.harness.shell import DEFAULT_TIMEOUT_S, LONGEST_TIMEOUT_S


@dataclass(frozen=True)
class Tool:
    """A tool as the model is told of it. `parameters` is a JSON schema."""

    name: str
    description: str
    parameters: Mapping[str, Any]


_NAMES: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
_TEXT: dict[str, Any] = {"type": "string"}
_CHANNEL = {"type": "string", "description": "Name or id of the channel; this trial's own by default."}
_EVENT = {"type": "string", "description": "An `Event ID`, in full."}


def _tool(name: str, description: str, required: list[str], /, **properties: Any) -> Tool:
    schema = {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
    return Tool(name, description, schema)


ALL = (
    _tool(
        "shell",
        "Run a command with bash in the workspace that the whole team shares. Each call is a new process.",
        ["command"],
        command=_TEXT,
        timeout_s={
            "type": "number",
            "description": f"Its limit in seconds: {DEFAULT_TIMEOUT_S:g} by default, at most {LONGEST_TIMEOUT_S:g}.",
        },
    ),
    _tool(
        "send_message",
        "Post a message. Only those named in `mention`, and the author of the message replied to, are woken by it.",
        ["text"],
        text=_TEXT,
        mention={**_NAMES, "description": "Names of those to wake, such as worker-1."},
        reply_to={**_EVENT, "description": "The `Event ID` of the message to answer in its thread."},
        channel=_CHANNEL,
    ),
    _tool(
        "read_messages",
        "Read a channel's latest messages, oldest first, or one thread.",
        [],
        channel=_CHANNEL,
        limit={"type": "integer", "description": "How many at most: 20 by default, 200 at most."},
        thread={**_EVENT, "description": "The `Event ID` of the message that a thread began with."},
    ),
    _tool("list_members", "List the members of a channel.", [], channel=_CHANNEL),
    _tool("list_channels", "List the channels that you are in.", []),
    _tool(
        "create_channel",
        "Create a private channel, with you and the given members in it.",
        ["name"],
        name=_TEXT,
        members=_NAMES,
    ),
    _tool("add_member", "Add somebody to a channel.", ["name"], name=_TEXT, channel=_CHANNEL),
    _tool("remove_member", "Remove somebody from a channel.", ["name"], name=_TEXT, channel=_CHANNEL),
    _tool("react", "React to a message with an emoji.", ["event_id", "emoji"], event_id=_EVENT, emoji=_TEXT),
    _tool(
        "edit_message",
        "Replace the text of a message that you wrote.",
        ["event_id", "text"],
        event_id=_EVENT,
        text=_TEXT,
    ),
)

DONE = _tool(
    "done",
    "Say that the whole task is finished. This ends the work of everyone, so call it once, when all is in place.",
    ["text"],
    text={"type": "string", "description": "What was achieved; it is posted as `DONE: …`."},
)


def offered(kind: str) -> tuple[Tool, ...]:
    """The tools of a roster member of that kind: `done` belongs to the orchestrator alone."""
    return (*ALL, DONE) if kind == "orchestrator" else ALL
