"""What a trial of a task with steps is worth, from what each of its steps is worth. Pure.

Each step is classified by itself (`outcome.py`), then the trial, as Harbor combines rewards (HARBOR.md 4): the
mean of the steps that have one, or the last step's. Two things Harbor leaves open are decided here. A step that failed
without a reward counts as 0, where Harbor would leave it out of the mean. And a trial that ended before its last step
(`min_reward`) has not passed, whatever the steps before it are worth.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bench.costs import NOTHING, Spend
from bench.printable import one_line
from bench.scoring.outcome import Facts, Outcome, dig, proved_cause


@dataclass(frozen=True)
class StepOutcome:
    """One step that a trial came to, by its name. `seconds` is how long its team had it, judging left out."""

    name: str
    outcome: Outcome
    seconds: float = 0.0
    spend: Spend = NOTHING


def step_parts(result: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Each step of a trial's parsed result.json, by name, in order; none for a task without steps."""
    listed = result.get("step_results")
    steps = [step for step in listed if isinstance(step, dict)] if isinstance(listed, list) else []
    return [(str(step.get("step_name")), step) for step in steps]


def told(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What our agent said (`metadata["buzzbench"]`) of a trial, or of each of its task's steps, in order."""
    parts = [result, *(part for _, part in step_parts(result))]
    said = (dig(part, "agent_result", "metadata", "buzzbench") for part in parts)
    return [found for found in said if isinstance(found, dict)]


def set_up_later(facts: Facts) -> Facts:
    """The facts of a step after one in which the team had control.

    That such a step can't begin may be the team's doing, so it proves nothing of anybody else; but what a verifier
    finds there without the team having played is no score of it.
    """
    never_played = not facts.agents_had_control
    return replace(facts, agents_had_control=True, set_up_after_control=True, never_played=never_played)


def combined(result: Mapping[str, Any], own: Facts, steps: Sequence[StepOutcome]) -> Outcome:
    """The trial's outcome from those of the steps that it came to, one at least.

    `own` is what is known of it as a whole. It has no score where a cause is proved for the whole, or where one of the
    steps has none.
    """
    labels = tuple(dict.fromkeys((*own.labels, *(label for step in steps for label in step.outcome.labels))))
    cause = proved_cause(replace(own, agents_had_control=True))
    if cause is None:
        cause = next((f"step {s.name}: {s.outcome.reason}" for s in steps if s.outcome.outcome == "unscored"), None)
    if cause is not None:
        return Outcome("unscored", None, one_line(cause), labels)
    strategy, of = _plan(result)
    rewards = [step.outcome.reward or 0.0 for step in steps]
    reward = rewards[-1] if strategy == "final" else sum(rewards) / len(rewards)
    left = (of or len(steps)) - len(steps)
    if reward == 1.0 and not left:
        return Outcome("passed", reward, "", labels)
    return Outcome("failed", reward, "; ".join(_reasons(steps, left)), labels)


def _reasons(steps: Sequence[StepOutcome], left: int) -> Iterator[str]:
    failed = next((step for step in steps if step.outcome.outcome == "failed"), None)
    if failed is not None:
        yield f"step {failed.name}: {failed.outcome.reason}"
    if left:
        yield f"it ended with step {steps[-1].name}, {left} before the last"


def _plan(result: Mapping[str, Any]) -> tuple[str, int | None]:
    """How the rewards are combined, and how many steps the task has: our agent says so in each step's metadata."""
    for ours in told(result):
        if isinstance(step := ours.get("step"), dict):
            return str(step.get("strategy")), step.get("of") if isinstance(step.get("of"), int) else None
    return "mean", None
