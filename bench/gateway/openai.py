"""OpenAI's two dialects: Chat Completions (OpenRouter's, Ollama's and vLLM's, too) and Responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import orjson

from bench.endpoints import Dialect
from bench.gateway.wire import MOST_CHOICES, BadRequest, Seen, count, elements, mapping, positive
from bench.prices import Tokens

_INLINE = "send its images and files inline, not by reference"
_AS_TEXT = "send documents as text"
_OWN_TOOLS = ("function", "custom", "local_shell", "shell", "apply_patch")
"""Tools that the client carries out itself: what they give is in the next request."""


class _OpenAI:
    """What both dialects share: cached tokens are told inside the prompt's."""

    spoken: ClassVar[Dialect] = "openai"
    path: ClassVar[str]
    image_tokens: ClassVar[int] = 50_000
    """gpt-4o-mini counts 48,169 at most; newer models, and those behind vLLM, fewer."""
    _types: ClassVar[Mapping[int, str]] = {
        401: "authentication_error",
        402: "insufficient_quota",
        403: "permission_error",
        429: "rate_limit_exceeded",
        502: "api_error",
        504: "api_error",
    }
    _prompt: ClassVar[str]
    _answer: ClassVar[str]

    def tokens(self, usage: Any) -> Tokens:
        """A report that contradicts itself (more cached than sent) tells nothing of the prompt."""
        told = mapping(usage)
        prompt = count(told.get(f"{self._prompt}_tokens"))
        details = mapping(told.get(f"{self._prompt}_tokens_details"))
        absent = 0 if prompt is not None else None
        read = count(details.get("cached_tokens"), absent)
        write = count(details.get("cache_write_tokens"), absent)
        fresh = None if prompt is None or read is None or write is None else prompt - read - write
        if fresh is not None and fresh < 0:
            fresh = read = write = None
        return Tokens(fresh, read, write, count(told.get(f"{self._answer}_tokens")))

    def error(self, status: int, kind: str, message: str) -> dict[str, Any]:
        kind_of_status = self._types.get(status, "invalid_request_error" if status < 500 else "api_error")
        return {"error": {"message": message, "type": kind_of_status, "param": None, "code": kind}}

    def key_header(self, api_key: str) -> tuple[str, str]:
        return "authorization", f"Bearer {api_key}"

    def url(self, base_url: str) -> str:
        base = base_url.rstrip("/")
        has_path = "/" in base.partition("://")[2]
        return base + self.path if has_path else f"{base}/v1{self.path}"


class Chat(_OpenAI):
    """Chat Completions. A stream reports its usage only where it is asked to, in one more chunk at its end."""

    name: ClassVar[str] = "openai"
    path: ClassVar[str] = "/chat/completions"
    conversation: ClassVar[str] = "messages"
    marks: ClassVar[tuple[bytes, ...]] = (b'"usage"', b'"error"', b'"tool_calls"')
    _prompt: ClassVar[str] = "prompt"
    _answer: ClassVar[str] = "completion"

    def output_tokens(self, body: Mapping[str, Any]) -> int | None:
        limits = [positive(body, name) for name in ("max_completion_tokens", "max_tokens")]
        known = [n for n in limits if n is not None]
        return max(known) * self.choices(body) if known else None

    def choices(self, body: Mapping[str, Any]) -> int:
        return max(positive(body, name, MOST_CHOICES) or 1 for name in ("n", "best_of"))

    def boundless(self, body: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]) -> str:
        for name in ("web_search_options", "plugins", "prediction"):
            if body.get(name):
                return f"leave out `{name}`"
        if tier := _dearer(body):
            return tier
        for block in parts:
            if _remote(mapping(block.get("image_url")).get("url")):
                return _INLINE
            if block.get("type") == "file":
                return _AS_TEXT if "file_data" in mapping(block.get("file")) else _INLINE
        return ""

    def image(self, block: Mapping[str, Any]) -> str | None:
        url = mapping(block.get("image_url")).get("url") if block.get("type") == "image_url" else None
        return url if isinstance(url, str) else None

    def follow(self, usage: Any, event: Mapping[str, Any]) -> Seen:
        """Some servers report in each chunk: the sums are whole where no choice is open any more."""
        if event.get("error") is not None:
            return Seen(usage, "failed", is_last=True)
        choices = elements(event.get("choices"))
        tools = tuple(
            (count(choice.get("index")), count(call.get("index")))
            for choice in choices
            for call in elements(mapping(choice.get("delta")).get("tool_calls"))
        )
        told = event.get("usage")
        if told is None:
            return Seen(usage, tools=tools)
        ended = all(choice.get("finish_reason") is not None for choice in choices)
        return Seen(told, "final" if ended else "told", tools=tools)

    def asking(self, data: bytes, body: Mapping[str, Any]) -> bytes | None:
        """`stream_options.include_usage` set, and every other byte as it was (unless there are such options)."""
        options = body.get("stream_options")
        if options is None and "stream_options" not in body:
            head, brace, rest = data.partition(b"{")
            return head + brace + b'"stream_options":{"include_usage":true},' + rest
        if options is not None and not isinstance(options, dict):
            raise BadRequest(f"`stream_options` is {options!r}: give an object")
        if options and options.get("include_usage"):
            return None
        return orjson.dumps({**body, "stream_options": {**(options or {}), "include_usage": True}})

    def is_report_alone(self, event: Mapping[str, Any]) -> bool:
        return event.get("choices") == [] and event.get("usage") is not None

    def error_event(self, status: int, kind: str, message: str) -> bytes:
        return b"data: " + orjson.dumps(self.error(status, kind, message)) + b"\n\n"


