"""A job's result as a person reads it: what was measured, a row a task, both rates, and every trial to look at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from bench import costs
from bench.baseline import MODELLESS
from bench.budget import agents_said, caps_said, said
from bench.condition import Limits, trust_domain
from bench.costs import percent, usd
from bench.faults import shown
from bench.records.job import JobRecord, TrialRecord
from bench.records.planrecord import JobPlanRecord
from bench.report import tasktable
from bench.report.tasktable import is_capped
from bench.scoring.outcome import Outcome


def render(job: JobRecord, explained: Sequence[str] = ()) -> list[str]:
    """The lines a person sees at the end of a job. `explained` is what the table's columns mean."""
    lines = ["", *_head(job), "", *tasktable.lines(job), ""]
    lines += [*explained, *([""] if explained else []), *_rates(job)]
    if job.running:
        lines.append("running: these are its figures so far, with trials under way as unscored ones")
    if to_look_at := [*_to_look_at(job)]:
        lines += ["", "to look at:", *(f"  {line}" for line in to_look_at), ""]
    where = "in each job's directory" if _is_several(job.plan) else job.directory
    lines.append(f"evidence, trajectories, receipts: {where}")
    if job.stop is not None:
        lines.append(f"{job.stop.kind}: {job.stop.reason}; go on with `inv bench --resume {shown(job.directory)}`")
    return lines


def _to_look_at(job: JobRecord) -> Iterator[str]:
    """What didn't go as it should, or not plainly."""
    for trial in job.trials:
        if trial.outcome.outcome != "passed" or trial.outcome.labels:
            yield _told(trial)
    if job.missing:
        each = ", ".join(f"{number} of {task}" for task, number in job.missing_of.items())
        yield f"{job.missing} planned trials left nothing: unscored{f' ({each})' if each else ''}"
    for trial in job.unplanned:
        yield f"{trial.trial}: {trial.task} was not selected, so this trial counts for nothing"
    yield from _replaced(job)


def _head(job: JobRecord) -> list[str]:
    plan = job.plan
    if not plan.known:
        return [f"{plan.title(job.directory)}  (nobody can tell whether models were asked: see the warnings)"]
    kind = "models were asked"
    if plan.rehearsal:
        kind = f"rehearsal with the script `{plan.rehearsal}`: no model was asked"
    elif plan.replay:
        kind = f"replay of the cassette {plan.replay[:12]}: no model was asked"
    elif plan.agent:
        kind = f"Harbor's {plan.agent} in a team's place"
    host = f"environment {plan.environment}{' (host userland, no limits)' if plan.environment == 'sandbox' else ''}"
    if trust_domain(plan.harnesses) == "trial":
        host += "; a trial's agents can read each other's keys"
    condition = f"condition {plan.condition} {plan.condition_sha256[:12]}"
    return [f"{plan.title(job.directory)}  ({kind})", f"{condition}; {plan.stack} stack; {host}", *_budget(plan)]


def _is_several(plan: JobPlanRecord) -> bool:
    """Whether it is of jobs that are put together."""
    return " + " in plan.job


def _budget(plan: JobPlanRecord) -> list[str]:
    """What each trial's team could use, to be held beside another condition's; and the caps of the job, now and before.

    The latter are only said where it has any, or had.
    """
    if plan.agent in MODELLESS or not plan.budget:
        return []
    caps = Limits(*(plan.budget.get(name) for name in ("usd_micros", "tokens", "calls")))
    lines = [f"budget of each trial: {said(caps, plan.budget.get('timeout_seconds'))}"]
    if own := agents_said([(seat.name, seat.limits) for seat in plan.roster]):
        lines.append(f"budget of each agent: {own}")
    if not _is_several(plan) and (plan.job_budget != Limits() or plan.earlier_budgets):
        before = "".join(f"; until {one.until}: {caps_said(one.limits)}" for one in plan.earlier_budgets)
        lines.append(f"budget of the job: {caps_said(plan.job_budget)}{before}")
    return lines


def _rates(job: JobRecord) -> Iterator[str]:
    """Over scored trials, with unscored ones as failures, and without those that a cap cut off."""
    counts = job.counts
    scored = counts["passed"] + counts["failed"]
    planned = job.planned_trials or len(job.trials)
    yield (
        f"passed {_rate(counts['passed'], scored)} of scored trials, "
        f"{_rate(counts['passed'], planned)} with unscored ones as failures"
        f"{'; not comparable' if job.plan.leaderboard.standing == 'not eligible' else ''}"
    )
    fit = job.plan.leaderboard.standing == "eligible" and job.complete
    way = f"; `inv pack --job {shown(job.directory)}` makes it ready to be sent in" if fit else ""
    standing, *reasons = job.plan.leaderboard.lines
    yield f"leaderboard: {standing}{way}"
    yield from reasons
    capped = [trial for trial in job.trials if is_capped(trial.outcome) and trial.is_scored]
    if capped:
        passed = counts["passed"] - sum(trial.outcome.outcome == "passed" for trial in capped)
        yield f"a cap cut off {_trials(len(capped))}; without: {_rate(passed, scored - len(capped))}"


def _told(trial: TrialRecord) -> str:
    outcome = trial.outcome
    labels = [label for label in outcome.labels if not outcome.reason.startswith(f"{label}: ")]
    shown = f" [{', '.join(labels)}]" if labels else ""
    steps = ", ".join(f"{step.name} {_verdict(step.outcome)}" for step in trial.steps)
    of_steps = f" (steps: {steps})" if steps else ""
    because = f": {outcome.reason}" if outcome.reason else ""
    return f"{trial.trial}: {outcome.outcome}{shown}{because}{of_steps}"


def _verdict(outcome: Outcome) -> str:
    """`failed 0.5`: the reward is told where the word doesn't."""
    is_said = outcome.outcome != "failed" or not outcome.reward
    return outcome.outcome if is_said else f"failed {outcome.reward:g}"


def _replaced(job: JobRecord) -> Iterator[str]:
    """Attempts that are not in the rows any more, and what they cost."""
    if not job.replaced:
        return
    reasons = Counter(attempt.reason.partition(":")[0] for attempt in job.replaced)
    listed = ", ".join(f"{number} {reason}" for reason, number in reasons.items())
    spend = costs.total(attempt.spend for attempt in job.replaced)
    calls = f"{spend.calls} call{'' if spend.calls == 1 else 's'}"
    cost = f"{usd(spend.cost_usd_micros)}{'+?' if spend.unknown_calls or job.is_torn else ''}"
    number = len(job.replaced)
    more = f"{number} more attempt{'' if number == 1 else 's'}"
    yield f"{more} replaced ({listed}): {calls}, {cost}, not in the rows above"


def _rate(part: int, whole: int) -> str:
    return f"{part}/{whole} ({percent(part / whole)})" if whole else "0/0 (–)"


def _trials(number: int) -> str:
    return f"{number} trial{'' if number == 1 else 's'}"
