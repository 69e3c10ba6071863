"""Anthropic Messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import orjson

from bench.endpoints import Dialect
from bench.gateway.wire import Progress, Seen, count, elements, mapping, positive
from bench.prices import Tokens, hour_writes

_SERVER_TOOLS = ("web_search", "web_fetch", "code_execution", "tool_search")


class Anthropic:
    """Anthropic Messages: tokens read from the cache and written to it are told beside the fresh ones."""

    name: ClassVar[str] = "anthropic"
    spoken: ClassVar[Dialect] = "anthropic"
    path: ClassVar[str] = "/messages"
    conversation: ClassVar[str] = "messages"
    image_tokens: ClassVar[int] = 5_000
    """4,784 at most in Anthropic's documentation."""
    marks: ClassVar[tuple[bytes, ...]] = (b'"usage"', b'"error"', b'"message_stop"', b'"tool_use"')
    _types: ClassVar[Mapping[int, str]] = {
        400: "invalid_request_error",
        401: "authentication_error",
        402: "billing_error",
        403: "permission_error",
        404: "not_found_error",
        413: "request_too_large",
        422: "invalid_request_error",
        429: "rate_limit_error",
    }

    def output_tokens(self, body: Mapping[str, Any]) -> int | None:
        return positive(body, "max_tokens")

    def choices(self, body: Mapping[str, Any]) -> int:
        return 1

    def boundless(self, body: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]) -> str:
        if body.get("mcp_servers") or body.get("container"):
            return "leave out `mcp_servers` and `container`"
        # Both cost more than the model's price says.
        for name, usual in (("speed", "standard"), ("inference_geo", "global")):
            if body.get(name) not in (None, usual):
                return f"leave out `{name}`"
        for tool in elements(body.get("tools")):
            if str(tool.get("type", "")).startswith(_SERVER_TOOLS):
                return f"leave out the provider's own tool {tool['type']}"
        for block in parts:
            source = mapping(block.get("source"))
            if source.get("type") in ("url", "file"):
                return "send its images and files inline, not by reference"
            if block.get("type") == "document" and source.get("type") == "base64":
                return "send documents as text"
        return ""

    def image(self, block: Mapping[str, Any]) -> str | None:
        data = mapping(block.get("source")).get("data") if block.get("type") == "image" else None
        return data if isinstance(data, str) else None

    def tokens(self, usage: Any) -> Tokens:
        """Where a report leaves the cache out, nothing was cached. Where input or output is missing, it is unknown.

        So are cache writes of which more stay for an hour than there are.
        """
        told = mapping(usage)
        fresh = count(told.get("input_tokens"))
        absent = 0 if fresh is not None else None
        write, hour = count(told.get("cache_creation_input_tokens"), absent), hour_writes(usage)
        if write is None or hour is None or hour > write:
            write, hour = None, 0
        return Tokens(
            input=fresh,
            cache_read=count(told.get("cache_read_input_tokens"), absent),
            cache_write=write,
            output=count(told.get("output_tokens")),
            cache_write_1h=hour,
        )

    def follow(self, usage: Any, event: Mapping[str, Any]) -> Seen:
        """`message_start` tells the prompt, each `message_delta` sums that replace the earlier ones."""
        match event.get("type"):
            case "message_start":
                return Seen(mapping(event.get("message")).get("usage"))
            case "content_block_start":
                is_tool = mapping(event.get("content_block")).get("type") == "tool_use"
                return Seen(usage, tools=(count(event.get("index")),) if is_tool else ())
            case "message_delta":
                newer = {k: v for k, v in mapping(event.get("usage")).items() if v is not None}
                stopped = mapping(event.get("delta")).get("stop_reason") is not None
                whole: Progress = "final" if stopped else "told"
                return Seen({**mapping(usage), **newer}, whole if "output_tokens" in newer else "open")
            case "message_stop":
                return Seen(usage, is_last=True)
            case "error":
                return Seen(usage, "failed", is_last=True)
            case _:
                return Seen(usage)

    def asking(self, data: bytes, body: Mapping[str, Any]) -> bytes | None:
        return None

    def is_report_alone(self, event: Mapping[str, Any]) -> bool:
        return False

    def error(self, status: int, kind: str, message: str) -> dict[str, Any]:
        return {"type": "error", "error": {"type": self._types.get(status, "api_error"), "message": message}}

    def error_event(self, status: int, kind: str, message: str) -> bytes:
        return b"event: error\ndata: " + orjson.dumps(self.error(status, kind, message)) + b"\n\n"

    def key_header(self, api_key: str) -> tuple[str, str]:
        return "x-api-key", api_key

    def url(self, base_url: str) -> str:
        base = base_url.rstrip("/")
        return base + self.path if base.endswith("/v1") else f"{base}/v1{self.path}"
