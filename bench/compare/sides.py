"""Two sides' records as one comparison: the tasks that both have, in pairs, and what the pairs add up to. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import fmean

from bench import costs
from bench.compare import terms
from bench.compare.paired import Interval, difference_interval, sign_test
from bench.compare.terms import Term
from bench.costs import Spend
from bench.records import MIXED, NOT_JUDGED
from bench.records.job import JobRecord
from bench.report.tasktable import CAPPED, median_s

LEFT_NOTHING = "{0} planned trials of {1} left nothing, of tasks that nobody knows: they are in no figure"

TO_MIND: Mapping[frozenset[str], str] = {
    CAPPED: "were cut off by a cap: the report has the rate without them",
    frozenset({"tampered", "tainted", "unexplained_event", NOT_JUDGED}): "have labels that speak against their verdict:"
    " see `inv report`",
}
"""Labels that a comparison has to tell, and how it does."""


@dataclass(frozen=True)
class Side:
    """One side: its jobs, and the one record that they are together."""

    jobs: tuple[JobRecord, ...]
    record: JobRecord

    @property
    def lacking(self) -> Counter[str]:
        """How many of the planned trials of each task left nothing, for tasks that the plans name."""
        planned: dict[tuple[str, str], int] = {}
        for job in self.jobs:
            for task in job.plan.directories:
                planned[job.plan.job, task] = max(job.plan.attempts, planned.get((job.plan.job, task), 0))
        lacking: Counter[str] = Counter()
        for (_, task), attempts in planned.items():
            lacking[task] += attempts
        lacking.subtract(trial.task for trial in self.record.trials)
        return +lacking

    @property
    def tasks(self) -> set[str]:
        """Those it was to play, and those it played."""
        return {trial.task for trial in self.record.trials} | set(self.record.plan.directories)


@dataclass(frozen=True)
class Figures:
    """What a side did at a task, or at all that both sides have. `attempts` counts also those that left nothing."""

    passed: int
    scored: int
    attempts: int
    spend: Spend
    median_s: float | None
    """Of the scored trials; None where there are none."""
    unsure: bool = False
    """Whether the spend may lack something (`bench.records.job.TrialRecord.unsure`)."""

    @property
    def unscored(self) -> int:
        return self.attempts - self.scored

    @property
    def of_scored(self) -> Fraction | None:
        return Fraction(self.passed, self.scored) if self.scored else None

    @property
    def of_all(self) -> Fraction | None:
        """With unscored trials as failures."""
        return Fraction(self.passed, self.attempts) if self.attempts else None

    @property
    def usd_micros_a_pass(self) -> int | None:
        """What was spent for each trial that passed; None where none did."""
        return round(self.spend.cost_usd_micros / self.passed) if self.passed else None


@dataclass(frozen=True)
class Pair:
    """One task that both sides have."""

    task: str
    a: Figures
    b: Figures


@dataclass(frozen=True)
class LeftOut:
    """A task that is in no pair, and why."""

    task: str
    why: str


@dataclass(frozen=True)
class Difference:
    """A - B, of the means of each task. `mean` is None where no task has a rate on both sides."""

    tasks: int
    mean: float | None
    interval: Interval | None
    better: int
    worse: int
    p: float | None

    @property
    def equal(self) -> int:
        return self.tasks - self.better - self.worse


@dataclass(frozen=True)
class Comparison:
    """Two sides, side by side. All figures are of the tasks in `pairs`; what else was spent is in `besides`."""

    a: Side
    b: Side
    differing: tuple[Term, ...]
    not_comparable: tuple[str, ...]
    cautions: tuple[str, ...]
    pairs: tuple[Pair, ...]
    left_out: tuple[LeftOut, ...]
    totals: tuple[Figures, Figures]
    of_scored: Difference
    of_all: Difference
    besides: tuple[Spend, Spend]
    """For replaced attempts and for tasks that are in no pair."""


def compared(a: Side, b: Side) -> Comparison:
    """The comparison. Without any pair its totals are empty."""
    left_out = tuple(_left_out(a, b))
    shared = sorted((a.tasks & b.tasks) - {one.task for one in left_out})
    pairs = tuple(Pair(task, figures(a, [task]), figures(b, [task])) for task in shared)
    totals = figures(a, shared), figures(b, shared)
    plans, sides = (a.record.plan, b.record.plan), (("A", a), ("B", b))
    differing = terms.differing(*([job.plan for job in side.jobs] for side in (a, b)))
    return Comparison(
        a=a,
        b=b,
        differing=tuple(differing),
        not_comparable=(
            *(f"{name} is running: its figures are those so far" for name, one in sides if one.record.running),
            *terms.not_comparable(*plans, differing),
        ),
        cautions=(
            *terms.cautions(*plans, differing),
            *_cautions("A", a, shared),
            *_cautions("B", b, shared),
            *_uneven(pairs),
        ),
        pairs=pairs,
        left_out=left_out,
        totals=totals,
        of_scored=_difference(pairs, lambda one: one.of_scored),
        of_all=_difference(pairs, lambda one: one.of_all),
        besides=(_besides(a, shared), _besides(b, shared)),
    )


def figures(side: Side, tasks: Iterable[str]) -> Figures:
    """What a side did at these tasks."""
    names = set(tasks)
    trials = [trial for trial in side.record.trials if trial.task in names]
    scored = [trial for trial in trials if trial.is_scored]
    lacking = side.lacking
    return Figures(
        passed=sum(trial.outcome.outcome == "passed" for trial in scored),
        scored=len(scored),
        attempts=len(trials) + sum(lacking[task] for task in names),
        spend=costs.total(trial.spend for trial in trials),
        median_s=median_s(trials),
        unsure=side.record.is_torn or any(trial.unsure for trial in trials),
    )


def _left_out(a: Side, b: Side) -> Iterator[LeftOut]:
    for task in sorted(a.tasks | b.tasks):
        if task not in b.tasks:
            yield LeftOut(task, "only A has it")
        elif task not in a.tasks:
            yield LeftOut(task, "only B has it")
        elif len({t.checksum for t in (*a.record.trials, *b.record.trials) if t.task == task and t.checksum}) > 1:
            yield LeftOut(task, "its files were not the same in all trials")


def _cautions(name: str, side: Side, shared: Sequence[str]) -> Iterator[str]:
    trials = [trial for trial in side.record.trials if trial.task in shared]
    if unscored := figures(side, shared).unscored:
        yield f"{unscored} of {name}'s trials are unscored: hold both figures side by side"
    for labels, what in TO_MIND.items():
        if number := sum(not labels.isdisjoint(trial.outcome.labels) for trial in trials):
            yield f"{number} of {name}'s trials {what}"
    if mixed := sum(MIXED in trial.outcome.labels for trial in trials):
        yield f"{mixed} of {name}'s trials were served by more than one upstream, or as more than one model"
    if unknown := side.record.missing - side.lacking.total():
        yield LEFT_NOTHING.format(unknown, name)


def _uneven(pairs: Sequence[Pair]) -> Iterator[str]:
    """Rates over all trials weigh each task by its attempts: where these aren't alike, such rates may even have the
    other sign than the mean over tasks (Simpson's paradox)."""
    if len({Fraction(pair.a.attempts, pair.b.attempts) for pair in pairs if pair.b.attempts}) > 1:
        yield "A and B divide their attempts otherwise among the tasks: trust the tasks' mean, not the rates over all"


def _difference(pairs: Sequence[Pair], rate: Callable[[Figures], Fraction | None]) -> Difference:
    rates = [(rate(pair.a), rate(pair.b)) for pair in pairs]
    differences = [a - b for a, b in rates if a is not None and b is not None]
    better, worse = sum(one > 0 for one in differences), sum(one < 0 for one in differences)
    return Difference(
        tasks=len(differences),
        mean=fmean(differences) if differences else None,
        interval=difference_interval(differences),
        better=better,
        worse=worse,
        p=sign_test(better, worse),
    )


def _besides(side: Side, shared: Sequence[str]) -> Spend:
    """What a side spent that is in none of its figures."""
    record = side.record
    others = [trial.spend for trial in (*record.trials, *record.unplanned) if trial.task not in shared]
    return costs.total([*others, *(attempt.spend for attempt in record.replaced)])
