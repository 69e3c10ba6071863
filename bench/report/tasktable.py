"""The table of a job's result: a row a task, one for each of its steps, and one for all. It is made for 100 columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from bench import costs
from bench.costs import Spend, usd
from bench.prices import USD_MICROS
from bench.records.job import JobRecord, TrialRecord
from bench.scoring.outcome import Outcome

CAPPED = frozenset({"budget", "agent_budget"})
"""The labels of trials in which a cap cut off the team, or one of its agents (public case 26)."""

EXACT = 10_000
"""Tokens below this are shown to the last one; more of them as people say them: 44.2k, 1.23M. `--json` has all."""

LEGEND = (
    "fresh: tokens of input, cache writes and output; cached: tokens read from a cache",
    "$/pass: cost of all trials for each that passed; median s: a scored trial's time",
)
OF_STEPS = "median s of a step: how long the team had it, without judging"


def is_capped(outcome: Outcome) -> bool:
    """Whether a cap cut off the team, or one of its agents."""
    return not CAPPED.isdisjoint(outcome.labels)


def fresh_tokens(spend: Spend) -> int:
    """Those that no cache had been asked for: they cost their full price, or more."""
    return spend.tokens - spend.cache_read_tokens


def per_pass(spend: Spend, passed: int) -> int | None:
    """Micro-dollars of all trials for each that passed, rounded; None where none did."""
    return round(spend.cost_usd_micros / passed) if passed else None


def median_s(parts: Iterable[TrialRecord]) -> float | None:
    """The median of the scored trials' seconds; None where there are none."""
    times = [trial.seconds for trial in parts if trial.is_scored and trial.seconds]
    return median(times) if times else None


@dataclass(frozen=True)
class _Part:
    """What a row counts: a trial, or a trial's step."""

    outcome: Outcome
    seconds: float
    spend: Spend
    unsure: bool


def lines(job: JobRecord) -> list[str]:
    """The table. Columns of their own for trials without a score or cut off, if any are.

    Planned trials that left nothing are attempts without a score, as in the rates and in `inv compare`.
    """
    org = _common_org(job)
    outcomes = [trial.outcome for trial in job.trials]
    has = {"unscored": job.missing > 0 or any(map(_is_unscored, outcomes)), "capped": any(map(is_capped, outcomes))}
    columns = ["passed", *(name for name, some in has.items() if some)]
    columns += ["calls", "fresh", "cached", "cost", "$/pass", "median s"]
    rows = [(f"task ({org})" if org else "task", *columns)]
    missing = job.missing_of
    tasks = dict.fromkeys([*(trial.task for trial in job.trials), *missing])
    for task in tasks:
        trials = [trial for trial in job.trials if trial.task == task]
        left = missing.get(task, 0)
        rows.append(_row(task.removeprefix(org), map(_whole, trials), columns, torn=job.is_torn, missing=left))
        for name in dict.fromkeys(step.name for trial in trials for step in trial.steps):
            rows.append(_row(f"  step {name}", _steps(trials, name), columns, torn=job.is_torn))
    if len(tasks) > 1 or job.missing > sum(missing.values()):
        rows.append(_row("all", map(_whole, job.trials), columns, torn=job.is_torn, missing=job.missing))
    return aligned(rows)


def legend(jobs: Iterable[JobRecord]) -> list[str]:
    """What the columns of these jobs' tables mean, as far as there is anything in them."""
    trials = [trial for job in jobs for trial in job.trials]
    return [*LEGEND, *([OF_STEPS] if any(trial.steps for trial in trials) else [])] if trials else []


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """A table's lines: the first row is its head, the first column stands left, all others right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    shown = []
    for row in rows:
        cells = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        shown.append("  ".join([row[0].ljust(widths[0]), *cells]))
    return [shown[0], *(["  ".join("-" * width for width in widths)] if rows[1:] else []), *shown[1:]]


def short(number: int) -> str:
    """A number of tokens in six characters.

    >>> short(9_412), short(44_196), short(1_234_567), short(98_765_432)
    ('9,412', '44.2k', '1.23M', '98.8M')
    """
    if number < EXACT:
        return f"{number:,}"
    size, unit = (1_000, "k") if number < 999_500 else (1_000_000, "M")
    value = number / size
    return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f}{unit}"


def money(micros: int) -> str:
    """Micro-dollars to the cent, less than a dollar to its hundredth part.

    >>> money(12_345_678), money(12_345)
    ('$12.35', '$0.0123')
    """
    return f"${micros / USD_MICROS:,.2f}" if micros >= USD_MICROS else usd(micros)


def _common_org(job: JobRecord) -> str:
    """What the names of all tasks begin with, such as `buzz/`; empty where they have different owners, or none."""
    owners = {"".join(task.rpartition("/")[:2]) for task in (*(trial.task for trial in job.trials), *job.missing_of)}
    return owners.pop() if len(owners) == 1 else ""


def _is_unscored(outcome: Outcome) -> bool:
    return outcome.outcome == "unscored"


def _whole(trial: TrialRecord) -> _Part:
    return _Part(trial.outcome, trial.seconds, trial.spend, trial.unsure)


def _steps(trials: Iterable[TrialRecord], name: str) -> Iterator[_Part]:
    """One step of those trials that came to it."""
    for trial in trials:
        for step in trial.steps:
            if step.name == name:
                yield _Part(step.outcome, step.seconds, step.spend, trial.unsure)


def _row(
    name: str, counted: Iterable[_Part], columns: Sequence[str], *, torn: bool, missing: int = 0
) -> tuple[str, ...]:
    """`torn`: a receipt could not be read, and may have been of any of these trials. `missing` left nothing."""
    parts = list(counted)
    spend = costs.total(part.spend for part in parts)
    passed = sum(part.outcome.outcome == "passed" for part in parts)
    times = [part.seconds for part in parts if part.seconds and not _is_unscored(part.outcome)]
    mark = "+?" if spend.unknown_calls or torn or any(part.unsure for part in parts) else ""
    each = per_pass(spend, passed)
    cells = {
        "passed": f"{passed}/{len(parts) + missing}",
        "unscored": str(sum(_is_unscored(part.outcome) for part in parts) + missing),
        "capped": str(sum(is_capped(part.outcome) for part in parts)),
        "calls": f"{spend.calls:,}",
        "fresh": f"{short(fresh_tokens(spend))}{mark}",
        "cached": f"{short(spend.cache_read_tokens)}{mark}",
        "cost": f"{money(spend.cost_usd_micros)}{mark}",
        "$/pass": "–" if each is None else f"{money(each)}{mark}",
        "median s": f"{median(times):.1f}" if times else "–",
    }
    return (name, *(cells[column] for column in columns))
