"""A scripted answer as a stream says what the whole one says: read by the meter, and put together as clients do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bench.endpoints import Dialect
from bench.gateway import render, streamed
from bench.gateway.dialects import WIRES
from bench.gateway.metering import StreamMeter
from bench.gateway.render import ToolCall, Usage
from bench.gateway.sse import Splitter, data_of
from bench.prices import Tokens

CALLS = (ToolCall("shell", {"command": "echo é"}), ToolCall("send", {}))


def answer(dialect: Dialect, text: str = "so", calls: tuple[ToolCall, ...] = CALLS) -> dict[str, Any]:
    usage = Usage(fresh=3, cache_read=4, cache_write=0, output=5)
    return json.loads(render.answer(dialect, model="m", number=1, text=text, calls=calls, usage=usage))  # type: ignore[no-any-return]


def data(stream: bytes) -> list[Any]:
    splitter = Splitter()
    parts = [data_of(event) for event in splitter.feed(stream)]
    assert splitter.rest == b""
    return [part.decode() if part == b"[DONE]" else json.loads(part) for part in parts]


@pytest.mark.parametrize("dialect", ["anthropic", "openai"])
@pytest.mark.parametrize("calls", [CALLS, ()])
def test_the_meter_reads_the_same_of_a_stream(dialect: Dialect, calls: tuple[ToolCall, ...]) -> None:
    meter = StreamMeter(WIRES[dialect], leave_out_report=False)
    meter.feed(streamed.events(dialect, answer(dialect, calls=calls), with_usage=True))
    assert meter.is_whole
    assert (meter.reported.tokens, meter.reported.tool_calls) == (Tokens(3, 4, 0, 5), len(calls))


def test_anthropics_blocks_come_together_again() -> None:
    whole = answer("anthropic")
    begun, *told = data(streamed.events("anthropic", whole, with_usage=True))
    message = begun["message"]
    for event in told:
        match event["type"]:
            case "content_block_start":
                message["content"].append(event["content_block"])
            case "content_block_delta" if event["delta"]["type"] == "text_delta":
                message["content"][event["index"]]["text"] += event["delta"]["text"]
            case "content_block_delta":
                message["content"][event["index"]]["input"] = json.loads(event["delta"]["partial_json"])
            case "message_delta":
                message |= event["delta"]
                message["usage"] |= event["usage"]
    assert message == whole


def test_openais_choice_comes_together_again() -> None:
    whole = answer("openai")
    first, last, report, done = data(streamed.events("openai", whole, with_usage=True))
    delta = first["choices"][0]["delta"]
    assert [call.pop("index") for call in delta["tool_calls"]] == [0, 1]
    assert (delta, last["choices"][0]["finish_reason"]) == (
        whole["choices"][0]["message"],
        whole["choices"][0]["finish_reason"],
    )
    assert (report["choices"], report["usage"], done) == ([], whole["usage"], "[DONE]")
    assert len(data(streamed.events("openai", whole, with_usage=False))) == 3
