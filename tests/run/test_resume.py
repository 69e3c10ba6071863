"""What a job that goes on keeps, runs again, and may cost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.condition import Limits
from bench.records import NOT_BEGUN, UNFINISHED
from bench.records.job import JobRecord, TrialRecord
from bench.run import resume
from bench.scoring.outcome import Outcome
from tests.records.kit import FAILED, PASSED, UNSCORED, job, trial

CUT_OFF = Outcome("unscored", None, UNFINISHED)


def planned(*trials: TrialRecord, tasks: int = 1, attempts: int = 3) -> JobRecord:
    record = job(*trials, planned=tasks * attempts)
    directories = {name: Path(name) for name in ("org/alpha", "org/beta")[:tasks]}
    return replace(record, plan=replace(record.plan, directories=directories, attempts=attempts))


def test_scored_trials_are_kept_and_all_others_run_again() -> None:
    found = resume.plan(planned(trial("a__1", PASSED), trial("a__2", FAILED), trial("a__3", UNSCORED)))
    assert [t.trial for t in found.kept] == ["a__1", "a__2"]
    assert [t.trial for t in found.again] == ["a__3"]
    assert found.to_run == 1
    assert not found.is_done


def test_what_left_nothing_runs_too() -> None:
    """Case 3: one of three was done when the driver died."""
    found = resume.plan(planned(trial("a__1", PASSED)))
    assert (len(found.kept), found.again, found.to_run) == (1, (), 2)


def test_a_job_whose_every_trial_has_a_score_is_done() -> None:
    done = resume.plan(planned(*(trial(f"a__{n}", PASSED) for n in range(3))))
    assert done.is_done
    assert resume.lines(done, 4, "archive/1") == ["job lb-team: each of its 3 trials has a score; nothing to run"]


def test_a_stray_attempt_without_a_score_keeps_a_job_from_being_done() -> None:
    assert not resume.plan(planned(*(trial(f"a__{n}", PASSED) for n in range(3)), trial("a__9", CUT_OFF))).is_done


def test_of_a_registry_dataset_that_never_began_nobody_knows_the_number() -> None:
    found = resume.plan(job(trial("a__1", UNSCORED)))
    assert found.to_run is None
    assert not found.is_done
    assert "those without run" in resume.lines(found, 4, "archive/1")[0]


def test_the_cost_is_estimated_by_each_tasks_own_scored_trials() -> None:
    record = planned(
        trial("a__1", PASSED, cost_usd_micros=100),
        trial("a__2", FAILED, cost_usd_micros=300),
        trial("b__1", PASSED, task="org/beta", cost_usd_micros=5_000, seconds=60),
        tasks=2,
    )
    estimate = resume.plan(record).estimate
    assert estimate == resume.Estimate(200 + 2 * 5_000, 2.0 + 2 * 60, taken_from=3, is_least=False)


def test_a_task_without_a_score_is_estimated_by_the_others() -> None:
    record = planned(trial("a__1", PASSED, cost_usd_micros=100), tasks=2, attempts=1)
    found = resume.plan(record).estimate
    assert found is not None
    assert found.cost_usd_micros == 100


def test_unknown_calls_make_an_estimate_a_least() -> None:
    found = resume.plan(planned(trial("a__1", PASSED, cost_usd_micros=2_000_000, unknown_calls=1)))
    assert "  at least $4.0000 and 1 s more, by its 1 trial with a score" in resume.lines(found, 4, "archive/1")


def test_it_is_said_first_what_will_happen_and_what_it_may_cost() -> None:
    record = planned(
        trial("a__1", PASSED, cost_usd_micros=40_000, seconds=300),
        trial("a__2", CUT_OFF, cost_usd_micros=12_300),
        trial("a__3", UNSCORED, cost_usd_micros=100),
        trial("a__4", Outcome("unscored", None, NOT_BEGUN)),
        attempts=5,
    )
    assert resume.lines(resume.plan(record), 2, ".benchmark/archive/lb-team/1") == [
        "job lb-team goes on: 1 of 5 trials have a score and are kept, 4 run",
        "  3 trials run again (1 cut off, 1 upstream_refused, 1 not begun); before, $0.0124 spent, kept in "
        ".benchmark/archive/lb-team/1",
        "  about $0.1600 and 10 min more, by its 1 trial with a score",
    ]


def test_a_budget_that_is_another_now_is_said_with_the_one_before() -> None:
    record = planned(trial("a__1", PASSED))
    record = replace(record, plan=replace(record.plan, job_budget=Limits(usd_micros=1_000_000)))
    said = "  its budget is another now: any cost, any number of tokens, 9 calls; it was $1.00, any number of tokens, "
    assert said + "any number of calls" in resume.lines(resume.plan(record, Limits(calls=9)), 4, "archive/1")
    same = resume.lines(resume.plan(record, record.plan.job_budget), 4, "archive/1")
    assert "budget" not in "\n".join(same)


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (planned(trial("a__1", UNSCORED)), "  what it may cost can't be told: no trial has a score yet"),
        (planned(trial("a__1", PASSED)), "  about no model cost and 1 s more, by its 1 trial with a score"),
    ],
)
def test_what_cannot_be_told_or_costs_nothing_is_said(record: JobRecord, said: str) -> None:
    assert resume.lines(resume.plan(record), 4, "archive/1")[-1] == said
