"""How much a plan asks for, in one line before it runs: tasks, attempts, trials, and the longest that it can take."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from bench.baseline import MODELLESS
from bench.trial.deadline import RESERVE_S, task_timeout_s, work_limit

if TYPE_CHECKING:
    from bench.planning.dataset import Task
    from bench.planning.jobs import JobPlan
    from bench.planning.planned import Plan

UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def summary(plan: Plan) -> str:
    """`3 of 14 tasks, 1 attempt each: 3 trials, at most about 15 min (4 at a time)`.

    The time is an upper bound: every agent to its limit, without building and judging.
    """
    if plan.n_tasks is None:
        (job,) = plan.jobs
        most = f"at most {job.n_tasks} " if job.n_tasks else ""
        limit_s = trial_limit_s(plan, None)
        each = "" if math.isinf(limit_s) else f", at most {_seconds(limit_s)} a trial"
        return f"{most}tasks of {job.dataset}, {_count(job.attempts, 'attempt')} each{each}"
    chosen = sum(len(job.tasks) for job in plan.jobs)
    attempts = ", ".join(
        f"{_count(job.attempts, 'attempt')} each{f' ({job.layer})' if len(plan.jobs) > 1 else ''}" for job in plan.jobs
    )
    trials = sum(job.trials or 0 for job in plan.jobs)
    longest_s = wall_s(plan)
    time = "no limit to their time" if math.isinf(longest_s) else f"at most about {_seconds(longest_s)}"
    head = f"{chosen} of {_count(plan.n_tasks, 'task')}, {attempts}: {_count(trials, 'trial')}"
    return f"{head}, {time} ({plan.jobs[0].n_concurrent} at a time)"


def wall_s(plan: Plan) -> float:
    """The longest that the agents of a local plan can take, in seconds; `math.inf` where a task sets no limit."""
    return sum(_job_wall_s(plan, job) for job in plan.jobs)


def _job_wall_s(plan: Plan, job: JobPlan) -> float:
    limits = [trial_limit_s(plan, task) for task in job.tasks]
    if math.inf in limits:
        return math.inf
    rounds = math.ceil(len(limits) * job.attempts / job.n_concurrent)
    # Two bounds of any schedule: no slot idles while trials wait, and no round is longer than the longest trial.
    whole = sum(limits) * job.attempts / job.n_concurrent + max(limits) * (1 - 1 / job.n_concurrent)
    return min(whole, rounds * max(limits))


def trial_limit_s(plan: Plan, task: Task | None) -> float:
    """The longest that one trial's agent can take: the condition's time, or less where the task gives less."""
    own = [step.agent_timeout_s for step in task.steps] if task else []
    limits = [_limit_s(plan, limit) for limit in own or [task.agent_timeout_s if task else None]]
    if plan.condition.timeout_seconds is None:
        return sum(limits)
    # The manifest's time is one for all steps of a task.
    return min(sum(limits), plan.condition.timeout_seconds + len(limits) * RESERVE_S)


def _limit_s(plan: Plan, agent_timeout_s: float | None) -> float:
    """The longest that the agent can take for a task, or for one step of it."""
    own = task_timeout_s(plan.extras.config, {"agent": {"timeout_sec": agent_timeout_s}})
    if plan.agent in MODELLESS:
        return math.inf if own is None else own
    limit = work_limit(trial_budget_s=plan.condition.timeout_seconds, task_timeout_s=own)
    return limit.work_s + RESERVE_S


def _seconds(seconds: float) -> str:
    size, unit = next(((s, u) for s, u in UNITS if seconds >= 2 * s), UNITS[-1])
    return f"{math.ceil(seconds / size)} {unit}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
