"""A stream on a cassette: its events stay, and a value that runs over several of them has its name all the same."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from bench.gateway import streams
from bench.gateway.normalise import Names
from bench.gateway.redaction import Redaction

EVENT, OTHER = "ab" * 32, "c4" * 32


def event(value: dict[str, Any], name: str = "") -> str:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {orjson.dumps(value).decode()}\n\n"


def anthropic(text: str, size: int) -> str:
    """The stream of a tool call whose input comes in pieces."""
    start = {"type": "message_start", "message": {"id": "msg_01X", "usage": {"input_tokens": 3}}}
    block = {"type": "tool_use", "id": "toolu_01X", "name": "t", "input": {}}
    pieces = [text[n : n + size] for n in range(0, len(text), size)]
    return "".join(
        [
            event(start, "message_start"),
            event({"type": "content_block_start", "index": 0, "content_block": block}, "content_block_start"),
            *(
                event({"type": "content_block_delta", "index": 0, "delta": {"partial_json": piece}}, "x")
                for piece in pieces
            ),
            event({"type": "message_delta", "usage": {"output_tokens": 5}}, "message_delta"),
        ]
    )


def openai(text: str, size: int) -> str:
    pieces = [text[n : n + size] for n in range(0, len(text), size)]
    deltas = (
        {
            "id": "chatcmpl-9",
            "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 1, "function": {"arguments": p}}]}}],
        }
        for p in pieces
    )
    return "".join([*map(event, deltas), "data: [DONE]\n\n"])


def responses(text: str, size: int) -> str:
    pieces = [text[n : n + size] for n in range(0, len(text), size)]
    kind = "response.function_call_arguments.delta"
    return "".join(event({"type": kind, "item_id": "fc_1", "output_index": 0, "delta": p}, kind) for p in pieces)


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
@pytest.mark.parametrize("dialect", [anthropic, openai, responses])
def test_a_value_in_pieces_is_named_and_spoken_in_the_other_run(dialect: Any, size: int) -> None:
    recorded, now = Names({}), Names({})
    recorded.shown(EVENT)
    now.shown(OTHER)
    body = dialect(f'{{"reply_to":"{EVENT}"}}', size)
    named = streams.named(body, recorded.said_in_pieces, recorded.reference_shown)
    assert len(named) == len(streams.events_of(body))
    assert "⟨id 1⟩" in "".join(named)
    assert EVENT[:16] not in "".join(named).replace('"', "")
    spoken = "".join(streams.spoken(named, now.spoken, now.reference_spoken))
    assert arguments(spoken) == f'{{"reply_to":"{OTHER}"}}'


def arguments(body: str) -> str:
    """What a client puts together of the pieces."""
    whole = ""
    for text in streams.events_of(body):
        line = next((line for line in text.splitlines() if line.startswith("data: {")), None)
        if line is None:
            continue
        value = orjson.loads(line[6:])
        for choice in value.get("choices", ()):
            whole += choice["delta"]["tool_calls"][0]["function"]["arguments"]
        delta = value.get("delta")
        whole += delta if isinstance(delta, str) else (delta or {}).get("partial_json", "")
    return whole


def test_in_one_run_a_stream_comes_back_with_ids_of_its_kind() -> None:
    names, body = Names({}), anthropic('{"a": 1}', 3)
    spoken = "".join(streams.spoken(streams.named(body, names.said_in_pieces, names.reference_shown), str, str))
    assert spoken == body.replace("msg_01X", "⟨msg 1⟩").replace("toolu_01X", "⟨toolu 1⟩")


@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n"])
def test_lines_that_are_no_data_stay_as_they_are(end: str) -> None:
    line = end[: len(end) // 2]
    body = f': ping{end}event: a{line}id: 7{line}data: {{"text":"x"}}{end}data: [DONE]{end}rest'
    assert "".join(streams.named(body, list, str)) == body


def test_a_secret_that_runs_over_events_is_kept_out() -> None:
    secret = "sk-canary-5f0c1d7e9b"
    named = streams.named(anthropic(f"key {secret}!", 5), Redaction([secret]).in_pieces, str)
    assert arguments("".join(named)) == "key [secret]!"
