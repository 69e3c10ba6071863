"""What a whole team may use, so that equal budgets can be told from unequal ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.budget import of_team, said
from bench.manifest import Limits, load
from tests.planning import project


def team(tmp_path: Path, trial: dict[str, Any], *members: dict[str, Any]) -> Limits:
    home = project(tmp_path)
    data = home.team(trial_budget={"timeout_seconds": 60} | trial)
    for member, budget in zip(data["roster"], members, strict=False):
        member["budget"] = budget
    return of_team(load(home.manifest(data)))


@pytest.mark.parametrize(
    ("trial", "members", "expected"),
    [
        ({}, (), Limits()),
        ({"max_cost_usd": 2.5}, (), Limits(usd_micros=2_500_000)),
        ({}, ({"max_tokens": 10_000}, {"max_tokens": 5_000}), Limits(tokens=20_000)),
        ({"max_calls": 50}, ({"max_calls": 10}, {"max_calls": 10}), Limits(calls=30)),
        ({"max_calls": 20}, ({"max_calls": 10}, {"max_calls": 10}), Limits(calls=20)),
        ({}, ({"max_calls": 10},), Limits()),
    ],
    ids=["none", "trial", "members", "members-less", "trial-less", "a-member-without"],
)
def test_the_least_of_all_caps_holds(
    tmp_path: Path, trial: dict[str, Any], members: tuple[dict[str, Any], ...], expected: Limits
) -> None:
    assert team(tmp_path, trial, *members) == expected


def test_a_budget_is_said_in_time_money_tokens_and_calls() -> None:
    assert said(Limits(2_500_000, 2_000_000, 40), 900) == "900 s, $2.50, 2,000,000 tokens, 40 calls"
    assert said(Limits(), None) == "the tasks' own time, any cost, any number of tokens, any number of calls"
