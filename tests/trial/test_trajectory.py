"""The ATIF trajectory: Harbor takes it, counts every call once, and no reference leads nowhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from harbor.models.trajectories import Trajectory
from harbor.utils.trajectory_utils import compute_model_usage
from harbor.utils.trajectory_validator import TrajectoryValidator

from bench.condition import Agent, Condition
from bench.harness.builtin import Step, Use
from bench.harness.talk import Call, Result
from bench.prices import UNKNOWN, Price, Tokens
from bench.trial import trajectory
from bench.trial.trajectory import Played

AT = "2026-11-30T12:00:00.000+00:00"


def agent(name: str, kind: Any, model: str) -> Agent:
    return Agent(name, name.split("-")[0], 1, kind, "role", "builtin", "e", model, "prompt")


ORCH, WORKER = agent("orch", "orchestrator", "big"), agent("worker-1", "worker", "small")
PRICES = {"big": Price(3_000_000, 300_000, 3_750_000, 15_000_000), "small": Price(1_000_000, 0, 0, 5_000_000)}
CONDITION = Condition("duo", (ORCH, WORKER), PRICES, 60, Path("m.yaml"), "{}", "f" * 64)


def steps(tokens: Tokens) -> list[Step]:
    use = Use(Call("c1", "shell", {"command": "ls"}), Result("c1", "exit code: 0"))
    return [Step(AT, "do it"), Step(AT, "I do", "thought", (use,), tokens), Step(AT, "ok", tokens=tokens)]


def message(author: str, text: str, *mentions: str) -> dict[str, Any]:
    return {
        "id": "e" * 64,
        "author": author,
        "channel": "c",
        "text": text,
        "mentions": list(mentions),
        "created_at": 1_700_000_000,
    }


def build(played: list[Played], messages: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return trajectory.build(
        session="t__1",
        version="0.1",
        condition=CONDITION,
        instruction="the task",
        messages=messages or [],
        user="user",
        played=played,
    )


BOTH = [Played(ORCH, steps(Tokens(10, 100, 5, 7))), Played(WORKER, steps(Tokens(20, 0, 0, 3)))]
SAID = [
    message("user", "the task", "orch"),
    message("orch", "please", "worker-1"),
    message("worker-1", "REPORT", "orch"),
    message("user", "meddling"),
    message("f" * 64, "a stranger"),
]


def test_harbors_validator_takes_it() -> None:
    validator = TrajectoryValidator()
    built = build(BOTH, SAID)
    assert validator.validate(built), validator.get_errors()
    assert trajectory.dangling(built) == []
    assert [step["source"] for step in built["steps"]] == ["user", "agent", "agent", "agent", "user", "agent"]
    assert built["steps"][2]["message"] == "orch → worker-1: please"


def test_harbor_counts_each_call_once_and_by_model() -> None:
    usage = compute_model_usage(Trajectory.model_validate(build(BOTH, SAID)))
    assert {model: (u.n_input_tokens, u.n_cache_tokens, u.n_output_tokens) for model, u in usage.items()} == {
        "big": (230, 200, 14),
        "small": (40, 0, 6),
    }


def test_totals_hold_the_members_calls_and_their_price() -> None:
    totals = build(BOTH)["final_metrics"]
    orch_usd_micros = 30 + 30 + 19 + 105
    worker_usd_micros = 20 + 15
    assert totals["total_prompt_tokens"] == 270
    assert totals["total_cost_usd"] == pytest.approx(2 * (orch_usd_micros + worker_usd_micros) / 1e6, abs=2e-6)


def test_an_unknown_cost_makes_no_total() -> None:
    totals = build([Played(ORCH, steps(UNKNOWN)), BOTH[1]])["final_metrics"]
    assert "total_cost_usd" not in totals


def test_a_member_that_was_never_mentioned_still_has_a_valid_trajectory() -> None:
    built = build([BOTH[0], Played(WORKER, [])])
    assert TrajectoryValidator().validate(built)
    assert built["subagent_trajectories"][1]["steps"][0]["message"] == "was never mentioned"


def test_a_reference_to_nothing_is_found() -> None:
    built = build(BOTH, SAID)
    del built["subagent_trajectories"][1]
    assert trajectory.dangling(built) == ["worker-1", "worker-1"]
