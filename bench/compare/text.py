"""A comparison for people and for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from bench.compare.paired import Interval, wilson
from bench.compare.sides import Comparison, Difference, Figures, Side
from bench.costs import TOKEN_CLASSES, Spend, percent, usd
from bench.report.tasktable import aligned

NONE = "–"
UNDECIDED = "no difference observable"


def lines(found: Comparison) -> list[str]:
    """What differs, then each task, then the totals and the difference."""
    shown = ["", *(f"{name}  {_title(side)}" for name, side in (("A", found.a), ("B", found.b)))]
    if found.differing:
        shown += ["", *aligned([("what differs", "A", "B"), *((one.name, one.a, one.b) for one in found.differing)])]
    notes = [f"not comparable: {why}" for why in found.not_comparable] + [f"mind: {what}" for what in found.cautions]
    shown += ["", *notes] if notes else []
    shown += ["", *aligned([*_tasks(found)])]
    shown += [f"  {one.task}: left out, {one.why}" for one in found.left_out]
    shown += ["", *aligned([*_totals(found)])]
    for name, spend in zip("AB", found.besides, strict=True):
        if spend.calls:
            shown.append(f"  {name} spent {_usd(spend)} besides, on replaced attempts and tasks in no pair")
    return [*shown, "", *_verdict(found)]


def _title(side: Side) -> str:
    return " + ".join(dict.fromkeys(job.plan.title(job.directory) for job in side.jobs))


def _tasks(found: Comparison) -> Iterator[tuple[str, ...]]:
    """A row a task; columns of unscored trials only where there are some."""
    unscored = any(total.unscored for total in found.totals)

    def cells(one: Figures) -> tuple[str, ...]:
        return (
            f"{one.passed}/{one.attempts}",
            *([str(one.unscored)] if unscored else []),
            _usd(one.spend, unsure=one.unsure),
        )

    heads = ("passed", *(["unscored"] if unscored else []), "cost")
    yield "task", *(f"{name} {head}" for name in "AB" for head in heads), "A - B"
    for pair in found.pairs:
        rates = pair.a.of_scored, pair.b.of_scored
        gap = NONE if rates[0] is None or rates[1] is None else _points(float(rates[0] - rates[1]))
        yield pair.task, *cells(pair.a), *cells(pair.b), gap


def _totals(found: Comparison) -> Iterator[tuple[str, ...]]:
    number = len(found.pairs)
    yield f"all {number} tasks" if number > 1 else found.pairs[0].task, "A", "B"
    for label, cell in TOTALS.items():
        yield label, *map(cell, found.totals)


def _verdict(found: Comparison) -> Iterator[str]:
    yield f"A - B, mean of {_number(found.of_scored.tasks)}, of scored trials: {_difference(found.of_scored)}"
    if any(total.unscored for total in found.totals):
        yield f"A - B, mean of {_number(found.of_all.tasks)}, unscored ones as failures: {_difference(found.of_all)}"
    yield "intervals: 95 %, of a rate Wilson's over trials, of a difference over tasks (attempts at one task are alike)"


def _difference(one: Difference) -> str:
    if one.mean is None:
        return NONE
    if one.p is None:
        return UNDECIDED
    if one.interval is not None:
        within = f"{_points(one.interval.low)} to {_points(one.interval.high)}"
    else:
        within = "no interval from one task" if one.tasks == 1 else "no interval: all tasks differ by the same"
    ends = f"A better at {one.better}, B at {one.worse}, equal at {one.equal}"
    return f"{_points(one.mean)} points ({within}); {ends}: sign test p = {one.p:.4f}"


def _rate(part: int, whole: int) -> str:
    interval = wilson(part, whole)
    if interval is None:
        return f"0/0 ({NONE})"
    return f"{part}/{whole} ({percent(part / whole)}, {interval.low:.0%} to {interval.high:.0%})"


def _points(share: float) -> str:
    return "0" if not share else f"{share * 100:+.1f}"


def _usd(spend: Spend, *, unsure: bool = False) -> str:
    return f"{usd(spend.cost_usd_micros)}{_mark(spend, unsure=unsure)}"


def _a_pass(one: Figures) -> str:
    micros = one.usd_micros_a_pass
    return NONE if micros is None else f"{usd(micros)}{_mark(one.spend, unsure=one.unsure)}"


def _mark(spend: Spend, *, unsure: bool) -> str:
    return "+?" if spend.unknown_calls or unsure else ""


def _number(tasks: int) -> str:
    return f"{tasks} task{'' if tasks == 1 else 's'}"


def to_json(found: Comparison) -> dict[str, Any]:
    """The whole; rates and differences are shares from -1 to 1, money is in micro-dollars, null is unknown."""
    return {
        "a": _side(found.a) | _figures(found.totals[0]) | {"besides_usd_micros": found.besides[0].cost_usd_micros},
        "b": _side(found.b) | _figures(found.totals[1]) | {"besides_usd_micros": found.besides[1].cost_usd_micros},
        "differing": [asdict(one) for one in found.differing],
        "not_comparable": list(found.not_comparable),
        "cautions": list(found.cautions),
        "tasks": [{"task": one.task, "a": _figures(one.a), "b": _figures(one.b)} for one in found.pairs],
        "left_out": [asdict(one) for one in found.left_out],
        "difference": {"of_scored": asdict(found.of_scored), "unscored_as_failures": asdict(found.of_all)},
    }


def _side(side: Side) -> dict[str, Any]:
    plan = side.record.plan
    return {
        "jobs": [str(job.directory) for job in side.jobs],
        "condition": plan.condition,
        "condition_sha256": plan.condition_sha256,
    }


def _figures(one: Figures) -> dict[str, Any]:
    return {
        "passed": one.passed,
        "scored": one.scored,
        "attempts": one.attempts,
        "of_scored": _interval(one.passed, one.scored),
        "unscored_as_failures": _interval(one.passed, one.attempts),
        "cost_usd_micros": one.spend.cost_usd_micros,
        "cost_usd_micros_a_pass": one.usd_micros_a_pass,
        "calls": one.spend.calls,
        "unknown_calls": one.spend.unknown_calls,
        "unsure": one.unsure,
        "tokens": {name.removesuffix("_tokens"): getattr(one.spend, name) for name in TOKEN_CLASSES},
        "median_s": one.median_s,
    }


def _interval(part: int, whole: int) -> dict[str, float] | None:
    interval: Interval | None = wilson(part, whole)
    return None if interval is None else {"rate": part / whole} | asdict(interval)


def _class(name: str) -> Callable[[Figures], str]:
    return lambda one: f"{getattr(one.spend, name):,}"


TOTALS: Mapping[str, Callable[[Figures], str]] = {
    "passed of scored trials": lambda one: _rate(one.passed, one.scored),
    "passed, unscored ones as failures": lambda one: _rate(one.passed, one.attempts),
    "cost": lambda one: _usd(one.spend, unsure=one.unsure),
    "cost for each pass": _a_pass,
    "calls": lambda one: f"{one.spend.calls:,}",
    "tokens": lambda one: f"{one.spend.tokens:,}{_mark(one.spend, unsure=one.unsure)}",
    "  fresh input": _class("input_tokens"),
    "  cache read": _class("cache_read_tokens"),
    "  cache write": _class("cache_write_tokens"),
    "  output": _class("output_tokens"),
    "median time of a scored trial": lambda one: NONE if one.median_s is None else f"{one.median_s:.1f} s",
}
"""The rows of the totals, and what a side has in each."""
