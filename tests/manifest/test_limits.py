"""Limits that contradict each other are refused with both numbers, before a call is paid for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.errors import InvalidInput
from bench.manifest import load
from tests.planning.kit import project


def said(tmp_path: Path, trial: dict[str, Any], lead: dict[str, Any], **generation: Any) -> list[str]:
    home = project(tmp_path)
    data = json.loads(json.dumps(home.team(trial_budget={"timeout_seconds": 60} | trial)))
    data["roster"][0] |= {"budget": lead, "generation": generation}
    data["roster"][1]["generation"] = {"max_output_tokens": 100}
    path = home.manifest(data)
    try:
        load(path)
    except InvalidInput as error:
        return [line.split(": ", 1)[1] for line in str(error).splitlines()]
    return []


def test_a_bound_beyond_what_the_model_can_answer_is_refused_with_both(tmp_path: Path) -> None:
    home = project(tmp_path)
    data = json.loads(json.dumps(home.team()))
    data["roster"][0]["generation"] = {"max_output_tokens": 4097}
    for row in data["prices"].values():
        row["max_output_tokens"] = 4096
    with pytest.raises(
        InvalidInput, match="4097 is more than the 4096 that the model can answer with, by the max_output"
    ):
        load(home.manifest(data))
    data["roster"][0]["generation"] = {"max_output_tokens": 4096}
    condition = load(home.manifest(data))
    assert {price.max_output_tokens for price in condition.prices.values()} == {4096}


@pytest.mark.parametrize(
    ("trial", "lead", "generation", "expected"),
    [
        ({"max_tokens": 9000}, {"max_tokens": 9000}, {"max_output_tokens": 9000}, []),
        ({"max_cost_usd": 0.06144}, {}, {"max_output_tokens": 4096}, []),
        (
            {"max_cost_usd": 0.061},
            {},
            {"max_output_tokens": 4096},
            [
                "trial_budget.max_cost_usd: orch: 0.061 USD is below the 0.06144 USD that one call of "
                "generation.max_output_tokens 4096 may cost: none could be made"
            ],
        ),
        (
            {"max_tokens": 10_000},
            {"max_tokens": 20_000},
            {},
            [
                "roster[0].budget.max_tokens: 20000 is more than trial_budget.max_tokens 10000: "
                "it could never be reached"
            ],
        ),
        (
            {"max_cost_usd": 1},
            {"max_cost_usd": 2.5},
            {},
            ["roster[0].budget.max_cost_usd: 2.5 is more than trial_budget.max_cost_usd 1: it could never be reached"],
        ),
        (
            {},
            {"max_tokens": 1000},
            {"max_output_tokens": 4096},
            ["roster[0].budget.max_tokens: 1000 is below generation.max_output_tokens 4096: no call could be made"],
        ),
        (
            {"max_tokens": 8191},
            {},
            {},
            [
                "trial_budget.max_tokens: orch: 8191 is below the 8192 that an answer may have where "
                "generation.max_output_tokens is not set: no call could be made"
            ],
        ),
        (
            {"max_calls": 2},
            {},
            {},
            ["trial_budget.max_calls: 2 calls are fewer than the 3 agents: one of them could never make any"],
        ),
        (
            {},
            {},
            {"max_output_tokens": 100, "context_window_tokens": 100},
            ["roster[0].generation.max_output_tokens: 100 leaves no room for a prompt in context_window_tokens 100"],
        ),
    ],
)
def test_a_contradiction_is_said_with_both_numbers(
    tmp_path: Path, trial: dict[str, Any], lead: dict[str, Any], generation: dict[str, Any], expected: list[str]
) -> None:
    assert said(tmp_path, trial, lead, **generation) == expected


def test_an_agent_that_waits_for_a_tool_is_not_taken_for_dead(tmp_path: Path) -> None:
    home = project(tmp_path)
    data = json.loads(json.dumps(home.team()))
    for member in data["roster"]:
        member["harness"] = "buzz-agent"
    data["roster"][0]["generation"] = {"extra": {"tool_timeout_secs": 3600, "llm_timeout_secs": 3599}}
    with pytest.raises(InvalidInput) as caught:
        load(home.manifest(data))
    assert str(caught.value).endswith(
        ": roster[0].generation.extra.tool_timeout_secs: 3600 s is not below the 3600 s of silence after which the "
        "turn is cancelled"
    )
    assert len(caught.value.problems) == 1


def test_a_window_is_compacted_before_it_is_full(tmp_path: Path) -> None:
    found = said(tmp_path, {}, {}, context_window_tokens=1000, compact_at_tokens=2000)
    what = "2000 is beyond context_window_tokens 1000: nothing would ever be compacted"
    assert f"roster[0].generation.compact_at_tokens: {what}" in found


def test_what_has_not_the_right_form_is_left_to_the_form(tmp_path: Path) -> None:
    found = said(tmp_path, {"max_tokens": "many"}, {"max_tokens": 5}, max_output_tokens=-1)
    assert [line.split(":")[0] for line in found] == [
        "roster[0].generation.max_output_tokens",
        "trial_budget.max_tokens",
    ]
