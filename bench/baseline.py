"""`--agent NAME`: one of Harbor's own agents in the team's place, on the same tasks, attempts and environment."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bench.condition import Condition
from bench.dataset import Task
from bench.errors import Problem
from bench.faults import no_effect
from bench.nearest import did_you_mean

if TYPE_CHECKING:
    from bench.options import Options

MODELLESS = ("oracle", "nop")
"""Agents that ask no model: a task's own solution, and one that does nothing."""

HARBOR_AGENTS = (  # noqa: SIM905  (a list would be a line for each)
    "oracle nop acp claude-code cline-cli cortex-code terminus terminus-1 terminus-2 aider codex cursor-cli gemini-cli "
    "antigravity-cli rovodev-cli goose grok-build hermes junie mini-swe-agent nemo-agent swe-agent opencode openclaw "
    "openhands openhands-sdk antigravity-sdk kimi-code kimi-cli langgraph deerflow mimo mcode pi qwen-coder "
    "copilot-cli code-puppy devin trae-agent computer-1 eve fx fx-dev dspy-rlm vibe muse-code strands fabric "
    "opencode-v2"
).split()
"""Harbor 0.26's `AgentName`, which a contract test holds this to: importing it takes longer than a dry run."""


def problems(options: Options) -> Iterator[Problem]:
    """What stands in the way of the agent that `--agent` names."""
    name = options.agent
    if name not in HARBOR_AGENTS:
        known = did_you_mean(str(name), HARBOR_AGENTS) or f"it is one of {', '.join(MODELLESS)}"
        yield Problem("--agent", f"Harbor has no agent {name!r}", known)
    elif name not in MODELLESS:
        what = (
            f"{name} asks a model, and from a task's environment there is no way yet to the gateway that would meter it"
        )
        yield Problem("--agent", what, f"baselines are {' and '.join(MODELLESS)}")
    given = {
        "--rehearsal": options.rehearsal,
        "--script": options.script,
        "--manifest": options.manifest,
        "--endpoint-config": options.endpoint_config,
        "--record": options.record,
        "--budget-usd": options.budget_usd,
        "--budget-tokens": options.budget_tokens,
        "--budget-calls": options.budget_calls,
    }
    yield from no_effect("--agent", "takes the team's place", given)


def solution_problems(tasks: Sequence[Task]) -> Iterator[Problem]:
    """Tasks that the oracle can't solve, for want of a solution."""
    missing = [task.directory.name for task in tasks if not task.has_solution]
    if missing:
        yield Problem("--agent oracle", f"no solution/solve.sh in {', '.join(missing)}", "leave them out with -x")


def condition(name: str) -> Condition:
    """The condition that a baseline is: its name alone. Its results are never pooled with a team's."""
    canonical = json.dumps({"agent": name}, sort_keys=True, separators=(",", ":"))
    return Condition(
        name=name,
        agents=(),
        prices={},
        timeout_seconds=None,
        path=None,
        canonical=canonical,
        sha256=hashlib.sha256(canonical.encode()).hexdigest(),
    )
