"""A conversation stays within its window, and what a team agreed on is never forgotten."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.harness.context import WindowFull, estimate, fit
from bench.harness.talk import Call, Item, Reply, Result, Said
from bench.prices import Tokens


def reply(total: int = 0, calls: int = 1) -> Reply:
    made = tuple(Call(f"c{n}", "shell", {}) for n in range(calls))
    return Reply("ok", "", made, Tokens(total, 0, 0, 0), "tool_use", ())


def results(*lengths: int) -> tuple[Result, ...]:
    return tuple(Result(f"c{n}", "x" * length) for n, length in enumerate(lengths))


def test_what_fits_is_left_alone() -> None:
    talk: list[Item] = [Said("hello"), reply(50), results(30)]
    assert fit(talk, fixed_chars=100, window_tokens=200, output_tokens=100) == talk


def test_the_oldest_long_results_are_forgotten_first() -> None:
    talk: list[Item] = [Said("task"), reply(), results(3000), reply(), results(3000), reply(2200), results(30)]
    fitted = fit(talk, fixed_chars=0, window_tokens=2100, output_tokens=100)
    assert fitted[2] == (
        replace(results(3000)[0], text="[… forgotten to make room: 3000 characters of this result …]"),
    )
    assert fitted[4:] == talk[4:]
    assert fitted[0] == Said("task")


def test_a_conversation_that_nothing_can_shorten_is_full() -> None:
    with pytest.raises(WindowFull, match="about 1000 tokens of conversation don't fit into 900"):
        fit([Said("x" * 3000)], fixed_chars=0, window_tokens=1000, output_tokens=100)


def test_the_estimate_starts_from_what_the_last_call_used() -> None:
    assert estimate([Said("x" * 9000), reply(500), results(30)], fixed_chars=9000) == 510
    assert estimate([Said("x" * 90)], fixed_chars=90) == 60


def test_an_answer_without_usage_is_no_ground_for_an_estimate() -> None:
    unknown = replace(reply(), tokens=Tokens(None, 0, 0, None))
    assert estimate([Said("x" * 60), unknown], fixed_chars=0) > 19
