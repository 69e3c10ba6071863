"""Events and filters from the wire: what is taken apart, what is refused, and in which words."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.nostr import Event, Key
from bench.relay.protocol import (
    MAX_CONTENT_BYTES,
    Filter,
    Refused,
    decode,
    lenient_event_id,
    live_channel,
    parse_event,
    parse_filters,
    replaceable_key,
)

KEY = Key.generate()
SHAPE = "invalid: an event needs id, pubkey, created_at, kind, tags, content and sig"


def refusal(call: Any, *arguments: Any) -> str:
    with pytest.raises(Refused) as caught:
        call(*arguments)
    return caught.value.text


def test_an_event_keeps_its_seven_fields_and_loses_others() -> None:
    event = KEY.sign(9, "hello", [["h", "room"]])
    assert parse_event({**event, "extra": 1}) == event


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"id": "ABC"}, "invalid: id, pubkey and sig are lower-case hex"),
        ({"id": None}, SHAPE),
        ({"created_at": 1.5}, SHAPE),
        ({"created_at": True}, SHAPE),
        ({"kind": "9"}, SHAPE),
        ({"kind": 70000}, "invalid: kind is out of range"),
        ({"kind": -1}, "invalid: kind is out of range"),
        ({"tags": [[]]}, "invalid: a tag is a list of strings that isn't empty"),
        ({"tags": [["p", 5]]}, "invalid: a tag is a list of strings that isn't empty"),
        ({"tags": ["p"]}, "invalid: a tag is a list of strings that isn't empty"),
        ({"tags": [["t", "a\0b"]]}, "invalid: a tag holds a NUL character"),
        ({"content": "é" * (MAX_CONTENT_BYTES // 2) + "x"}, "invalid: content exceeds 262144 bytes"),
        ({"content": ["x"]}, SHAPE),
    ],
)
def test_a_malformed_event_is_refused_with_the_reason(change: dict[str, Any], text: str) -> None:
    assert refusal(parse_event, {**KEY.sign(9, "x"), **change}) == text


def test_what_is_no_object_is_no_event() -> None:
    assert refusal(parse_event, [1]) == "invalid: an event is a JSON object"
    assert refusal(Filter.parse, [1]) == "invalid: a filter is a JSON object"


def test_content_may_be_as_long_as_the_limit() -> None:
    parse_event({**KEY.sign(9, "x"), "content": "x" * MAX_CONTENT_BYTES})


def test_a_lone_surrogate_is_named_and_its_event_can_be_answered() -> None:
    frame = '["EVENT",{"id":"' + "a" * 64 + '","content":"\\ud800"}]'
    assert refusal(decode, frame) == "invalid: the text holds a lone surrogate, which is not valid Unicode"
    assert lenient_event_id(frame) == "a" * 64


@pytest.mark.parametrize("text", ["", "{", "nonsense", "[1,", "[" * 100_000])
def test_garbage_is_refused_as_no_json(text: str) -> None:
    assert refusal(decode, text).startswith("invalid: not JSON: ")
    assert lenient_event_id(text) is None


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=8))
@settings(max_examples=100)
def test_no_json_value_makes_the_parsers_fail_in_another_way(value: Any) -> None:
    for parse in (parse_event, parse_filters, Filter.parse):
        with pytest.raises(Refused):
            parse(value)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"kinds": [True]}, "invalid: kinds of a filter is a list of numbers from 0 to 65535"),
        ({"kinds": [-1]}, "invalid: kinds of a filter is a list of numbers from 0 to 65535"),
        ({"kinds": 9}, "invalid: kinds of a filter is a list of numbers from 0 to 65535"),
        ({"ids": "abc"}, "invalid: ids of a filter is a list of strings"),
        ({"authors": [1]}, "invalid: authors of a filter is a list of strings"),
        ({"#h": ["a\0"]}, "invalid: #h of a filter is a list of strings"),
        ({"ids": ["a" * 63]}, "invalid: ids of a filter are of 64 lower-case hex digits"),
        ({"authors": ["A" * 64]}, "invalid: authors of a filter are of 64 lower-case hex digits"),
        ({"since": -1}, "invalid: since of a filter is a number that isn't negative"),
        ({"limit": "1"}, "invalid: limit of a filter is a number that isn't negative"),
        ({"search": 1}, "invalid: search of a filter is a string"),
    ],
)
def test_a_malformed_filter_is_refused_with_the_reason(given: dict[str, Any], text: str) -> None:
    assert refusal(parse_filters, [given]) == text


def test_a_request_has_one_to_ten_filters() -> None:
    assert refusal(parse_filters, []) == "invalid: at least one filter is needed"
    assert refusal(parse_filters, [{}] * 11) == "invalid: at most 10 filters"
    assert len(parse_filters([{}] * 10)) == 10


def test_a_limit_is_capped_to_what_one_answer_holds_and_has_a_default() -> None:
    assert Filter.parse({"limit": 10_000}).limit == 1000
    assert Filter.parse({}).limit == 1000
    assert Filter.parse({"limit": 0}).limit == 0


def test_unknown_keys_of_a_filter_do_not_matter() -> None:
    assert Filter.parse({"include_summaries": True, "kinds": [9]}) == Filter.parse({"kinds": [9]})


EVENT: Event = {
    "id": "1" * 64,
    "pubkey": "2" * 64,
    "created_at": 1000,
    "kind": 9,
    "tags": [["h", "room"], ["p", "alice"], ["p", "bob"], ["e"]],
    "content": "Hello World",
    "sig": "3" * 128,
}


@pytest.mark.parametrize(
    ("given", "matches"),
    [
        ({}, True),
        ({"kinds": [9, 7]}, True),
        ({"kinds": [7]}, False),
        ({"kinds": []}, False),
        ({"ids": ["1" * 64]}, True),
        ({"ids": ["4" * 64]}, False),
        ({"authors": ["2" * 64]}, True),
        ({"authors": ["4" * 64]}, False),
        ({"since": 1000, "until": 1000}, True),
        ({"since": 1001}, False),
        ({"until": 999}, False),
        ({"#p": ["bob", "carol"]}, True),
        ({"#p": ["carol"]}, False),
        ({"#p": []}, False),
        ({"#p": ["bob"], "#e": ["x"]}, False),
        ({"#h": ["room"]}, True),
        ({"#h": ["other"]}, False),
        ({"search": "hello"}, True),
        ({"search": "hell"}, False),
        ({"search": ""}, False),
        ({"#emoji": ["x"]}, True),
        ({"search": "bye"}, False),
        ({"limit": 0}, True),
    ],
)
def test_a_filter_matches_as_in_nip_01(given: dict[str, Any], matches: bool) -> None:
    assert Filter.parse(given).matches(EVENT, "room") is matches


def test_h_means_the_channel_that_an_event_is_stored_under_also_without_the_tag() -> None:
    reaction = {**EVENT, "kind": 7, "tags": [["e", "1" * 64]]}
    assert Filter.parse({"#h": ["room"]}).matches(reaction, "room")
    assert not Filter.parse({"#h": ["room"]}).matches({**EVENT, "kind": 44100}, None)


@pytest.mark.parametrize(
    ("filters", "channel"),
    [
        ([{"#h": ["a"]}], "a"),
        ([{"#h": ["a"], "kinds": [9]}, {"#h": ["a"], "kinds": [7]}], "a"),
        ([{"#h": ["a"]}, {"#h": ["b"]}], None),
        ([{"#h": ["a", "b"]}], None),
        ([{"#h": ["a"]}, {}], None),
        ([{}], None),
        ([{"#h": []}], None),
    ],
)
def test_only_a_request_for_one_channel_is_live_in_it(filters: list[Any], channel: str | None) -> None:
    assert live_channel(parse_filters(filters)) == channel


@pytest.mark.parametrize(
    ("kind", "tags", "key"),
    [
        (0, [], ""),
        (3, [], ""),
        (10100, [["d", "ignored"]], ""),
        (30315, [["d", "general"]], "general"),
        (39000, [], ""),
        (9, [["d", "x"]], None),
        (20001, [], None),
    ],
)
def test_which_events_replace_one_another(kind: int, tags: list[list[str]], key: str | None) -> None:
    assert replaceable_key({**EVENT, "kind": kind, "tags": tags}) == key
