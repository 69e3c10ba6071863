"""Both dialects come to the same four classes of tokens ("Public cases", case 21), and errors look like their own."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from bench.endpoints import Dialect
from bench.gateway.dialects import WIRES, BadRequest, read_request, read_usage
from bench.manifest import Price
from bench.prices import NONE_USED, UNKNOWN, Tokens, cost_usd_micros

ANTHROPIC, OPENAI = WIRES["anthropic"], WIRES["openai"]


def test_the_same_call_counts_the_same_in_both_dialects() -> None:
    openai = {"prompt_tokens": 2006, "completion_tokens": 300, "prompt_tokens_details": {"cached_tokens": 1920}}
    anthropic = {"input_tokens": 86, "cache_read_input_tokens": 1920, "output_tokens": 300}
    expected = Tokens(input=86, cache_read=1920, cache_write=0, output=300)
    assert OPENAI.tokens(openai) == ANTHROPIC.tokens(anthropic) == expected
    price = Price(3_000_000, 300_000, 3_750_000, 15_000_000)
    assert cost_usd_micros(price, expected) == 86 * 3 + 576 + 300 * 15


@pytest.mark.parametrize("usage", [None, {}, [], "17"])
def test_a_usage_that_is_absent_is_unknown(usage: Any) -> None:
    assert ANTHROPIC.tokens(usage) == OPENAI.tokens(usage) == UNKNOWN


def test_a_reported_zero_is_zero() -> None:
    assert ANTHROPIC.tokens({"input_tokens": 0, "output_tokens": 0}) == NONE_USED
    assert OPENAI.tokens({"prompt_tokens": 0, "completion_tokens": 0}) == NONE_USED


@pytest.mark.parametrize(
    ("dialect", "usage", "tokens"),
    [
        ("anthropic", {"input_tokens": 5, "cache_creation_input_tokens": 7, "output_tokens": 1}, Tokens(5, 0, 7, 1)),
        ("anthropic", {"input_tokens": 5, "cache_read_input_tokens": None, "output_tokens": 1}, Tokens(5, 0, 0, 1)),
        ("anthropic", {"input_tokens": 5}, Tokens(5, 0, 0, None)),
        ("anthropic", {"input_tokens": -5, "output_tokens": True}, UNKNOWN),
        ("openai", {"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": None}, Tokens(9, 0, 0, 1)),
        (
            "openai",
            {
                "prompt_tokens": 9,
                "completion_tokens": 1,
                "prompt_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 4},
            },
            Tokens(2, 3, 4, 1),
        ),
        (
            "openai",
            {"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 10}},
            Tokens(None, None, None, 1),
        ),
        ("openai", {"prompt_tokens": 9.5, "completion_tokens": 1}, Tokens(None, None, None, 1)),
    ],
)
def test_each_report_gives_its_classes(dialect: Dialect, usage: Any, tokens: Tokens) -> None:
    assert WIRES[dialect].tokens(usage) == tokens


def test_an_answer_that_is_no_json_has_no_usage() -> None:
    assert read_usage(ANTHROPIC, b"<html>") == (None, UNKNOWN)
    assert read_usage(ANTHROPIC, b"[1]") == (None, UNKNOWN)


@pytest.mark.parametrize(
    ("base", "anthropic", "openai"),
    [
        ("https://a.example", "https://a.example/v1/messages", "https://a.example/v1/chat/completions"),
        ("https://a.example/v1/", "https://a.example/v1/messages", "https://a.example/v1/chat/completions"),
        ("https://a.example/x", "https://a.example/x/v1/messages", "https://a.example/x/chat/completions"),
    ],
)
def test_a_base_is_taken_as_the_dialects_own_clients_do(base: str, anthropic: str, openai: str) -> None:
    assert (ANTHROPIC.url(base), OPENAI.url(base)) == (anthropic, openai)


def test_errors_have_the_dialects_own_form() -> None:
    assert ANTHROPIC.error(402, "budget", "no money") == {
        "type": "error",
        "error": {"type": "billing_error", "message": "no money"},
    }
    assert OPENAI.error(402, "budget", "no money") == {
        "error": {"message": "no money", "type": "insufficient_quota", "param": None, "code": "budget"}
    }
    assert ANTHROPIC.error(502, "upstream", "x")["error"]["type"] == "api_error"
    assert OPENAI.error(422, "script_mismatch", "x")["error"]["type"] == "invalid_request_error"


def body(**fields: Any) -> bytes:
    return orjson.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}], **fields})


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{", "the body is no JSON"),
        (b"[]", "the body is no JSON object"),
        (b'{"messages": []}', "`model` is missing: name the model to call"),
        (b'{"model": "", "messages": []}', "`model` is missing: name the model to call"),
        (b'{"model": "m"}', "`messages` is missing: give a list"),
        (body(max_tokens=0), "`max_tokens` is 0: give a whole number above 0"),
        (body(max_tokens="many"), "`max_tokens` is 'many': give a whole number above 0"),
    ],
)
def test_a_request_that_cannot_be_metered_says_why(data: bytes, message: str) -> None:
    with pytest.raises(BadRequest) as raised:
        read_request(ANTHROPIC, data)
    assert str(raised.value).startswith(message)


def test_the_bound_on_output_covers_all_choices() -> None:
    assert read_request(ANTHROPIC, body(max_tokens=7)).output_tokens == 7
    assert read_request(OPENAI, body(max_tokens=7, n=3)).output_tokens == 21
    assert read_request(OPENAI, body(max_tokens=7, max_completion_tokens=9)).output_tokens == 9
    assert read_request(OPENAI, body()).output_tokens is None


def test_content_by_reference_is_seen() -> None:
    inline = {"type": "image", "source": {"type": "base64", "data": "AA=="}}
    remote = {"type": "image", "source": {"type": "url", "url": "https://x.example/a.png"}}
    for block, expected in [
        (inline, False),
        (remote, True),
        ({"type": "document", "source": {"type": "file", "file_id": "f"}}, True),
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}, False),
        ({"type": "image_url", "image_url": {"url": "https://x.example/a.png"}}, True),
        ({"type": "text", "text": "https://x.example"}, False),
    ]:
        messages = [{"role": "user", "content": [block]}]
        assert read_request(OPENAI, body(messages=messages)).by_reference is expected


def test_a_prompts_bound_is_its_bytes_and_the_tools_preamble() -> None:
    data = body()
    assert read_request(ANTHROPIC, data).prompt_tokens == len(data)
    with_tools = body(tools=[{"name": "shell"}])
    assert read_request(ANTHROPIC, with_tools).prompt_tokens == len(with_tools) + 1000
