"""What the gateway has to know of a wire dialect, and what it reads of a request in any of them.

Usage becomes four disjoint classes of tokens at this edge ("Public cases", case 21).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol

from bench.endpoints import Dialect
from bench.prices import MOST_ANSWER_TOKENS, Price, Tokens

TOOL_PREAMBLE_TOKENS = 1_000
"""What a provider may add to a prompt that offers tools: 804 tokens at most in Anthropic's documentation."""


MOST_CHOICES = 10_000
"""More than any provider takes. What is reserved stays a number that every reader of a receipt can hold."""

MOST_TOKENS = 10**12
"""A report of more is none of a call."""


class BadRequest(ValueError):
    """A request that the gateway can't meter. The message is for the client."""


@dataclass(frozen=True)
class Request:
    """What the gateway reads of a model call; `body` is the parsed JSON.

    `output_tokens` is the most that the answer may have over all its `choices`, or None where the request
    sets no limit. `prompt_tokens` bounds the prompt, unless `boundless` says, for people, what makes it unknowable.
    `asking` is the body as it has to go out so that a stream reports its usage, None where it goes out as it is.
    `for_an_hour` is whether it may ask for a cache that stays for an hour.
    """

    body: dict[str, Any]
    model: str
    output_tokens: int | None
    prompt_tokens: int
    stream: bool = False
    for_an_hour: bool = False
    choices: int = 1
    boundless: str = ""
    asking: bytes | None = field(default=None, repr=False)

    def most_output_tokens(self, price: Price) -> int | None:
        """The most that the answer can have: by the request's own bound, else by what its model can give, if known."""
        if self.output_tokens is not None or price.max_output_tokens is None:
            return self.output_tokens
        return price.max_output_tokens * self.choices


type Progress = Literal["open", "told", "final", "failed"]
"""How far a stream is: `told` if its usage is whole should it end here, `final` once its usage won't grow any more,
`failed` after an error in its middle."""


@dataclass(frozen=True)
class Seen:
    """A stream's usage with one more event, how far it is by that event, and whether none comes after it.

    `tools` identify the tool calls that the event is about.
    """

    usage: Any
    progress: Progress = "open"
    is_last: bool = False
    tools: tuple[Any, ...] = ()


class Wire(Protocol):
    """One dialect. `name` is in receipts, `spoken` is the family that an endpoint speaks, `path` goes below `/v1`.

    `conversation` is the field of a request that holds it. An image counts at most `image_tokens`, however small its
    file is. An event of a stream without one of `marks` tells nothing of its use: it is not parsed.
    """

    name: ClassVar[str]
    spoken: ClassVar[Dialect]
    path: ClassVar[str]
    conversation: ClassVar[str]
    image_tokens: ClassVar[int]
    marks: ClassVar[tuple[bytes, ...]]

    def output_tokens(self, body: Mapping[str, Any]) -> int | None:
        """The request's own limit on the answer, None where it has none. Raises BadRequest."""

    def choices(self, body: Mapping[str, Any]) -> int:
        """How many answers the request asks for. Raises BadRequest."""

    def boundless(self, body: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]) -> str:
        """What makes the size of a request unknowable, with the way out; empty where nothing does.

        `parts` are the content blocks of its conversation.
        """

    def image(self, block: Mapping[str, Any]) -> str | None:
        """The data of a content block that is an inline image, None for any other."""

    def tokens(self, usage: Any) -> Tokens:
        """The classes of a usage report; those that it doesn't hold are unknown."""

    def follow(self, usage: Any, event: Mapping[str, Any]) -> Seen:
        """What a stream that has reported `usage` says with one more event."""

    def asking(self, data: bytes, body: Mapping[str, Any]) -> bytes | None:
        """A request's bytes changed so that its stream reports its usage, or None where it does so anyway.

        Raises BadRequest.
        """

    def is_report_alone(self, event: Mapping[str, Any]) -> bool:
        """Whether an event of a stream holds nothing but the usage that `asking` asked for."""

    def error(self, status: int, kind: str, message: str) -> dict[str, Any]:
        """The body of an error of ours, in the dialect's own form."""

    def error_event(self, status: int, kind: str, message: str) -> bytes:
        """The same in the middle of a stream."""

    def key_header(self, api_key: str) -> tuple[str, str]:
        """The header that brings a key to a provider of this dialect."""

    def url(self, base_url: str) -> str:
        """The address of the calls below the base that this dialect's clients take."""


def positive(body: Mapping[str, Any], name: str, most: int = MOST_ANSWER_TOKENS) -> int | None:
    """A field's whole number above 0, None where it is absent. Raises BadRequest."""
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise BadRequest(f"`{name}` is {value!r}: give a whole number above 0, {most} at most")
    return value


def count(value: Any, absent: int | None = None) -> int | None:
    """A reported number of tokens; what was left out is `absent`, what makes no sense is unknown."""
    if value is None:
        return absent
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS else None


def mapping(value: Any) -> Mapping[str, Any]:
    """The value where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def elements(value: Any) -> list[Mapping[str, Any]]:
    """The objects in a list; none where it is no list."""
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []


def asks_for_an_hour(body: Mapping[str, Any], parts: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a request has something of its prompt cached for an hour: where providers take such a mark, in its own
    fields, in its tools, its system prompt, and its messages' parts."""
    marked = itertools.chain((body,), elements(body.get("tools")), elements(body.get("system")), parts)
    return any(mapping(part.get("cache_control")).get("ttl") == "1h" for part in marked)


def prompt_bound(wire: Wire, body: Mapping[str, Any], parts: Iterable[Mapping[str, Any]], size_bytes: int) -> int:
    """An upper bound of a prompt's tokens: each is at least one byte of the body, but for images and preambles."""
    images = [data for part in parts if (data := wire.image(part)) is not None]
    of_images = len(images) * wire.image_tokens - sum(map(len, images))
    return size_bytes + of_images + TOOL_PREAMBLE_TOKENS * _preambles(body.get("tools"))


def _preambles(tools: Any) -> int:
    """How many texts a provider may add for the tools offered: one for all, and one for each of its own kinds."""
    kinds = [tool.get("type") for tool in elements(tools)]
    return len([kind for kind in kinds if kind not in (None, "function", "custom")]) + bool(kinds)


def blocks(messages: Any) -> list[Mapping[str, Any]]:
    """The content blocks of all messages, those within tool results, too."""
    outer = [block for message in elements(messages) for block in elements(message.get("content"))]
    return outer + [inner for block in outer for inner in elements(block.get("content"))]
