"""In what the two sides of a comparison differ, and what of it keeps their figures apart. Pure.

A comparison wants one difference, which is the thing under test (public cases 51 and 52): the team, its models or its
harness. The stack, the environment and what a trial may spend are the same for both, or the figures say nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.baseline import MODELLESS
from bench.budget import caps_said, said
from bench.condition import Limits
from bench.records.planrecord import JobPlanRecord

CONDITION = "condition"
UNDER_TEST = ("team", "models", "served by", "harness", "caps of its agents")
HELD_EQUAL = ("stack", "environment", "budget of each trial", "other terms")


@dataclass(frozen=True)
class Term:
    """One thing that is not the same on the two sides."""

    name: str
    a: str
    b: str


def differing(a: Sequence[JobPlanRecord], b: Sequence[JobPlanRecord]) -> list[Term]:
    """What is not the same for the jobs of the one side and for those of the other; of what nobody knows, nothing."""
    if not all(plan.known for plan in (*a, *b)):
        return []
    ours, theirs = _together(a), _together(b)
    return [Term(name, ours[name], theirs[name]) for name in ours if ours[name] != theirs[name]]


def not_comparable(a: JobPlanRecord, b: JobPlanRecord, differing: Sequence[Term]) -> Iterator[str]:
    """Why the figures say nothing about the two teams; nothing where they do."""
    for name, plan in (("A", a), ("B", b)):
        if not plan.known:
            yield f"what {name} measured nobody can tell: its record can't be read"
        elif plan.rehearsal:
            yield f"{name} is a rehearsal: its figures are the script's, and measure no team"
        elif plan.replay:
            yield f"{name} is a replay: a cassette answered in the models' place"
        elif plan.agent in MODELLESS:
            yield f"{name} is Harbor's {plan.agent}, which asks no model"
    yield from (f"{one.name}: not the same on both sides" for one in differing if one.name in HELD_EQUAL)


def cautions(a: JobPlanRecord, b: JobPlanRecord, differing: Sequence[Term]) -> Iterator[str]:
    """What to have in mind with figures that may be compared."""
    if not (a.known and b.known):
        return
    changed = [one.name for one in differing if one.name in UNDER_TEST]
    if len(changed) > 1:
        yield f"more than one thing differs ({', '.join(changed)}): a difference can be put down to none of them alone"
    if not changed and a.condition_sha256 != b.condition_sha256:
        yield "the conditions differ in prompts, prices or settings: `diff` of the two manifests shows in which"
    if otherwise := [model for model in a.prices.keys() & b.prices.keys() if a.prices[model] != b.prices[model]]:
        listed = ", ".join(sorted(otherwise))
        yield f"{listed}: not at the same prices on both sides: `inv reprice` costs both at those of one file"
    if a.concurrent and b.concurrent and a.concurrent != b.concurrent:
        yield f"A played {a.concurrent} trials at a time and B {b.concurrent}: their times say nothing of the teams"
    if a.condition_sha256 == b.condition_sha256 and not differing:
        yield "both sides measured the same: what differs is chance"


def _together(plans: Sequence[JobPlanRecord]) -> dict[str, str]:
    """The terms of all jobs of a side; where they have several values, all of them."""
    each = [_terms(plan) for plan in plans]
    return {name: " + ".join(dict.fromkeys(terms[name] for terms in each)) for name in each[0]}


def _terms(plan: JobPlanRecord) -> Mapping[str, str]:
    seats = plan.roster
    roles = Counter(seat.role for seat in seats)
    caps = Limits(*(plan.budget.get(name) for name in ("usd_micros", "tokens", "calls")))
    return {
        "played by": _played(plan),
        CONDITION: f"{plan.condition} {plan.condition_sha256[:12]}".strip(),
        "team": " + ".join(role if n == 1 else f"{n} {role}" for role, n in roles.items()) or plan.agent or "?",
        "models": ", ".join(dict.fromkeys(seat.model for seat in seats if seat.model)) or "none",
        "served by": ", ".join(plan.served_by) or "nobody",
        "harness": f"Harbor's {plan.agent}" if plan.agent else ", ".join(plan.harnesses) or "?",
        "caps of its agents": "; ".join(f"{s.name} {caps_said(s.limits)}" for s in seats if s.limits != Limits())
        or "none",
        "stack": plan.stack,
        "environment": plan.environment,
        "budget of each trial": said(caps, plan.budget.get("timeout_seconds")) if plan.budget else "?",
        "budget of the job": caps_said(plan.job_budget),
        "other terms": "; ".join(plan.leaderboard.other_terms) or "the tasks' own",
        "dataset": plan.dataset or "tasks of a path",
    }


def _played(plan: JobPlanRecord) -> str:
    if plan.rehearsal:
        return f"the script {plan.rehearsal}"
    if plan.replay:
        return f"the cassette {plan.replay[:12]}"
    return "no model" if plan.agent in MODELLESS else "its models"
