"""A job's spend for people and for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

from bench.costs import TOKEN_CLASSES, percent, usd
from bench.spend.sums import Cap, JobSpend, StepSpend, TrialSpend
from bench.spend.tally import Used

MOST_TRIALS, MOST_CAPS = 20, 5
"""How many are shown to people: the dearest, and the nearest. Programs get all."""

NEAR = 0.8
"""From this part of a cap on it is called near."""

COLUMNS = ("fresh", "cache read", "cache write", "output", "cost")
UNITS: Mapping[str, Callable[[int], str]] = {
    "usd_micros": usd,
    "tokens": lambda n: f"{n:,} tokens",
    "calls": lambda n: f"{n:,} calls",
}


def lines(job: JobSpend) -> list[str]:
    """A table by role, agent, model, step and trial, then the caps, then what agents themselves said."""
    dearest = sorted(job.trials.items(), key=lambda item: _dear(item[1].used))[:MOST_TRIALS]
    trials = {f"{name} ({trial.state})": trial.used for name, trial in dearest}
    steps = {f"{name} of {task}": step.used for (task, name), step in job.steps.items()}
    sections = {"role": job.roles, "agent": job.agents, "model": job.models, "step": steps, "trial": trials}
    shown = ["", headline(job), "", *_table(sections, job)]
    if len(job.trials) > MOST_TRIALS:
        shown.append(f"the {MOST_TRIALS} dearest of {len(job.trials)} trials are shown; --json has all")
    return [*shown, *_caps(job.caps), *_unknown(job), *_self_reports(job.trials)]


def _dear(used: Used) -> tuple[int, int]:
    return -used.spend.cost_usd_micros, -used.spend.tokens


def headline(job: JobSpend) -> str:
    """One line: which job, what it asked, how far it is, what it used, and its nearest cap."""
    kind = f" ({job.plan.unasked})" if job.plan.unasked else ""
    of = f"/{job.planned_trials}" if job.planned_trials else ""
    spend, nearest = job.total.spend, next(iter(job.caps), None)
    parts = [
        f"{job.plan.title(job.directory)}{kind}",
        f"{job.ended}{of} trials ended{', running' if job.running else ''}",
        f"{spend.calls:,} call{'' if spend.calls == 1 else 's'}",
        f"{spend.tokens:,}{_mark(job.total)} tokens",
        f"{usd(spend.cost_usd_micros)}{_mark(job.total)}",
    ]
    if nearest is not None:
        parts.append(f"nearest cap: {_cap(nearest)}")
    return "  ".join(parts)


def to_json(job: JobSpend) -> dict[str, Any]:
    """The whole, with integers: micro-dollars and tokens; null is unknown."""
    return {
        "job": job.plan.job,
        "directory": str(job.directory),
        "running": job.running,
        "rehearsal": job.plan.rehearsal is not None if job.plan.known else None,
        "replay": job.plan.replay,
        "planned_trials": job.planned_trials,
        "ended_trials": job.ended,
        "total": _used(job.total),
        "roles": _all(job.roles),
        "agents": _all(job.agents),
        "models": _all(job.models),
        "steps": [{"task": task, "step": name} | _step(step) for (task, name), step in job.steps.items()],
        "trials": {
            name: {
                "task": trial.task,
                "state": trial.state,
                **_used(trial.used),
                "agents": _all(trial.agents),
                "steps": {name: _step(step) for name, step in trial.steps.items()},
                "self_report": trial.self_report,
            }
            for name, trial in job.trials.items()
        },
        "caps": [{**asdict(cap), "part": None if cap.part is None else round(cap.part, 4)} for cap in job.caps],
        "warnings": list(job.warnings),
    }


def _all(groups: Mapping[str, Used]) -> dict[str, dict[str, Any]]:
    return {name: _used(used) for name, used in groups.items()}


def _step(step: StepSpend) -> dict[str, Any]:
    """A step's sums, and how long the team had each time that it came to it, in seconds."""
    return _used(step.used) | {"seconds": [round(seconds, 3) for seconds in step.seconds]}


def _used(used: Used) -> dict[str, Any]:
    charged = {"charged_usd_micros": used.charged_usd_micros, "charged_tokens": used.charged_tokens}
    cut_off = {"open_calls": used.open_calls, "open_usd_micros": used.open_usd_micros, "open_tokens": used.open_tokens}
    return {**asdict(used.spend), "unsure": used.unsure, "refused_calls": used.refused, **charged, **cut_off}


