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


READ = frozenset(
    {
        *("model", "models", "messages", "input", "system", "tools", "stream", "stream_options", "n", "best_of"),
        *("max_tokens", "max_completion_tokens", "max_output_tokens", "cache_control", "service_tier", "speed"),
        *("inference_geo", "mcp_servers", "container", "web_search_options", "plugins", "prediction", "background"),
        *("previous_response_id", "conversation", "prompt"),
    }
)
"""The fields of a request that bear on what it may use, on its price, or on what is read of its answer."""


def read_request(wire: Wire, data: bytes) -> Request:
    """What a request asks for. Raises BadRequest with one sentence for what can't be metered."""
    try:
        body = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the body is no JSON: {error}") from error
    if not isinstance(body, dict):
        raise BadRequest("the body is no JSON object")
    for name in body:
        if name not in READ and (meant := name.casefold()) in READ:
            # Go's JSON looks at no case: a server in it would take the last of the two, and we the other.
            raise BadRequest(f"`{name}` is no field of a call: write `{meant}`")
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
