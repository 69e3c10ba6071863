"""Several directories as one result."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.condition import Limits
from bench.costs import Spend
from bench.planning.leaderboard import Reason, Verdict
from bench.records.job import JobRecord, Replaced
from bench.records.merge import merged
from bench.records.planrecord import Seat
from tests.records.kit import FAILED, PASSED, UNSCORED, job, trial


def test_attempts_of_two_jobs_add_up() -> None:
    """Case 17: three and two attempts are five."""
    first = job(trial("a__1", PASSED), trial("a__2", FAILED), trial("a__3", PASSED), name="one", planned=3)
    second = job(trial("a__4", PASSED), trial("a__5", FAILED), name="two", planned=2)
    (together,) = merged([first, second])
    assert together.plan.job == "one + two"
    assert together.counts == {"passed": 3, "failed": 2, "unscored": 0}
    assert (together.planned_trials, together.missing, together.warnings) == (5, 0, ())
    assert together.complete


def test_a_trial_that_two_directories_have_counts_once_and_that_is_said() -> None:
    first = job(trial("a__1", PASSED), name="one", planned=1)
    second = job(trial("a__1", PASSED), trial("a__2", PASSED), name="two", planned=2)
    (together,) = merged([first, second])
    assert [t.trial for t in together.trials] == ["a__1", "a__2"]
    assert together.warnings == ("1 of the trials are in more than one directory; each counts once",)


def test_of_two_copies_the_one_with_a_score_counts() -> None:
    for jobs in ([UNSCORED, FAILED], [FAILED, UNSCORED]):
        (together,) = merged([job(trial("a__1", end), name=f"job-{n}", planned=1) for n, end in enumerate(jobs)])
        assert together.counts == {"passed": 0, "failed": 1, "unscored": 0}


def test_a_copy_of_a_job_plans_no_more_trials() -> None:
    """A pod was replaced: the same job in two places (case 57)."""
    first = job(trial("a__1", PASSED), planned=3, jobs_dir=Path("pod-1"))
    second = job(trial("a__2", PASSED), trial("a__3", PASSED), planned=3, jobs_dir=Path("pod-2"))
    (together,) = merged([first, second])
    assert (together.planned_trials, together.missing) == (3, 0)


def test_missing_trials_stay_missing() -> None:
    first = job(trial("a__1", PASSED), name="one", planned=3)
    (together,) = merged([first, job(trial("a__2", PASSED), name="two", planned=1)])
    assert (together.planned_trials, together.missing) == (4, 2)


@pytest.mark.parametrize("other", [{"condition": "cd"}, {"rehearsal": "good"}])
def test_what_measured_something_else_is_not_put_together(other: dict[str, str]) -> None:
    assert merged([job(name="one"), job(name="two", **other)]) == []  # type: ignore[arg-type]


def test_another_stack_or_environment_is_another_measurement() -> None:
    one, two = job(name="one"), job(name="two")
    for change in ({"stack": "compose"}, {"environment": "sandbox"}, {"agent": "nop"}):
        assert merged([one, replace(two, plan=replace(two.plan, **change))]) == []  # type: ignore[arg-type]


def test_other_upstreams_or_other_times_than_the_tasks_own_are_another_measurement() -> None:
    """Case 62: one model, served by two upstreams; and figures that four times the time made."""
    seat = Seat("orch", "orch", "lead", Limits(), "sonnet", "cloud")

    def served(name: str, url: str, *reasons: Reason) -> JobRecord:
        record = job(name=name)
        endpoints = {"cloud": {"provider": "openai", "base_url": url}, "unused": {"base_url": name}}
        terms = Verdict((Reason("n_attempts", name), *reasons))
        return replace(record, plan=replace(record.plan, roster=(seat,), endpoints=endpoints, leaderboard=terms))

    one = served("one", "https://a.example")
    assert len(merged([one, served("two", "https://a.example")])) == 1
    assert merged([one, served("two", "https://b.example")]) == []
    assert merged([one, served("two", "https://a.example", Reason("agent_timeout_multiplier", "4.0"))]) == []


def test_what_has_no_record_is_put_together_with_nothing() -> None:
    """Two jobs of which nobody knows what they measured are not the same."""
    first, second = (job(trial(f"{name}__1", PASSED), name=name) for name in ("one", "two"))
    unknown = [replace(each, plan=replace(each.plan, known=False)) for each in (first, second)]
    assert len(merged([first, second])) == 1
    assert merged(unknown) == []


def test_one_directory_is_no_merge() -> None:
    assert merged([job(name="one"), job(name="one")]) == []


def test_replaced_attempts_are_counted_once_and_not_where_another_directory_has_the_trial() -> None:
    gone = (
        Replaced("a__0", "org/alpha", "unfinished", Spend(cost_usd_micros=5)),
        Replaced("a__2", "org/alpha", "gone"),
    )
    first = replace(job(trial("a__1", PASSED), name="one"), replaced=gone)
    (together,) = merged([first, replace(job(trial("a__2", PASSED), name="two"), replaced=gone[:1])])
    assert [attempt.trial for attempt in together.replaced] == ["a__0"]
    assert together.spend.cost_usd_micros == 5
