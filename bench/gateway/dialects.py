"""The wire dialects: what the gateway reads of a request and of an answer, and how errors look to a client.

Nothing here changes a body. Usage becomes four disjoint classes of tokens at this edge ("Public cases",
case 21): OpenAI counts cached tokens inside the prompt's, Anthropic beside them. Where a report leaves the
cache out, nothing was cached: providers bill such tokens as fresh. Where input or output itself is missing,
it is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import orjson

from bench.endpoints import Dialect
from bench.prices import Tokens

TOOL_PREAMBLE_TOKENS = 1_000
"""What a provider may add to a prompt that offers tools: 804 tokens at most in Anthropic's documentation."""


class BadRequest(ValueError):
    """A request that the gateway can't meter. The message is for the client."""


@dataclass(frozen=True)
class Request:
    """What the gateway reads of a model call; `body` is the parsed JSON, `size_bytes` that of the bytes sent.

    `output_tokens` is the most that the answer may have over all its choices, or None where the request
    sets no limit.
    """

    body: dict[str, Any]
    size_bytes: int
    model: str
    output_tokens: int | None
    stream: bool
    by_reference: bool

    @property
    def prompt_tokens(self) -> int:
        """An upper bound of the prompt's tokens: each is at least one byte of the body."""
        return self.size_bytes + (TOOL_PREAMBLE_TOKENS if self.body.get("tools") else 0)


class Wire(Protocol):
    """One dialect."""

    name: ClassVar[Dialect]
    path: ClassVar[str]

    def output_tokens(self, body: Mapping[str, Any]) -> int | None:
        """The request's own limit on the answer, None where it has none. Raises BadRequest."""

    def tokens(self, usage: Any) -> Tokens:
        """The classes of a usage report; those that it doesn't hold are unknown."""

    def error(self, status: int, kind: str, message: str) -> dict[str, Any]:
        """The body of an error of ours, in the dialect's own form."""

    def key_header(self, api_key: str) -> tuple[str, str]:
        """The header that brings a key to a provider of this dialect."""

    def url(self, base_url: str) -> str:
        """The address of the calls below the base that this dialect's clients take."""


class Anthropic:
    """Anthropic Messages."""

    name: ClassVar[Dialect] = "anthropic"
    path: ClassVar[str] = "/messages"
    _types: ClassVar[Mapping[int, str]] = {
        400: "invalid_request_error",
        401: "authentication_error",
        402: "billing_error",
        403: "permission_error",
        404: "not_found_error",
        413: "request_too_large",
        422: "invalid_request_error",
    }

    def output_tokens(self, body: Mapping[str, Any]) -> int | None:
        return _positive(body, "max_tokens")

    def tokens(self, usage: Any) -> Tokens:
        if not isinstance(usage, dict):
            usage = {}
        fresh = _count(usage.get("input_tokens"))
        absent = 0 if fresh is not None else None
        return Tokens(
            input=fresh,
            cache_read=_count(usage.get("cache_read_input_tokens"), absent),
            cache_write=_count(usage.get("cache_creation_input_tokens"), absent),
            output=_count(usage.get("output_tokens")),
        )

    def error(self, status: int, kind: str, message: str) -> dict[str, Any]:
        return {"type": "error", "error": {"type": self._types.get(status, "api_error"), "message": message}}

    def key_header(self, api_key: str) -> tuple[str, str]:
        return "x-api-key", api_key

    def url(self, base_url: str) -> str:
        base = base_url.rstrip("/")
        return base + self.path if base.endswith("/v1") else f"{base}/v1{self.path}"


class OpenAI:
    """OpenAI Chat Completions, as OpenAI, OpenRouter, Ollama and vLLM speak it."""

    name: ClassVar[Dialect] = "openai"
    path: ClassVar[str] = "/chat/completions"
    _types: ClassVar[Mapping[int, str]] = {
        401: "authentication_error",
        402: "insufficient_quota",
        403: "permission_error",
        502: "api_error",
        504: "api_error",
    }

    def output_tokens(self, body: Mapping[str, Any]) -> int | None:
        limits = [_positive(body, name) for name in ("max_completion_tokens", "max_tokens")]
        known = [n for n in limits if n is not None]
        return max(known) * (_positive(body, "n") or 1) if known else None

    def tokens(self, usage: Any) -> Tokens:
        if not isinstance(usage, dict):
            usage = {}
        prompt = _count(usage.get("prompt_tokens"))
        details = usage.get("prompt_tokens_details")
        if not isinstance(details, dict):
            details = {}
        absent = 0 if prompt is not None else None
        read = _count(details.get("cached_tokens"), absent)
        write = _count(details.get("cache_write_tokens"), absent)
        fresh = None if prompt is None or read is None or write is None else prompt - read - write
        if fresh is not None and fresh < 0:
            fresh = read = write = None
        return Tokens(fresh, read, write, _count(usage.get("completion_tokens")))

    def error(self, status: int, kind: str, message: str) -> dict[str, Any]:
        kind_of_status = self._types.get(status, "invalid_request_error" if status < 500 else "api_error")
        return {"error": {"message": message, "type": kind_of_status, "param": None, "code": kind}}

    def key_header(self, api_key: str) -> tuple[str, str]:
        return "authorization", f"Bearer {api_key}"

    def url(self, base_url: str) -> str:
        base = base_url.rstrip("/")
        has_path = "/" in base.partition("://")[2]
        return base + self.path if has_path else f"{base}/v1{self.path}"


WIRES: Mapping[Dialect, Wire] = {"anthropic": Anthropic(), "openai": OpenAI()}


def read_request(wire: Wire, data: bytes) -> Request:
    """What a request asks for. Raises BadRequest with one sentence for what can't be metered."""
    try:
        body = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the body is no JSON: {error}") from error
    if not isinstance(body, dict):
        raise BadRequest("the body is no JSON object")
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise BadRequest("`model` is missing: name the model to call")
    if not isinstance(body.get("messages"), list):
        raise BadRequest("`messages` is missing: give a list")
    return Request(
        body=body,
        size_bytes=len(data),
        model=model,
        output_tokens=wire.output_tokens(body),
        stream=bool(body.get("stream")),
        by_reference=_by_reference(body["messages"]),
    )


def read_usage(wire: Wire, data: bytes) -> tuple[Any, Tokens]:
    """(the usage as the upstream sent it or None, its classes) of an answer's body, whatever the body is."""
    try:
        body = orjson.loads(data)
    except orjson.JSONDecodeError:
        body = None
    usage = body.get("usage") if isinstance(body, dict) else None
    return usage, wire.tokens(usage)


def _by_reference(messages: list[Any]) -> bool:
    """Whether a message names content by URL or file id, whose tokens the body's size doesn't bound."""
    for message in messages:
        blocks = message.get("content") if isinstance(message, dict) else None
        for block in blocks if isinstance(blocks, list) else ():
            if isinstance(block, dict) and any(_remote(block.get(k)) for k in ("source", "image_url", "file")):
                return True
    return False


def _remote(source: Any) -> bool:
    if not isinstance(source, dict):
        return False
    url = source.get("url")
    return "file_id" in source or (isinstance(url, str) and not url.startswith("data:"))


def _positive(body: Mapping[str, Any], name: str) -> int | None:
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise BadRequest(f"`{name}` is {value!r}: give a whole number above 0")
    return value


def _count(value: Any, absent: int | None = None) -> int | None:
    """A reported number of tokens; what was left out is `absent`, what makes no sense is unknown."""
    if value is None:
        return absent
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
