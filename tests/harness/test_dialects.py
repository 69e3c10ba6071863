"""The two wires: requests in the form that Buzz's own agent sends, answers read into one form."""

from __future__ import annotations

from typing import Any

import pytest

from bench.harness import toolspecs
from bench.harness.dialects import WIRES
from bench.harness.talk import Ask, Call, Generation, Item, Result, Said
from bench.prices import Tokens

ANTHROPIC_ANSWER: dict[str, Any] = {
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "t1", "name": "shell", "input": {"command": "ls"}},
    ],
    "stop_reason": "tool_use",
    "usage": {
        "input_tokens": 10,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 20,
        "output_tokens": 7,
    },
}
OPENAI_CALL = {"id": "t1", "type": "function", "function": {"name": "shell", "arguments": '{"command": "ls"}'}}
OPENAI_ANSWER: dict[str, Any] = {
    "choices": [
        {
            "message": {"role": "assistant", "content": "I look.", "tool_calls": [OPENAI_CALL]},
            "finish_reason": "tool_calls",
        }
    ],
    "usage": {"prompt_tokens": 110, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 100}},
}


def ask(conversation: list[Item], effort: str | None = None) -> Ask:
    return Ask(Generation("m", 4096, effort), "be good", conversation, toolspecs.offered("worker"))


def test_anthropics_request_caches_the_system_prompt_and_the_last_two_messages() -> None:
    wire = WIRES["anthropic"]
    reply = wire.decode(ANTHROPIC_ANSWER)
    body = wire.encode(ask([Said("do it"), reply, (Result("t1", "a b", is_error=True),)]))
    mark = {"cache_control": {"type": "ephemeral"}}
    assert body["system"] == [{"type": "text", "text": "be good", **mark}]
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "do it"}]},
        {
            "role": "assistant",
            "content": [*ANTHROPIC_ANSWER["content"][:2], {**ANTHROPIC_ANSWER["content"][2], **mark}],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "t1",
                    "content": [{"type": "text", "text": "a b"}],
                    "is_error": True,
                    **mark,
                }
            ],
        },
    ]
    assert (body["model"], body["max_tokens"], "stream" in body) == ("m", 4096, False)
    assert body["tools"][0].keys() == {"name", "description", "input_schema"}
    assert wire.headers("T") == {"x-api-key": "T", "anthropic-version": "2023-06-01"}


def test_asking_twice_leaves_no_marks_in_the_conversation() -> None:
    wire = WIRES["anthropic"]
    talk: list[Item] = [Said("do it"), wire.decode(ANTHROPIC_ANSWER), (Result("t1", "a"),)]
    assert wire.encode(ask(talk)) == wire.encode(ask(talk))
    assert "cache_control" not in ANTHROPIC_ANSWER["content"][2]


def test_openais_request_replays_calls_and_gives_results_their_own_role() -> None:
    wire = WIRES["openai"]
    body = wire.encode(ask([Said("do it"), wire.decode(OPENAI_ANSWER), (Result("t1", "a b"),)]))
    assert body["messages"] == [
        {"role": "system", "content": "be good"},
        {"role": "user", "content": "do it"},
        {"role": "assistant", "content": "I look.", "tool_calls": [OPENAI_CALL]},
        {"role": "tool", "tool_call_id": "t1", "content": "a b"},
    ]
    assert (body["stream"], body["max_completion_tokens"], body["tool_choice"]) == (False, 4096, "auto")
    assert body["tools"][0]["function"].keys() == {"name", "description", "parameters"}
    assert wire.headers("T") == {"authorization": "Bearer T"}


@pytest.mark.parametrize(
    ("dialect", "answer", "tokens"),
    [
        ("anthropic", ANTHROPIC_ANSWER, Tokens(10, 100, 20, 7)),
        ("openai", OPENAI_ANSWER, Tokens(10, 100, 0, 7)),
    ],
)
def test_answers_of_both_are_read_into_one_form(dialect: str, answer: dict[str, Any], tokens: Tokens) -> None:
    reply = WIRES[dialect].decode(answer)
    assert (reply.text, reply.calls, reply.tokens) == ("I look.", (Call("t1", "shell", {"command": "ls"}),), tokens)


def test_cache_writes_for_an_hour_are_told_apart() -> None:
    usage = {**ANTHROPIC_ANSWER["usage"], "cache_creation": {"ephemeral_1h_input_tokens": 15}}
    assert WIRES["anthropic"].decode({**ANTHROPIC_ANSWER, "usage": usage}).tokens == Tokens(10, 100, 20, 7, 15)


@pytest.mark.parametrize(("dialect", "answer"), [("anthropic", ANTHROPIC_ANSWER), ("openai", OPENAI_ANSWER)])
def test_usage_that_is_not_reported_is_unknown_not_zero(dialect: str, answer: dict[str, Any]) -> None:
    reply = WIRES[dialect].decode({**answer, "usage": None})
    assert (reply.tokens.input, reply.tokens.output) == (None, None)


def test_effort_is_sent_where_a_condition_sets_it() -> None:
    assert WIRES["openai"].encode(ask([Said("x")], "high"))["reasoning_effort"] == "high"
    body = WIRES["anthropic"].encode(ask([Said("x")], "high"))
    assert (body["thinking"], body["output_config"]) == ({"type": "adaptive"}, {"effort": "high"})
    assert "thinking" not in WIRES["anthropic"].encode(ask([Said("x")]))


@pytest.mark.parametrize(("arguments", "why"), [("{", "not JSON"), ("[1]", "not a JSON object")])
def test_arguments_that_are_no_object_are_told_to_the_model(arguments: str, why: str) -> None:
    call = {**OPENAI_CALL, "function": {"name": "shell", "arguments": arguments}}
    answer = {"choices": [{"message": {"content": None, "tool_calls": [call]}}]}
    (read,) = WIRES["openai"].decode(answer).calls
    assert why in read.malformed


def test_an_empty_answer_can_be_replayed() -> None:
    reply = WIRES["anthropic"].decode({"content": [], "stop_reason": "end_turn"})
    assert WIRES["anthropic"].encode(ask([Said("x"), reply, Said("y")]))["messages"][1]["content"]
