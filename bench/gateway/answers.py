"""What the gateway notes of an answer besides its usage: how many tools it calls. None ends an agent's turn."""

from __future__ import annotations

from typing import Any


def tool_calls(answer: Any) -> int | None:
    """How many tool calls a whole answer's parsed body holds, in any dialect; None where that can't be told."""
    try:
        if "choices" in answer:
            numbers = [len(choice["message"].get("tool_calls") or ()) for choice in answer["choices"]]
        elif "output" in answer:
            numbers = [int(item["type"] == "function_call") for item in answer["output"]]
        else:
            numbers = [int(block["type"] == "tool_use") for block in answer["content"]]
    except (KeyError, TypeError, AttributeError):
        return None
    return sum(numbers)