def _table(sections: Mapping[str, Mapping[str, Used]], job: JobSpend) -> list[str]:
    """A row for each name of each section, below its title, and one for all, in the same columns."""
    unknown = ["unknown"] if job.total.spend.unknown_calls else []
    times = {f"{name} of {task}": _time(step.seconds) for (task, name), step in job.steps.items()}
    rows: list[tuple[str, ...]] = [("", "calls", *unknown, *COLUMNS, *(["median s"] if times else []))]

    def row(title: str, used: Used, time: str = "") -> None:
        calls = (f"{used.spend.calls:,}", *([f"{used.spend.unknown_calls:,}"] if unknown else []))
        rows.append((title, *calls, *_cells(used), *([time] if times else [])))

    for what, section in ((what, section) for what, section in sections.items() if section):
        rows.append((what,))
        for name, used in section.items():
            row(f"  {name}", used, times.get(name, "") if what == "step" else "")
    row("all", job.total)
    widths = [max(len(row[column]) for row in rows if column < len(row)) for column in range(len(rows[0]))]
    shown = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows]
    legend = ["", "median s: how long a team had the step, in trials that have ended"] if times else []
    return [*shown, *legend, ""]


def _time(seconds: Sequence[float]) -> str:
    return f"{median(seconds):.1f}" if seconds else "–"


def _cells(used: Used) -> tuple[str, ...]:
    """A row's tokens and cost; `+?` marks a sum that some call is missing from."""
    tokens = (f"{getattr(used.spend, name):,}{_mark(used)}" for name in TOKEN_CLASSES)
    return (*tokens, f"{usd(used.spend.cost_usd_micros)}{_mark(used)}")


def _mark(used: Used) -> str:
    return "+?" if used.spend.unknown_calls or used.unsure else ""


def _caps(caps: Sequence[Cap]) -> Iterator[str]:
    if not caps:
        yield "no caps hold"
        return
    yield "nearest caps"
    for cap in caps[:MOST_CAPS]:
        part = cap.part or 0
        note = "  reached" if part >= 1 else "  near" if part >= NEAR else ""
        yield f"  {_cap(cap)}{note}"
    if len(caps) > MOST_CAPS:
        yield f"  … and {len(caps) - MOST_CAPS} more; --json has all"


def _cap(cap: Cap) -> str:
    """`worker-1 in split__abc: $0.4500 of $0.6000 (75%)`."""
    who = f"{cap.agent} in {cap.name}" if cap.agent else cap.name
    show = UNITS[cap.unit]
    if cap.charged is None or cap.part is None:
        return f"{who}: an unknown part of {show(cap.cap)}"
    return f"{who}: {show(cap.charged)} of {show(cap.cap)} ({percent(cap.part)})"


def _unknown(job: JobSpend) -> Iterator[str]:
    total = job.total
    calls = total.spend.unknown_calls - total.open_calls
    if calls:
        yield (
            f"{calls} call{' has' if calls == 1 else 's have'} no full report (marked +?): the caps count "
            "what each had reserved"
        )
    if total.open_calls:
        yield _open(total, running=job.running)
    if total.refused:
        more = "1 more call was" if total.refused == 1 else f"{total.refused:,} more calls were"
        yield f"{more} refused by the gateway, and never went out"


def _open(total: Used, *, running: bool) -> str:
    """Of calls that have no end: they may have been answered, and paid, all the same."""
    one = total.open_calls == 1
    state = "under way" if running else "cut off with the gateway or the machine, and may have been paid"
    money, tokens = total.open_usd_micros, total.open_tokens
    bounds = ", ".join(
        [
            "an unknown cost" if money is None else usd(money),
            "an unknown number of tokens" if tokens is None else f"{tokens:,} tokens",
        ]
    )
    said = f"{total.open_calls} call{' is' if one else 's are'} {state} (marked +?): the caps count"
    return f"{said} {'its bound' if one else 'their bounds'}, {bounds}"


def _self_reports(trials: Mapping[str, TrialSpend]) -> Iterator[str]:
    """Agents whose own count is missing, or more than 2 % away (public case 23)."""
    for name, trial in trials.items():
        for agent, facts in trial.self_report.items():
            metered = f"{_number(facts, 'metered_input_tokens')} in and {_number(facts, 'metered_output_tokens')} out"
            if facts.get("verdict") == "missing":
                yield f"{agent} in {name}: its self-report is missing; the gateway counted {metered}"
            elif facts.get("verdict") == "differs":
                said = f"{_number(facts, 'input_tokens')} in and {_number(facts, 'output_tokens')} out"
                yield f"{agent} in {name}: its self-report differs: {said}; the gateway counted {metered}"


def _number(facts: Mapping[str, Any], name: str) -> str:
    value = facts.get(name)
    return f"{value:,}" if isinstance(value, int) else "an unknown number"
