"""Keeps a conversation within the model's context window: the oldest long tool results are forgotten first. Pure.

Messages and the model's own words stay: they are what a team agreed on. Forgetting costs the prompt cache once, so a
good part is freed at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bench.harness.talk import Item, Reply, Result, Said

CHARS_PER_TOKEN = 3
"""Low for English and code, so that an estimate errs towards too many tokens."""

KEPT_CHARS = 200
"""A tool result of at most so many characters isn't worth forgetting."""

TARGET_SHARE = 0.7
"""What of the room is used after forgetting."""

FORGOTTEN = "[… forgotten to make room: {left_out} characters of this result …]"


class WindowFull(Exception):
    """Nothing is left to forget."""


def fit(conversation: Sequence[Item], *, fixed_chars: int, window_tokens: int, output_tokens: int) -> list[Item]:
    """The conversation such that prompt and answer fit into the window. Raises WindowFull.

    `fixed_chars` is the length of what goes with every request: the system prompt and the tools.
    """
    room = window_tokens - output_tokens
    fitted = list(conversation)
    size = estimate(fitted, fixed_chars)
    if size <= room:
        return fitted
    for index, item in enumerate(fitted):
        if isinstance(item, tuple):
            fitted[index] = shorter = tuple(_forget(result) for result in item)
            size -= (_chars(item) - _chars(shorter)) // CHARS_PER_TOKEN
            if size <= room * TARGET_SHARE:
                return fitted
    if size > room:
        raise WindowFull(f"about {size} tokens of conversation don't fit into {room}")
    return fitted


def estimate(conversation: Sequence[Item], fixed_chars: int) -> int:
    """About how many tokens the next prompt has: what the last answer's usage says, plus what came after it."""
    for index in range(len(conversation) - 1, -1, -1):
        item = conversation[index]
        if isinstance(item, Reply) and item.tokens.total is not None:
            rest = sum(_chars(later) for later in conversation[index + 1 :])
            return item.tokens.total + rest // CHARS_PER_TOKEN
    return (fixed_chars + sum(_chars(item) for item in conversation)) // CHARS_PER_TOKEN


def _forget(result: Result) -> Result:
    if len(result.text) <= KEPT_CHARS:
        return result
    return replace(result, text=FORGOTTEN.format(left_out=len(result.text)))


def _chars(item: Item) -> int:
    if isinstance(item, Said):
        return len(item.text)
    if isinstance(item, Reply):
        return len(item.text) + sum(len(str(call.input)) for call in item.calls)
    return sum(len(result.text) for result in item)
