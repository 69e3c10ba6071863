"""What a person is told at the end of a job."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.condition import Limits
from bench.costs import Spend
from bench.records.job import JobRecord, Replaced
from bench.records.merge import merged
from bench.records.planrecord import EarlierBudget, Seat
from bench.report import table
from bench.scoring.outcome import Outcome
from bench.scoring.stepoutcomes import StepOutcome
from bench.trial.journal import JobStopped
from tests.records.kit import FAILED, PASSED, UNSCORED, job, trial


def test_both_rates_are_shown_and_unscored_trials_have_their_reason() -> None:
    shown = "\n".join(
        table.render(job(trial("a__1", PASSED), trial("a__2", FAILED), trial("a__3", UNSCORED), planned=3))
    )
    assert "passed 1/2 (50%) of scored trials, 1/3 (33%) with unscored ones as failures" in shown
    assert "a__2: failed [agent_timeout]: files: out.txt is right" in shown
    assert "a__3: unscored: upstream_refused: 402 from anthropic" in shown


def test_no_scored_trial_is_a_dash_not_zero_percent() -> None:
    """Case 11: 0 of 0 is no rate."""
    assert "passed 0/0 (–) of scored trials" in "\n".join(table.render(job(trial("a__1", UNSCORED), planned=1)))


def test_a_rate_that_is_not_all_is_not_shown_as_all() -> None:
    ends = [PASSED] * 399 + [FAILED]
    shown = "\n".join(table.render(job(*(trial(f"a__{n}", end) for n, end in enumerate(ends)), planned=400)))
    assert "passed 399/400 (>99%) of scored trials" in shown


def test_what_is_put_together_has_no_one_place() -> None:
    (together,) = merged([job(trial("a__1", PASSED), name="one"), job(trial("a__2", PASSED), name="two")])
    assert table.render(together)[-1] == "evidence, trajectories, receipts: in each job's directory"


def test_a_rehearsal_says_so() -> None:
    shown = "\n".join(table.render(job(trial("a__1", PASSED), rehearsal="good", planned=1)))
    assert "rehearsal with the script `good`: no model was asked" in shown


def test_of_a_job_whose_record_is_damaged_nobody_says_that_models_were_asked() -> None:
    record = job(trial("a__1", PASSED), planned=1)
    shown = "\n".join(table.render(replace(record, plan=replace(record.plan, known=False))))
    assert "nobody can tell whether models were asked: see the warnings" in shown
    assert "(models were asked)" not in shown
    assert table.render(record)[1].endswith("(models were asked)")


def test_a_copied_job_goes_by_its_own_name() -> None:
    record = job(trial("a__1", PASSED), planned=1)
    assert table.render(record)[1].startswith("lb-team  (")
    copy = replace(record, directory=Path("jobs/kept"))
    assert table.render(copy)[1].startswith("kept (begun as lb-team)  (")


def test_cost_and_tokens_show_when_something_is_unknown() -> None:
    shown = "\n".join(
        table.render(job(trial("a__1", PASSED, input_tokens=1200, cost_usd_micros=3456, unknown_calls=1)))
    )
    assert "1,200+?" in shown
    assert "$0.0035+?" in shown


def test_missing_trials_are_said() -> None:
    assert "2 planned trials left nothing: unscored" in "\n".join(table.render(job(trial("a__1", PASSED), planned=3)))


def test_the_tasks_of_missing_trials_are_named() -> None:
    plan = replace(job().plan, directories={"org/alpha": Path("a"), "org/beta": Path("b")}, attempts=2)
    record = JobRecord(Path("j"), plan, (trial("a__1", PASSED),), 4)
    assert "3 planned trials left nothing: unscored (1 of org/alpha, 2 of org/beta)" in "\n".join(table.render(record))


def test_a_trial_that_nobody_asked_for_is_said_and_not_counted() -> None:
    record = replace(job(trial("a__1", PASSED), planned=1), unplanned=(trial("b__1", FAILED),))
    shown = "\n".join(table.render(record))
    assert "b__1: org/alpha was not selected, so this trial counts for nothing" in shown
    assert "passed 1/1 (100%) of scored trials" in shown


def test_the_budget_is_shown_so_that_two_conditions_can_be_compared() -> None:
    record = job(trial("a__1", PASSED))
    budget = {"timeout_seconds": 900, "usd_micros": 2_500_000, "tokens": None, "calls": 40}
    shown = table.render(replace(record, plan=replace(record.plan, budget=budget)))
    assert "budget of each trial: 900 s, $2.50, any number of tokens, 40 calls" in shown


def test_caps_of_single_agents_are_part_of_the_budget() -> None:
    record = job(trial("a__1", PASSED))
    limits = {"orch": Limits(), "worker-1": Limits(1_500, None, 40), "worker-2": Limits(1_500, None, 40)}
    roster = tuple(Seat(name, name, "role", own) for name, own in limits.items())
    budget = {"timeout_seconds": 900, "usd_micros": None, "tokens": None, "calls": None}
    shown = table.render(replace(record, plan=replace(record.plan, budget=budget, roster=roster)))
    assert "budget of each agent: worker-1, worker-2: $0.0015, 40 calls" in shown
    bare = tuple(replace(seat, limits=Limits()) for seat in roster)
    shown = table.render(replace(record, plan=replace(record.plan, budget=budget, roster=bare)))
    assert not [line for line in shown if line.startswith("budget of each agent")]


def test_of_a_trial_in_steps_each_verdict_is_told_with_a_reward_between() -> None:
    steps = (StepOutcome("a", PASSED), StepOutcome("b", replace(FAILED, reward=0.5)), StepOutcome("c", FAILED))
    record = job(replace(trial("a__1", FAILED), steps=steps))
    assert "(steps: a passed, b failed 0.5, c failed)" in "\n".join(table.render(record))


def test_agents_that_share_a_container_are_said_to_share_their_trust() -> None:
    record = job(trial("a__1", PASSED))
    for harness, said in (("buzz-agent", True), ("builtin", False)):
        shown = table.render(replace(record, plan=replace(record.plan, harnesses=(harness,))))
        assert ("; a trial's agents can read each other's keys" in shown[2]) is said


def test_a_baseline_is_said_to_be_one() -> None:
    record = job(trial("a__1", PASSED))
    shown = table.render(replace(record, plan=replace(record.plan, agent="nop", condition="nop")))
    assert shown[1].endswith("(Harbor's nop in a team's place)")
    assert shown[2].startswith("condition nop ")


def test_the_budget_of_the_job_is_shown_with_those_that_it_had_before() -> None:
    record = job(trial("a__1", PASSED), planned=1)
    budget = {"timeout_seconds": None, "usd_micros": None, "tokens": None, "calls": None}
    plan = replace(record.plan, budget=budget, job_budget=Limits(usd_micros=5_000_000))
    uncapped = "any number of tokens, any number of calls"
    assert f"budget of the job: $5.00, {uncapped}" in table.render(replace(record, plan=plan))
    before = (EarlierBudget(Limits(usd_micros=5_000_000), "2026-01-31T10:00:00Z"),)
    plan = replace(plan, job_budget=Limits(), earlier_budgets=before)
    said = f"budget of the job: any cost, {uncapped}; until 2026-01-31T10:00:00Z: $5.00, {uncapped}"
    assert said in table.render(replace(record, plan=plan))
    together = merged([replace(record, plan=replace(plan, job=name), directory=Path(name)) for name in ("a", "b")])
    assert "budget of the job" not in "\n".join(table.render(together[0])), "each had its own"
    plan = replace(plan, earlier_budgets=())
    assert "budget of the job" not in "\n".join(table.render(replace(record, plan=plan)))


@pytest.mark.parametrize("label", ["budget", "agent_budget"])
def test_trials_that_a_cap_cut_off_have_a_column_and_a_rate_without_them(label: str) -> None:
    """Case 26: cut off is not beaten."""
    capped = Outcome("failed", 0.0, "reward 0", (label,))
    lines = table.render(job(trial("a__1", PASSED), trial("a__2", FAILED), trial("a__3", capped), planned=3))
    assert lines[4].split()[:4] == ["task", "(org/)", "passed", "capped"]
    assert lines[6].split()[:3] == ["alpha", "1/3", "1"]
    assert "a cap cut off 1 trial; without: 1/2 (50%)" in lines


def test_without_a_cap_there_is_no_such_column() -> None:
    assert "capped" not in "\n".join(table.render(job(trial("a__1", PASSED))))


def test_a_job_without_any_trial_has_an_empty_table() -> None:
    """Case 58: nothing to show is shown as nothing."""
    shown = table.render(job(planned=2))
    assert "passed 0/0 (–) of scored trials, 0/2 (0%) with unscored ones as failures" in shown
    assert "  2 planned trials left nothing: unscored" in shown


def test_replaced_attempts_and_their_cost_are_said() -> None:
    gone = (
        Replaced("a__0", "org/alpha", "relay_gone: …", Spend(calls=3, cost_usd_micros=20_000)),
        Replaced("a__9", "org/alpha", "unfinished", Spend(calls=1, cost_usd_micros=1_000, unknown_calls=1)),
    )
    lines = table.render(replace(job(trial("a__1", PASSED), planned=1), replaced=gone))
    assert "  2 more attempts replaced (1 relay_gone, 1 unfinished): 4 calls, $0.0210+?, not in the rows above" in lines


def test_why_a_job_stopped_is_its_last_line_with_the_way_on() -> None:
    stopped = replace(job(trial("a__1", PASSED), planned=3), stop=JobStopped("budget", "the cap of $1 is reached", ""))
    assert table.render(stopped)[-1] == "budget: the cap of $1 is reached; go on with `inv bench --resume jobs/lb-team`"


def test_a_label_that_the_reason_begins_with_is_not_repeated() -> None:
    mismatch = Outcome("unscored", None, "script_mismatch: step merge", ("tainted", "script_mismatch"))
    shown = "\n".join(table.render(job(trial("a__1", mismatch))))
    assert "a__1: unscored [tainted]: script_mismatch: step merge" in shown
