"""What goes to a model and what comes back, whichever dialect it speaks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.harness.toolspecs import Tool
from bench.prices import Tokens


@dataclass(frozen=True)
class Call:
    """A tool that the model wants called. `malformed` says why its input couldn't be read, else it is empty."""

    id: str
    name: str
    input: Mapping[str, Any]
    malformed: str = ""


@dataclass(frozen=True)
class Reply:
    """One answer of a model. `raw` is the assistant's message as the upstream sent it, for the next request."""

    text: str
    reasoning: str
    calls: tuple[Call, ...]
    tokens: Tokens
    stop: str
    raw: Any


@dataclass(frozen=True)
class Result:
    """What a tool gave back for the call `call_id`."""

    call_id: str
    text: str
    is_error: bool = False


@dataclass(frozen=True)
class Said:
    """What the model is told by us."""

    text: str


type Item = Said | Reply | tuple[Result, ...]
"""One entry of a conversation."""


@dataclass(frozen=True)
class Generation:
    """How a model is asked. `thinking_effort` is sent as it is, where the dialect has it."""

    model: str
    max_output_tokens: int
    thinking_effort: str | None = None


@dataclass(frozen=True)
class Ask:
    """One request: what both dialects are made from."""

    generation: Generation
    system: str
    conversation: Sequence[Item]
    tools: Sequence[Tool]