class Responses(_OpenAI):
    """Responses. Its context may lie with the provider, and then its size is unknown here."""

    name: ClassVar[str] = "openai-responses"
    path: ClassVar[str] = "/responses"
    conversation: ClassVar[str] = "input"
    marks: ClassVar[tuple[bytes, ...]] = (b'"usage"', b'"error"')
    _prompt: ClassVar[str] = "input"
    _answer: ClassVar[str] = "output"

    def output_tokens(self, body: Mapping[str, Any]) -> int | None:
        if body.get("background"):
            raise BadRequest("`background` is set: its use can't be read; leave it out")
        return positive(body, "max_output_tokens")

    def choices(self, body: Mapping[str, Any]) -> int:
        return 1

    def boundless(self, body: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]) -> str:
        for name in ("previous_response_id", "conversation", "prompt"):
            if body.get(name):
                return f"send the whole input, not by `{name}`"
        if tier := _dearer(body):
            return tier
        for tool in elements(body.get("tools")):
            if tool.get("type") not in _OWN_TOOLS:
                return f"leave out the provider's own tool {tool.get('type')}"
        for block in parts:
            if block.get("file_id") or block.get("file_url") or _remote(block.get("image_url")):
                return _INLINE
            if block.get("type") == "input_file":
                return _AS_TEXT
        return ""

    def image(self, block: Mapping[str, Any]) -> str | None:
        url = block.get("image_url") if block.get("type") == "input_image" else None
        return url if isinstance(url, str) else None

    def follow(self, usage: Any, event: Mapping[str, Any]) -> Seen:
        response = mapping(event.get("response"))
        match event.get("type"):
            case "response.completed" | "response.incomplete":
                output = enumerate(elements(response.get("output")))
                tools = tuple(number for number, item in output if item.get("type") == "function_call")
                return Seen(response.get("usage"), "final", is_last=True, tools=tools)
            case "response.failed":
                return Seen(response.get("usage") or usage, "failed", is_last=True)
            case "error":
                return Seen(usage, "failed", is_last=True)
            case _:
                return Seen(usage)

    def asking(self, data: bytes, body: Mapping[str, Any]) -> bytes | None:
        return None

    def is_report_alone(self, event: Mapping[str, Any]) -> bool:
        return False

    def error_event(self, status: int, kind: str, message: str) -> bytes:
        event = {"type": "error", "code": kind, "message": message, "param": None}
        return b"event: error\ndata: " + orjson.dumps(event) + b"\n\n"


def _dearer(body: Mapping[str, Any]) -> str:
    """What asks for a service that costs more than the model's price says; empty where nothing does."""
    return "" if body.get("service_tier") in (None, "auto", "default", "flex") else "leave out `service_tier`"


def _remote(url: Any) -> bool:
    return isinstance(url, str) and not url.startswith("data:")
