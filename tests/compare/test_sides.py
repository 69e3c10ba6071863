"""Two sides in pairs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.compare.paired import Interval
from bench.compare.sides import Comparison, LeftOut, Side, compared
from bench.costs import Spend
from bench.records.job import JobRecord, Replaced, TrialRecord
from bench.records.merge import merged
from bench.scoring.outcome import Outcome
from tests.records.kit import FAILED, PASSED, UNSCORED, job, trial


def side(*trials: TrialRecord, name: str = "a", planned: tuple[str, ...] = (), attempts: int = 1) -> Side:
    record = job(*trials, name=name)
    plan = replace(record.plan, directories={task: Path(task) for task in planned}, attempts=attempts)
    return Side((one := replace(record, plan=plan),), one)


def played(name: str, **outcomes: list[Outcome]) -> Side:
    """A side whose tasks ended so."""
    return side(
        *(
            trial(f"{name}-{task}__{number}", outcome, task=task, cost_usd_micros=10, calls=1)
            for task, ends in outcomes.items()
            for number, outcome in enumerate(ends)
        ),
        name=name,
    )


def test_pairs_are_of_the_means_of_each_task() -> None:
    """One task has more attempts than the other: it counts as one all the same."""
    a = played("a", x=[PASSED] * 4 + [FAILED], y=[FAILED], z=[PASSED])
    b = played("b", x=[PASSED, FAILED], y=[FAILED], z=[FAILED])
    found = compared(a, b)
    assert [(pair.task, pair.a.passed, pair.a.attempts, pair.b.passed) for pair in found.pairs] == [
        ("x", 4, 5, 1),
        ("y", 0, 1, 0),
        ("z", 1, 1, 0),
    ]
    assert (found.of_scored.better, found.of_scored.worse, found.of_scored.equal) == (2, 0, 1)
    assert found.of_scored.mean == pytest.approx((0.3 + 0 + 1) / 3)
    assert found.of_scored.interval is not None
    assert found.of_scored.p == 0.5


def test_the_interval_does_not_shrink_with_more_attempts_at_the_same_tasks() -> None:
    """Clustered by task: the same rates of five times as many attempts are no more certain."""
    once = compared(played("a", x=[PASSED], y=[FAILED]), played("b", x=[FAILED], y=[FAILED]))
    often = compared(played("a", x=[PASSED] * 5, y=[FAILED] * 5), played("b", x=[FAILED] * 5, y=[FAILED] * 5))
    assert once.of_scored.interval == often.of_scored.interval == Interval(-1.0, 1.0)


def test_two_sides_that_do_the_same_show_no_difference() -> None:
    found = compared(played("a", x=[PASSED], y=[FAILED]), played("b", x=[PASSED], y=[FAILED]))
    assert (found.of_scored.mean, found.of_scored.p, found.of_scored.interval) == (0.0, None, None)


def test_attempts_that_are_not_divided_alike_are_said_for_the_rates_may_have_the_other_sign() -> None:
    """Simpson's paradox: A is better at each task, and has the lower rate over all trials."""
    a = played("a", easy=[PASSED], hard=[FAILED] * 7 + [PASSED])
    b = played("b", easy=[PASSED] * 7 + [FAILED], hard=[FAILED])
    found = compared(a, b)
    assert (found.totals[0].passed, found.totals[0].scored, found.totals[1].passed) == (2, 9, 7)
    assert found.of_scored.mean is not None and found.of_scored.mean > 0
    assert found.cautions[-1].startswith("A and B divide their attempts otherwise among the tasks")
    twice = compared(played("a", x=[PASSED] * 2, y=[FAILED] * 2), played("b", x=[PASSED], y=[FAILED]))
    assert not twice.cautions[1:], "more attempts at each task alike weigh them as before"


def test_what_a_cap_cut_off_and_what_speaks_against_a_verdict_is_told() -> None:
    capped, tampered = (replace(PASSED, labels=(label,)) for label in ("agent_budget", "tampered"))
    found = compared(played("a", x=[capped, PASSED]), played("b", x=[tampered, capped]))
    assert found.cautions[-3:] == (
        "1 of A's trials were cut off by a cap: the report has the rate without them",
        "1 of B's trials were cut off by a cap: the report has the rate without them",
        "1 of B's trials have labels that speak against their verdict: see `inv report`",
    )


def test_a_side_that_is_running_is_not_comparable() -> None:
    (record,) = (a := played("a", x=[PASSED])).jobs
    running = replace(record, running=True)
    found = compared(Side((running,), running), played("b", x=[PASSED]))
    assert found.not_comparable[0] == "A is running: its figures are those so far"
    assert not compared(a, played("b", x=[PASSED])).not_comparable


