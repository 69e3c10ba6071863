"""How many tools an answer calls, whichever dialect it is in."""

from __future__ import annotations

from typing import Any

import pytest

from bench.gateway.answers import tool_calls


@pytest.mark.parametrize(
    ("answer", "number"),
    [
        ({"content": [{"type": "text", "text": "so"}]}, 0),
        ({"content": [{"type": "text", "text": "so"}, {"type": "tool_use"}, {"type": "tool_use"}]}, 2),
        ({"choices": [{"message": {"content": "so"}}]}, 0),
        ({"choices": [{"message": {"content": None, "tool_calls": [{}]}}]}, 1),
        ({"output": [{"type": "reasoning"}, {"type": "function_call"}, {"type": "message"}]}, 1),
        ({"content": "a text"}, None),
        ([], None),
        ({"choices": [None]}, None),
    ],
)
def test_tool_calls_are_counted_and_what_has_another_form_is_unknown(answer: Any, number: int | None) -> None:
    assert tool_calls(answer) == number
