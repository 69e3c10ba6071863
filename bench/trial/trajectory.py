"""The trial's ATIF trajectory: the team's conversation is the main one, every member's own is embedded in it. Pure.

The team's steps are its messages: they took no model call of their own, so that Harbor's sums over steps count each
call once, in the member that made it. Harbor's validator lets a reference to nothing pass (HARBOR.md section 3), so
`dangling` checks them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from bench.condition import Agent, Condition
from bench.harness.builtin import Step
from bench.prices import USD_MICROS
from bench.trial.meter import call_cost

SCHEMA = "ATIF-v1.8"
TEAM = "team"
NOTES = (
    "The main trajectory is what was said in the team's channels. Each member's own steps, with its model calls, are "
    "in subagent_trajectories. Totals count the members' calls."
)


@dataclass(frozen=True)
class Played:
    """An agent and what it did."""

    agent: Agent
    steps: Sequence[Step]


def build(
    *,
    session: str,
    version: str,
    condition: Condition,
    instruction: str,
    messages: Sequence[Mapping[str, Any]],
    user: str,
    played: Sequence[Played],
) -> dict[str, Any]:
    """The trajectory as JSON. `messages` are those of the evidence, in order of arrival."""
    members = [_member(session, version, condition, p) for p in played]
    steps = list(_team_steps(instruction, messages, user, [p.agent.name for p in played]))
    totals = [member["final_metrics"] for member in members]
    return {
        "schema_version": SCHEMA,
        "session_id": session,
        "trajectory_id": TEAM,
        "agent": {
            "name": f"buzzbench {condition.name}",
            "version": version,
            "extra": {"condition_sha256": condition.sha256},
        },
        "steps": steps,
        "notes": NOTES,
        "final_metrics": {**_sum(totals, "total_"), "total_steps": len(steps)},
        "subagent_trajectories": members,
    }


def dangling(trajectory: Mapping[str, Any]) -> list[str]:
    """References to embedded trajectories that aren't there."""
    known = {member["trajectory_id"] for member in trajectory.get("subagent_trajectories", ())}
    return [ref for ref in _references(trajectory) if ref not in known]


def _team_steps(
    instruction: str, messages: Sequence[Mapping[str, Any]], user: str, names: Sequence[str]
) -> Iterator[dict[str, Any]]:
    yield {"step_id": 1, "source": "user", "message": instruction}
    yield {
        "step_id": 2,
        "source": "agent",
        "message": f"The team: {', '.join(names)}.",
        "llm_call_count": 0,
        "observation": {
            "results": [
                {"content": f"what {name} did", "subagent_trajectory_ref": [{"trajectory_id": name}]} for name in names
            ]
        },
    }
    number = 2
    for message in messages:
        if message["author"] == user and message["text"] == instruction:
            continue
        number += 1
        step: dict[str, Any] = {
            "step_id": number,
            "timestamp": datetime.fromtimestamp(message["created_at"], UTC).isoformat(),
            "source": "user" if message["author"] == user else "agent",
            "message": _line(message),
            "extra": {"event": message["id"], "channel": message["channel"]},
        }
        if step["source"] == "agent":
            step["llm_call_count"] = 0
            if message["author"] in names:
                ref = [{"trajectory_id": message["author"]}]
                step["observation"] = {"results": [{"subagent_trajectory_ref": ref}]}
        yield step


def _line(message: Mapping[str, Any]) -> str:
    to = f" → {', '.join(message['mentions'])}" if message["mentions"] else ""
    return f"{message['author']}{to}: {message['text']}"


def _member(session: str, version: str, condition: Condition, played: Played) -> dict[str, Any]:
    agent = played.agent
    steps = [_member_step(n, condition, agent, step) for n, step in enumerate(played.steps, 1)]
    if not steps:
        steps = [{"step_id": 1, "source": "system", "message": "was never mentioned"}]
    metrics = [step["metrics"] for step in steps if "metrics" in step]
    return {
        "schema_version": SCHEMA,
        "session_id": session,
        "trajectory_id": agent.name,
        "agent": {
            "name": agent.name,
            "version": version,
            "model_name": agent.model,
            "extra": {
                "member": agent.member,
                "kind": agent.kind,
                "role": agent.role,
                "harness": agent.harness,
            },
        },
        "steps": steps,
        "final_metrics": {**_sum(metrics, ""), "total_steps": len(steps)},
    }


def _member_step(number: int, condition: Condition, agent: Agent, step: Step) -> dict[str, Any]:
    head: dict[str, Any] = {"step_id": number, "timestamp": step.at}
    if step.tokens is None:
        return {**head, "source": "user", "message": step.text}
    made: dict[str, Any] = {
        **head,
        "source": "agent",
        "model_name": agent.model,
        "message": step.text,
        "llm_call_count": 1,
        "metrics": _metrics(condition, agent, step),
    }
    if step.reasoning:
        made["reasoning_content"] = step.reasoning
    if step.uses:
        made["tool_calls"] = [
            {"tool_call_id": use.call.id, "function_name": use.call.name, "arguments": dict(use.call.input)}
            for use in step.uses
        ]
        made["observation"] = {
            "results": [{"source_call_id": use.call.id, "content": use.result.text} for use in step.uses]
        }
    return made


def _metrics(condition: Condition, agent: Agent, step: Step) -> dict[str, Any]:
    tokens = step.tokens
    assert tokens is not None
    cost = call_cost(condition, agent, tokens)
    metrics: dict[str, Any] = {
        "prompt_tokens": (tokens.input or 0) + (tokens.cache_read or 0) + (tokens.cache_write or 0),
        "completion_tokens": tokens.output or 0,
        "cached_tokens": tokens.cache_read or 0,
        "extra": {"cache_write_tokens": tokens.cache_write},
    }
    return metrics if cost is None else {**metrics, "cost_usd": cost / USD_MICROS}


def _sum(parts: Sequence[Mapping[str, Any]], prefix: str) -> dict[str, Any]:
    """Totals of metrics, or (prefix `total_`) of totals. The cost is absent where one part of it is unknown."""
    totals = {
        f"total_{name}": sum(part[prefix + name] for part in parts)
        for name in ("prompt_tokens", "completion_tokens", "cached_tokens")
    }
    if all(f"{prefix}cost_usd" in part for part in parts):
        totals["total_cost_usd"] = round(sum(part[f"{prefix}cost_usd"] for part in parts), 6)
    return totals


def _references(trajectory: Mapping[str, Any]) -> Iterator[str]:
    for step in trajectory["steps"]:
        for result in step.get("observation", {}).get("results", ()):
            for reference in result.get("subagent_trajectory_ref", ()):
                yield reference["trajectory_id"]
