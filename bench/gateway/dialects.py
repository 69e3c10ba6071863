"""The wire dialects that the gateway speaks, and what it reads of a request."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from bench.gateway.anthropic import Anthropic
from bench.gateway.openai import Chat, Responses
from bench.gateway.wire import BadRequest, Request, Wire, asks_for_an_hour, blocks, prompt_bound

__all__ = ["WIRES", "BadRequest", "Request", "Wire", "read_request"]

WIRES: Mapping[str, Wire] = {wire.name: wire for wire in (Anthropic(), Chat(), Responses())}
"""By the name that receipts have. An endpoint's own dialect names one of them, too."""


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
    conversation = body.get(wire.conversation)
    if not isinstance(conversation, list) and not (wire.conversation == "input" and isinstance(conversation, str)):
        raise BadRequest(f"`{wire.conversation}` is missing: give a list")
    stream, parts = body.get("stream") is True, blocks(conversation)
    return Request(
        body=body,
        model=model,
        output_tokens=wire.output_tokens(body),
        prompt_tokens=prompt_bound(wire, body, parts, len(data)),
        stream=stream,
        for_an_hour=asks_for_an_hour(body, parts),
        choices=wire.choices(body),
        boundless=wire.boundless(body, parts),
        asking=wire.asking(data, body) if stream else None,
    )
