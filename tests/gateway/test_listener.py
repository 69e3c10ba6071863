"""An agent's requests as a cassette compares them: the same in two runs, and nothing looked at twice."""

from __future__ import annotations

from typing import Any

from bench.gateway.listener import Listener
from bench.gateway.normalise import Names
from bench.gateway.redaction import Redaction

EVENT, OTHER = "ab" * 32, "c4" * 32


def user(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text, **more}]}


def listener(*secrets: str) -> Listener:
    return Listener(Names({}), Redaction(secrets))


def test_two_runs_ask_the_same() -> None:
    def asked(event: str, at: str, tool: str) -> list[Any]:
        hears = listener()
        task = user(f"Event ID: {event} at {at}")
        used = {"role": "assistant", "content": [{"type": "tool_use", "id": tool, "name": "t", "input": {}}]}
        result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": tool, "content": f"took {at}"}]}
        return [
            hears.listen({"model": "m", "messages": [task]}),
            hears.listen({"model": "m", "messages": [task, used, result]}),
        ]

    assert asked(EVENT, "10:00:00", "toolu_1") == asked(OTHER, "23:59:59", "toolu_99")


def test_a_time_that_is_repeated_with_the_conversation_counts_once() -> None:
    names = Names({})
    hears = Listener(names, Redaction(()))
    first, second = user("at 10:00:00"), user("at 10:00:05")
    hears.listen({"messages": [first]})
    hears.listen({"messages": [first, second]})
    assert names.said("10:00:05") == "⟨time 2⟩"


def test_cache_marks_are_left_out_wherever_they_are() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    marked = {"system": [{"type": "text", "text": "s", **mark}], "messages": [user("a", **mark)]}
    plain = {"system": [{"type": "text", "text": "s"}], "messages": [user("a")]}
    assert listener().listen(marked) == plain
    assert listener().listen(plain) == plain


def test_of_data_only_its_digest_is_kept() -> None:
    image = "iVBORw0KGgo" * 500
    named = listener().listen({"messages": [user("a", data=image)]})["messages"][0]["content"][0]["data"]
    assert named.startswith("⟨data ")
    assert len(named) < 80
    assert named == listener().listen({"messages": [user("a", data=image)]})["messages"][0]["content"][0]["data"]


def test_secrets_are_out_before_anything_is_kept() -> None:
    assert listener("token-of-an-agent").listen({"messages": [user("env: token-of-an-agent")]}) == {
        "messages": [user("env: [secret]")]
    }


def test_openais_responses_are_heard_too() -> None:
    hears = listener()
    body = {"model": "m", "input": [{"type": "function_call_output", "call_id": "call_7", "output": EVENT}]}
    assert hears.listen(body)["input"] == [{"type": "function_call_output", "call_id": "⟨call 1⟩", "output": "⟨id 1⟩"}]
