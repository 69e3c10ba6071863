"""All dialects come to the same four classes of tokens ("Public cases", case 21), and errors look like their own."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from bench.gateway.dialects import WIRES, BadRequest, Wire, read_request
from bench.prices import NONE_USED, UNKNOWN, Price, Tokens, cost_usd_micros

ANTHROPIC, OPENAI, RESPONSES = WIRES["anthropic"], WIRES["openai"], WIRES["openai-responses"]


def test_the_same_call_counts_the_same_in_every_dialect() -> None:
    openai = {"prompt_tokens": 2006, "completion_tokens": 300, "prompt_tokens_details": {"cached_tokens": 1920}}
    anthropic = {"input_tokens": 86, "cache_read_input_tokens": 1920, "output_tokens": 300}
    responses = {"input_tokens": 2006, "output_tokens": 300, "input_tokens_details": {"cached_tokens": 1920}}
    expected = Tokens(input=86, cache_read=1920, cache_write=0, output=300)
    assert OPENAI.tokens(openai) == ANTHROPIC.tokens(anthropic) == RESPONSES.tokens(responses) == expected
    price = Price(3_000_000, 300_000, 3_750_000, 15_000_000)
    assert cost_usd_micros(price, expected) == 86 * 3 + 576 + 300 * 15


@pytest.mark.parametrize("usage", [None, {}, [], "17"])
def test_a_usage_that_is_absent_is_unknown(usage: Any) -> None:
    assert ANTHROPIC.tokens(usage) == OPENAI.tokens(usage) == RESPONSES.tokens(usage) == UNKNOWN


def test_a_reported_zero_is_zero() -> None:
    assert ANTHROPIC.tokens({"input_tokens": 0, "output_tokens": 0}) == NONE_USED
    assert OPENAI.tokens({"prompt_tokens": 0, "completion_tokens": 0}) == NONE_USED


@pytest.mark.parametrize(
    ("dialect", "usage", "tokens"),
    [
        ("anthropic", {"input_tokens": 5, "cache_creation_input_tokens": 7, "output_tokens": 1}, Tokens(5, 0, 7, 1)),
        ("anthropic", {"input_tokens": 5, "cache_read_input_tokens": None, "output_tokens": 1}, Tokens(5, 0, 0, 1)),
        ("anthropic", {"input_tokens": 5}, Tokens(5, 0, 0, None)),
        (
            "anthropic",
            {
                "input_tokens": 5,
                "cache_creation_input_tokens": 7,
                "cache_creation": {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 4},
                "output_tokens": 1,
            },
            Tokens(5, 0, 7, 1, cache_write_1h=4),
        ),
        (
            "anthropic",
            {
                "input_tokens": 5,
                "cache_creation_input_tokens": 3,
                "cache_creation": {"ephemeral_1h_input_tokens": 4},
                "output_tokens": 1,
            },
            Tokens(5, 0, None, 1),
        ),
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
def test_each_report_gives_its_classes(dialect: str, usage: Any, tokens: Tokens) -> None:
    assert WIRES[dialect].tokens(usage) == tokens


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
    assert RESPONSES.url(base) == openai.replace("/chat/completions", "/responses")


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


def test_a_responses_request_may_be_a_text() -> None:
    request = read_request(RESPONSES, orjson.dumps({"model": "m", "input": "x", "max_output_tokens": 7}))
    assert (request.output_tokens, request.stream) == (7, False)
    with pytest.raises(BadRequest, match="`input` is missing: give a list"):
        read_request(RESPONSES, body())
    with pytest.raises(BadRequest, match="`background` is set: its use can't be read; leave it out"):
        read_request(RESPONSES, orjson.dumps({"model": "m", "input": "x", "background": True}))


IN_LINE, AS_TEXT = "send its images and files inline, not by reference", "send documents as text"


@pytest.mark.parametrize(
    ("wire", "block", "expected"),
    [
        (ANTHROPIC, {"type": "image", "source": {"type": "base64", "data": "AA=="}}, ""),
        (ANTHROPIC, {"type": "image", "source": {"type": "url", "url": "https://x.example/a.png"}}, IN_LINE),
        (ANTHROPIC, {"type": "document", "source": {"type": "file", "file_id": "f"}}, IN_LINE),
        (ANTHROPIC, {"type": "document", "source": {"type": "base64", "data": "AA=="}}, AS_TEXT),
        (ANTHROPIC, {"type": "tool_result", "content": [{"type": "image", "source": {"type": "url"}}]}, IN_LINE),
        (ANTHROPIC, {"type": "text", "text": "https://x.example"}, ""),
        (OPENAI, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}, ""),
        (OPENAI, {"type": "image_url", "image_url": {"url": "https://x.example/a.png"}}, IN_LINE),
        (OPENAI, {"type": "file", "file": {"file_id": "f"}}, IN_LINE),
        (OPENAI, {"type": "file", "file": {"file_data": "AA=="}}, AS_TEXT),
        (RESPONSES, {"type": "input_image", "image_url": "data:image/png;base64,AA=="}, ""),
        (RESPONSES, {"type": "input_image", "file_id": "f"}, IN_LINE),
        (RESPONSES, {"type": "input_file", "file_data": "AA=="}, AS_TEXT),
    ],
)
def test_content_whose_size_nobody_knows_is_seen(wire: Wire, block: dict[str, Any], expected: str) -> None:
    talk = [{"role": "user", "content": [block]}]
    assert read_request(wire, orjson.dumps({"model": "m", wire.conversation: talk})).boundless == expected


@pytest.mark.parametrize(
    ("wire", "fields", "expected"),
    [
        (ANTHROPIC, {"mcp_servers": [{}]}, "leave out `mcp_servers` and `container`"),
        (
            ANTHROPIC,
            {"tools": [{"type": "web_search_20250305"}]},
            "leave out the provider's own tool web_search_20250305",
        ),
        (ANTHROPIC, {"tools": [{"type": "bash_20250124"}, {"name": "x"}]}, ""),
        (OPENAI, {"web_search_options": {"a": 1}}, "leave out `web_search_options`"),
        (OPENAI, {"plugins": [{"id": "web"}]}, "leave out `plugins`"),
        (RESPONSES, {"previous_response_id": "r"}, "send the whole input, not by `previous_response_id`"),
        (RESPONSES, {"tools": [{"type": "web_search"}]}, "leave out the provider's own tool web_search"),
        (RESPONSES, {"tools": [{"type": "function", "name": "f"}]}, ""),
    ],
)
def test_what_the_provider_adds_of_its_own_is_seen(wire: Wire, fields: dict[str, Any], expected: str) -> None:
    talk = {wire.conversation: [{"role": "user", "content": "x"}]}
    assert read_request(wire, orjson.dumps({"model": "m", **talk, **fields})).boundless == expected


def test_a_prompts_bound_is_its_bytes_and_the_tools_preambles() -> None:
    data = body()
    assert read_request(ANTHROPIC, data).prompt_tokens == len(data)
    with_tools = body(tools=[{"name": "shell"}])
    assert read_request(ANTHROPIC, with_tools).prompt_tokens == len(with_tools) + 1000
    with_own = body(tools=[{"name": "shell"}, {"type": "bash_20250124"}])
    assert read_request(ANTHROPIC, with_own).prompt_tokens == len(with_own) + 2000


@pytest.mark.parametrize(
    ("data", "for_an_hour"),
    [
        (body(), False),
        (body(system=[{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}]), False),
        (body(system=[{"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "5m"}}]), False),
        (body(tools=[{"name": "x", "cache_control": {"type": "ephemeral", "ttl": "1h"}}]), True),
        (body(tools=[{"name": "x", "cache_control": {"ttl": "1h"}}]).replace(b"1h", b"\\u0031\\u0068"), True),
        (body(system="the words 1h and \\u0031h"), False),
    ],
)
def test_a_cache_that_is_asked_for_an_hour_is_seen_however_it_is_written(data: bytes, for_an_hour: bool) -> None:
    assert read_request(ANTHROPIC, data).for_an_hour is for_an_hour


@pytest.mark.parametrize(
    ("wire", "block", "tokens"),
    [
        (ANTHROPIC, {"type": "image", "source": {"type": "base64", "data": "A" * 9000}}, 5_000),
        (OPENAI, {"type": "image_url", "image_url": {"url": "data:," + "A" * 9000}}, 50_000),
        (RESPONSES, {"type": "input_image", "image_url": "data:," + "A" * 9000}, 50_000),
    ],
)
def test_an_image_counts_what_images_count_at_most_not_its_bytes(
    wire: Wire, block: dict[str, Any], tokens: int
) -> None:
    data = orjson.dumps({"model": "m", wire.conversation: [{"role": "user", "content": [block]}]})
    assert tokens < read_request(wire, data).prompt_tokens < tokens + 200


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b' {"model":"m" }', b' {"stream_options":{"include_usage":true},"model":"m" }'),
        (b'{"stream_options": {"include_usage": true}}', None),
        (
            b'{"a": 1, "stream_options": {"include_obfuscation": false}}',
            b'{"a":1,"stream_options":{"include_obfuscation":false,"include_usage":true}}',
        ),
        (b'{"stream_options": null}', b'{"stream_options":{"include_usage":true}}'),
    ],
)
def test_a_stream_of_chat_completions_is_asked_for_its_usage(before: bytes, after: bytes | None) -> None:
    given = orjson.loads(before)
    assert OPENAI.asking(before, given) == after
    assert ANTHROPIC.asking(before, given) is RESPONSES.asking(before, given) is None


def test_stream_options_that_are_no_object_are_refused() -> None:
    with pytest.raises(BadRequest, match="`stream_options` is 1: give an object"):
        read_request(OPENAI, body(stream=True, stream_options=1))


def test_only_a_stream_is_asked_for_its_usage() -> None:
    assert read_request(OPENAI, body()).asking is None
    asking = read_request(OPENAI, body(stream=True)).asking
    assert asking is not None
    assert orjson.loads(asking)["stream_options"] == {"include_usage": True}