def test_a_task_of_one_side_is_named_and_in_no_figure() -> None:
    found = compared(played("a", x=[PASSED], y=[FAILED]), played("b", x=[PASSED], z=[PASSED]))
    assert found.left_out == (LeftOut("y", "only A has it"), LeftOut("z", "only B has it"))
    assert [figures.attempts for figures in found.totals] == [1, 1]
    assert [spend.cost_usd_micros for spend in found.besides] == [10, 10]


def test_a_task_whose_files_were_changed_is_not_the_same_task() -> None:
    a, b = (side(replace(trial(f"{n}__1", PASSED), checksum=digest), name=n) for n, digest in (("a", "1"), ("b", "2")))
    assert compared(a, b).left_out == (LeftOut("org/alpha", "its files were not the same in all trials"),)
    unknown = side(trial("c__1", PASSED), name="c")
    assert [pair.task for pair in compared(a, unknown).pairs] == ["org/alpha"]


def test_unscored_trials_are_in_one_figure_as_failures_and_not_in_the_other() -> None:
    found = compared(played("a", x=[PASSED, UNSCORED], y=[UNSCORED]), played("b", x=[PASSED, PASSED], y=[FAILED]))
    assert (found.totals[0].passed, found.totals[0].scored, found.totals[0].attempts) == (1, 1, 3)
    assert (found.of_scored.tasks, found.of_scored.mean) == (1, 0.0)
    assert (found.of_all.tasks, found.of_all.mean) == (2, -0.25)
    assert found.cautions[-1] == "2 of A's trials are unscored: hold both figures side by side"


def test_planned_trials_that_left_nothing_are_unscored() -> None:
    a = side(trial("a__1", PASSED), planned=("org/alpha", "org/beta"), attempts=2)
    b = side(trial("b__1", PASSED), trial("b__2", PASSED, task="org/beta"), name="b")
    found = compared(a, b)
    assert [(pair.task, pair.a.scored, pair.a.attempts) for pair in found.pairs] == [
        ("org/alpha", 1, 2),
        ("org/beta", 0, 2),
    ]
    assert found.of_all.mean == (0.5 - 1 + 0 - 1) / 2


def test_missing_trials_of_tasks_that_nobody_knows_are_said() -> None:
    """Of a registry's dataset only Harbor knows the tasks."""
    record = job(trial("a__1", PASSED), planned=3)
    found = compared(Side((record,), record), played("b", **{"org/alpha": [PASSED]}))
    assert "2 planned trials of A left nothing, of tasks that nobody knows: they are in no figure" in found.cautions


def _jobs(*jobs: JobRecord) -> Side:
    return Side(jobs, merged(jobs)[0])


def test_a_side_of_several_jobs_counts_what_each_of_them_planned() -> None:
    def planning(record: JobRecord, task: str) -> JobRecord:
        return replace(record, plan=replace(record.plan, directories={task: Path(task)}, attempts=2))

    first = planning(job(trial("a__1", PASSED, task="x"), name="one", planned=2), "x")
    second = planning(job(trial("a__2", PASSED, task="y"), trial("a__3", FAILED, task="y"), name="two", planned=2), "y")
    both = _jobs(first, second)
    assert both.lacking == {"x": 1}
    # A pod was replaced: the same job in two places plans nothing twice.
    moved = replace(first, directory=Path("elsewhere"), trials=(trial("a__4", FAILED, task="x"),))
    assert _jobs(first, moved).lacking == {}


def test_cost_is_said_for_each_pass_and_without_one_it_is_unknown() -> None:
    found = compared(played("a", x=[PASSED, FAILED, PASSED, FAILED]), played("b", x=[FAILED]))
    assert [figures.usd_micros_a_pass for figures in found.totals] == [20, None]


def test_what_replaced_attempts_cost_is_told_apart() -> None:
    a = played("a", x=[PASSED])
    gone = Replaced("a__0", "x", "unfinished", Spend(calls=1, cost_usd_micros=7))
    record = replace(a.record, replaced=(gone,))
    found = compared(Side((record,), record), played("b", x=[PASSED]))
    assert [spend.cost_usd_micros for spend in found.besides] == [7, 0]


def test_trials_of_two_upstreams_are_mentioned() -> None:
    mixed = Outcome("passed", 1.0, "", ("mixed_upstream",))
    found: Comparison = compared(played("a", x=[mixed]), played("b", x=[PASSED]))
    assert any("served by more than one upstream" in caution for caution in found.cautions)
