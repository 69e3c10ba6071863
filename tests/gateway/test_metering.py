"""What an answer reports is read while it passes, and is final only when the stream says so."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from bench.gateway.dialects import WIRES, Wire
from bench.gateway.metering import Reported, StreamMeter, read_whole
from bench.prices import UNKNOWN, Tokens
from tests.gateway import streams
from tests.gateway.streams import event
from tests.gateway.upstream import sha256

ANTHROPIC, CHAT, RESPONSES = WIRES["anthropic"], WIRES["openai"], WIRES["openai-responses"]
IN_ANTHROPIC: dict[str, Any] = {
    "input_tokens": 9,
    "cache_read_input_tokens": 100,
    "cache_creation_input_tokens": 2,
    "output_tokens": 7,
}
IN_CHAT: dict[str, Any] = {
    "prompt_tokens": 111,
    "completion_tokens": 7,
    "prompt_tokens_details": {"cached_tokens": 100, "cache_write_tokens": 2},
}
IN_RESPONSES: dict[str, Any] = {
    "input_tokens": 111,
    "output_tokens": 7,
    "input_tokens_details": {"cached_tokens": 100, "cache_write_tokens": 2},
}
TOKENS = Tokens(9, 100, 2, 7)


def metered(
    wire: Wire, chunks: list[bytes], *, leave_out: bool = False, ends: bool = True
) -> tuple[StreamMeter, bytes]:
    meter = StreamMeter(wire, leave_out_report=leave_out)
    passed = b"".join(map(meter.feed, chunks))
    return meter, passed + (meter.end() if ends else b"")


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize(
    ("wire", "events"),
    [
        (ANTHROPIC, streams.anthropic(IN_ANTHROPIC)),
        (CHAT, streams.chat(IN_CHAT)),
        (RESPONSES, streams.responses(IN_RESPONSES)),
    ],
)
def test_a_stream_is_passed_on_as_it_is_and_its_report_read(wire: Wire, events: list[bytes], size: int) -> None:
    stream = b"".join(events)
    chunks = [stream[at : at + size] for at in range(0, len(stream), size)]
    meter, passed = metered(wire, chunks)
    assert passed == stream
    assert meter.sha256 == sha256(stream)
    assert meter.is_whole
    assert (meter.reported.tokens, meter.reported.model, meter.reported.tool_calls) == (TOKENS, "m", 1)


def test_each_chunk_passes_at_once() -> None:
    meter = StreamMeter(CHAT, leave_out_report=False)
    assert meter.feed(b"data: {") == b"data: {"
    assert not meter.is_between_events
    assert meter.feed(b"}\n\n") == b"}\n\n"
    assert meter.is_between_events


def test_a_report_that_the_client_did_not_ask_for_is_left_out() -> None:
    with_report, without = b"".join(streams.chat(IN_CHAT)), streams.chat(None)
    for size in (1, 10_000):
        chunks = [with_report[at : at + size] for at in range(0, len(with_report), size)]
        meter, passed = metered(CHAT, chunks, leave_out=True)
        assert passed == b"".join(without).replace(b"}]}\n", b'}],"usage":null}\n')
        assert meter.reported.tokens == TOKENS


def test_what_is_no_event_is_not_lost_where_a_report_is_left_out() -> None:
    _, passed = metered(CHAT, [b"data: 1\n\n", b"torn"], leave_out=True)
    assert passed == b"data: 1\n\ntorn"


def test_a_stream_that_was_cut_knows_its_prompt_but_not_its_output() -> None:
    for number in range(1, len(streams.anthropic(IN_ANTHROPIC)) - 2):
        meter, _ = metered(ANTHROPIC, streams.anthropic(IN_ANTHROPIC)[:number], ends=False)
        assert meter.reported.tokens == Tokens(9, 100, 2, None)
        assert meter.reported.usage["output_tokens"] == 1
        assert not meter.is_whole


def test_a_prompt_of_nothing_is_one_that_is_told_later() -> None:
    events = streams.anthropic({"input_tokens": 0, "output_tokens": 7})
    events[-2] = event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": IN_ANTHROPIC})
    assert metered(ANTHROPIC, events[:3], ends=False)[0].reported.tokens == UNKNOWN
    assert metered(ANTHROPIC, events)[0].reported.tokens == TOKENS


def test_sums_that_still_grow_are_final_only_at_the_end() -> None:
    choices = [{"finish_reason": None}]
    growing = [{"choices": choices, "usage": IN_CHAT | {"completion_tokens": number}} for number in range(8)]
    chunks = [*map(event, growing), event(b"[DONE]")]
    assert metered(CHAT, chunks[:3], ends=False)[0].reported.tokens == Tokens(9, 100, 2, None)
    assert metered(CHAT, chunks)[0].reported.tokens == TOKENS


@pytest.mark.parametrize(
    ("wire", "error"),
    [
        (ANTHROPIC, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
        (CHAT, {"error": {"code": 502, "message": "Provider disconnected"}, "choices": []}),
        (RESPONSES, {"type": "error", "code": "server_error", "message": "x", "error": None}),
        (RESPONSES, {"type": "response.failed", "response": {"error": {"code": "server_error"}}}),
    ],
)
def test_an_error_in_the_middle_of_a_stream_is_seen(wire: Wire, error: dict[str, Any]) -> None:
    meter, passed = metered(wire, [event({"model": "m"}), event(error)])
    assert meter.reported.failed
    assert event(error) in passed


@pytest.mark.parametrize(
    "odd", [b"[1]", b"{", b"null", b'{"usage": 3, "choices": 4}', b'{"choices": [{"delta": 1}], "usage": {}}']
)
def test_events_of_another_form_break_nothing(odd: bytes) -> None:
    for wire in WIRES.values():
        meter, passed = metered(wire, [event(odd)])
        assert passed == event(odd)
        assert meter.reported.tokens == UNKNOWN


def test_a_whole_answer_says_who_it_is_from() -> None:
    body = {
        "model": "openai/m-2",
        "provider": "Azure",
        "usage": IN_CHAT,
        "choices": [{"message": {"tool_calls": [{}]}}],
    }
    assert read_whole(CHAT, orjson.dumps(body)) == Reported(IN_CHAT, TOKENS, "openai/m-2", "Azure", 1)
    meter, _ = metered(CHAT, streams.chat(IN_CHAT, model="openai/m-2", provider="Azure"))
    assert (meter.reported.model, meter.reported.provider) == ("openai/m-2", "Azure")


def test_an_answer_that_is_no_json_reports_nothing() -> None:
    assert read_whole(ANTHROPIC, b"<html>") == read_whole(ANTHROPIC, b"[1]") == Reported()
