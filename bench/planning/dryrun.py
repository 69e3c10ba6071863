"""What a dry run prints: the plan as comments and the `harbor run` commands, so that the whole is a shell script."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from bench import harborcommand
from bench.budget import agents_said, caps_said, of_team, said
from bench.condition import Limits
from bench.faults import shown
from bench.planning.estimate import summary, wall_s
from bench.planning.harborjob import harbor_arguments, verdict
from bench.planning.jobs import JobPlan
from bench.planning.planned import Plan


def render(plan: Plan, goes_on: Sequence[str] = ()) -> str:
    """The dry run of a plan: as text, or with `--json` as one JSON object. `goes_on` says how existing jobs go on."""
    if plan.options.json:
        return json.dumps(_object(plan) | {"goes_on": list(goes_on)}, indent=2)
    lines = [*_lines(plan), *(f"resume       {line}" for line in goes_on)]
    return "\n".join([*(f"# {line}" for line in lines), *(_command(plan, job) for job in plan.jobs)])


def _lines(plan: Plan) -> list[str]:
    lines = ["A dry run: nothing is started or written.", f"tasks        {summary(plan)}"]
    lines.append(f"             {_tasks(plan)}")
    lines += [f"job          {job.name}: {_attempts(job)}, {job.n_concurrent} at a time" for job in plan.jobs]
    lines += _team(plan)
    lines += [
        f"stack        {plan.stack}",
        f"environment  {plan.environment}",
        f"stages       {', '.join(_stages(plan))}",
    ]
    for told in dict.fromkeys(verdict(plan, job) for job in plan.jobs):
        standing, *reasons = told.lines
        lines += [f"leaderboard  {standing}", *(f"           {reason}" for reason in reasons)]
    lines += [f"note         {note}" for note in plan.notes]
    if plan.options.fresh:
        lines.append("note         --fresh would drop the stack's data first")
    return lines


def _team(plan: Plan) -> list[str]:
    condition = plan.condition
    if plan.agent:
        lines = [f"agent        {plan.agent}, Harbor's own, in a team's place"]
        if condition.soloist is None or condition.path is None:
            return [*lines, "model        none"]
        return [
            *lines,
            f"condition    {condition.name}, sha256 {condition.sha256}, on the terms of {shown(condition.path)}",
            *_budget(plan),
            f"model        {condition.soloist.model}: {_model(plan)}",
        ]
    assert condition.path is not None
    team = ", ".join(f"{agent.name} ({agent.model}, {agent.harness})" for agent in condition.agents)
    return [
        f"condition    {condition.name}, sha256 {condition.sha256}, from {shown(condition.path)}",
        f"team         {team}",
        *_budget(plan),
        f"model        {_model(plan)}",
    ]


def _budget(plan: Plan) -> list[str]:
    of_agents = agents_said([(agent.name, agent.limits) for agent in plan.condition.agents])
    return [
        f"budget       of each trial: {said(of_team(plan.condition), plan.condition.timeout_seconds)}",
        *([f"             of each agent: {of_agents}"] if of_agents else []),
        *([f"             of each job: {caps_said(plan.budget)}"] if plan.budget != Limits() else []),
    ]


def _tasks(plan: Plan) -> str:
    if plan.n_tasks is None:
        job = plan.jobs[0]
        chosen = [f"only {glob}" for glob in job.include] + [f"without {glob}" for glob in job.exclude]
        return ", ".join(chosen) or "all of them"
    return ", ".join(task.directory.name for job in plan.jobs for task in job.tasks)


def _attempts(job: JobPlan) -> str:
    attempts = f"{job.attempts} attempt{'s' if job.attempts > 1 else ''} of each task"
    return attempts if job.trials is None else f"{attempts}, {job.trials} trial{'s' if job.trials > 1 else ''}"


def _model(plan: Plan) -> str:
    if plan.replay:
        return f"none: replay of {shown(plan.replay.path)}, sha256 {plan.replay.sha256}"
    if plan.rehearsal:
        return f"scripted ({plan.rehearsal}): a rehearsal proves the plumbing and measures no model"
    keys = f", keys from {', '.join(plan.key_variables)}" if plan.key_variables else ", no key"
    return ", ".join(f"{e.name} at {e.base_url}" for e in plan.endpoints.values()) + keys


def _stages(plan: Plan) -> list[str]:
    stages = ["keys", "env", *(["xbuild"] if plan.needs_agents else []), "up", "schema"]
    return [*stages, *(["gui"] if plan.options.gui else []), "run"]


def _command(plan: Plan, job: JobPlan) -> str:
    return harborcommand.line(*harbor_arguments(plan, job))


def _object(plan: Plan) -> dict[str, Any]:
    return {
        "dry_run": True,
        "rehearsal": plan.rehearsal,
        "replay": plan.replay.sha256 if plan.replay else None,
        "condition": plan.condition.name,
        "condition_sha256": plan.condition_sha256,
        "stack": plan.stack,
        "environment": plan.environment,
        "stages": _stages(plan),
        "n_tasks": plan.n_tasks,
        "agent": plan.agent,
        "budget": asdict(of_team(plan.condition)) | {"timeout_seconds": plan.condition.timeout_seconds},
        "agents_budget": {agent.name: asdict(agent.limits) for agent in plan.condition.agents},
        "job_budget": asdict(plan.budget),
        "notes": [str(note) for note in plan.notes],
        "at_most_seconds": None if plan.n_tasks is None or math.isinf(longest := wall_s(plan)) else round(longest),
        "jobs": [
            {
                "name": job.name,
                "directory": str(job.directory),
                "attempts": job.attempts,
                "dataset": job.dataset,
                "tasks": [task.name for task in job.tasks],
                "trials": job.trials,
                "leaderboard": verdict(plan, job).to_json(),
                "command": _command(plan, job),
            }
            for job in plan.jobs
        ],
    }
