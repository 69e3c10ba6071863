"""The table of a result: what a row counts, in how few columns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.costs import Spend
from bench.records.job import TrialRecord
from bench.report import tasktable
from bench.scoring.stepoutcomes import StepOutcome
from tests.records.kit import FAILED, PASSED, UNSCORED, job, trial

USED: dict[str, Any] = {
    "calls": 3,
    "input_tokens": 1_000,
    "cache_write_tokens": 200,
    "output_tokens": 34,
    "cache_read_tokens": 44_196,
}


def rows(*trials: TrialRecord, torn: bool = False) -> list[dict[str, str]]:
    """The table's rows, by column."""
    head, _, *lines = tasktable.lines(replace(job(*trials), is_torn=torn))
    names = [part for part in head.split("  ") if part.strip()]
    cells = [[part.strip() for part in line.split("  ") if part.strip()] for line in lines]
    return [dict(zip([name.strip() for name in names], each, strict=True)) for each in cells]


def test_a_row_has_what_people_look_for() -> None:
    fast, slow = (trial(f"a__{s}", PASSED, seconds=s, cost_usd_micros=3_000, **USED) for s in (2.0, 10.0))
    lost = trial("a__3", FAILED, seconds=3.0, cost_usd_micros=6_000, **USED)
    (row,) = rows(fast, slow, lost)
    assert row == {
        "task (org/)": "alpha",
        "passed": "2/3",
        "calls": "9",
        "fresh": "3,702",
        "cached": "133k",
        "cost": "$0.0120",
        "$/pass": "$0.0060",
        "median s": "3.0",
    }


def test_a_trial_without_a_score_is_an_attempt_and_no_time() -> None:
    (row,) = rows(trial("a__1", PASSED, seconds=2.0), trial("a__2", UNSCORED, seconds=90.0))
    assert (row["passed"], row["unscored"], row["median s"]) == ("1/2", "1", "2.0")


def test_where_nothing_passed_or_was_scored_there_is_a_dash_and_no_zero() -> None:
    (row,) = rows(trial("a__1", UNSCORED))
    assert (row["$/pass"], row["median s"]) == ("–", "–")


def test_planned_trials_that_left_nothing_are_attempts_without_a_score_also_of_tasks_that_never_began() -> None:
    """The rows of a job that was stopped say what its rates and `inv compare` say."""
    record = job(trial("a__1", PASSED, task="org/a"), planned=4)
    tasks = {"org/a": Path("a"), "org/b": Path("b")}
    known = replace(record, plan=replace(record.plan, directories=tasks, attempts=2))
    shown = [line.split()[:3] for line in tasktable.lines(known)[2:]]
    assert shown == [["a", "1/2", "1"], ["b", "0/2", "2"], ["all", "1/4", "3"]]
    # Of a registry's dataset only Harbor knows the tasks.
    assert [line.split()[:3] for line in tasktable.lines(record)[2:]] == [["a", "1/1", "0"], ["all", "1/4", "3"]]


def test_a_time_that_nobody_took_is_in_no_median() -> None:
    (row,) = rows(trial("a__1", PASSED, seconds=0.0), trial("a__2", PASSED, seconds=4.0))
    assert row["median s"] == "4.0"


def test_several_tasks_have_a_row_for_all_and_keep_their_owners_where_these_differ() -> None:
    found = rows(trial("a__1", PASSED, task="org/a", seconds=1.0), trial("b__1", FAILED, task="other/b", seconds=3.0))
    assert [(row["task"], row["passed"], row["median s"]) for row in found] == [
        ("org/a", "1/1", "1.0"),
        ("other/b", "0/1", "3.0"),
        ("all", "1/2", "2.0"),
    ]


def test_each_step_has_a_row_below_its_task() -> None:
    def steps(*outcomes: tuple[str, bool, float]) -> tuple[StepOutcome, ...]:
        spend = Spend(calls=2, cost_usd_micros=500)
        return tuple(StepOutcome(name, PASSED if passed else FAILED, s, spend) for name, passed, s in outcomes)

    first = replace(trial("a__1", PASSED, calls=4), steps=steps(("draft", True, 1.0), ("change", True, 5.0)))
    second = replace(trial("a__2", FAILED, calls=2), steps=steps(("draft", False, 3.0)))
    task, draft, change = rows(first, second)
    assert (task["passed"], task["calls"]) == ("1/2", "6")
    assert [*draft.values()] == ["step draft", "1/2", "4", "0", "0", "$0.0010", "$0.0010", "2.0"]
    assert [*change.values()] == ["step change", "1/1", "2", "0", "0", "$0.0005", "$0.0005", "5.0"]


def test_what_the_columns_mean_is_said_as_far_as_there_is_anything_in_them() -> None:
    plain = trial("a__1", PASSED)
    stepped = replace(plain, steps=(StepOutcome("draft", PASSED),))
    assert tasktable.legend([job(plain)]) == [*tasktable.LEGEND]
    assert tasktable.legend([job(plain), job(stepped)]) == [*tasktable.LEGEND, tasktable.OF_STEPS]
    assert tasktable.legend([job()]) == []
    assert max(map(len, tasktable.legend([job(stepped)]))) <= 100


@pytest.mark.parametrize("torn", [True, False])
def test_what_may_lack_something_is_marked(torn: bool) -> None:
    (row,) = rows(trial("a__1", PASSED, unknown_calls=0 if torn else 1), torn=torn)
    assert [row[name] for name in ("fresh", "cached", "cost", "$/pass")] == ["0+?", "0+?", "$0.0000+?", "$0.0000+?"]


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0, "0"),
        (9_999, "9,999"),
        (10_000, "10.0k"),
        (99_949, "99.9k"),
        (99_950, "100k"),
        (999_499, "999k"),
        (999_500, "1.00M"),
        (9_995_000, "10.0M"),
        (123_456_789, "123M"),
        (12_345_678_901, "12346M"),
    ],
)
def test_tokens_have_three_digits_at_least_and_six_characters(number: int, shown: str) -> None:
    assert tasktable.short(number) == shown
    assert len(shown) <= 6


@pytest.mark.parametrize(
    ("micros", "shown"), [(0, "$0.0000"), (999_900, "$0.9999"), (1_000_000, "$1.00"), (1_234_567_890, "$1,234.57")]
)
def test_money_is_told_to_the_cent_and_less_than_a_dollar_more_exactly(micros: int, shown: str) -> None:
    assert tasktable.money(micros) == shown


def test_a_dear_job_in_every_state_still_fits_a_hundred_columns() -> None:
    name = "buzz/" + "x" * 26
    many: dict[str, Any] = {"calls": 1_000, "input_tokens": 1_000_000, "cost_usd_micros": 10_000_000}
    capped = replace(FAILED, labels=("budget",))
    trials = [trial(f"a__{n}", each, task=name, seconds=100.0, **many) for n, each in enumerate((PASSED, capped))]
    shown = tasktable.lines(job(*trials, trial("a__9", UNSCORED, task=name)))
    assert 80 < max(map(len, shown)) <= 100, "they are as wide as what is shown"
