"""`--agent NAME`: one of Harbor's own agents in the team's place, on the same tasks, attempts and environment.

Those that ask a model do it through the gateway, like a team's: on the terms of a manifest, with a token of each trial.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from bench.condition import Condition, Soloist
from bench.dataset import Task
from bench.errors import Problem
from bench.faults import no_effect, shown
from bench.nearest import did_you_mean

if TYPE_CHECKING:
    from bench.endpoints import Dialect, Endpoint
    from bench.options import Options

MODELLESS = ("oracle", "nop")
"""Agents that ask no model: a task's own solution, and one that does nothing."""

MEMBER = "baseline"
"""As whom such an agent's model calls are booked."""

MANIFEST = "manifests/builtin-solo.yaml"
"""Whose terms hold where no other manifest is named: one agent alone."""

HARBOR_AGENTS = (  # noqa: SIM905  (a list would be a line for each)
    "oracle nop acp claude-code cline-cli cortex-code terminus terminus-1 terminus-2 aider codex cursor-cli gemini-cli "
    "antigravity-cli rovodev-cli goose grok-build hermes junie mini-swe-agent nemo-agent swe-agent opencode openclaw "
    "openhands openhands-sdk antigravity-sdk kimi-code kimi-cli langgraph deerflow mimo mcode pi qwen-coder "
    "copilot-cli code-puppy devin trae-agent computer-1 eve fx fx-dev dspy-rlm vibe muse-code strands fabric "
    "opencode-v2"
).split()
"""Harbor 0.26's `AgentName`, which a contract test holds this to: importing it takes longer than a dry run."""

MESSAGES, CHAT, RESPONSES = "anthropic_messages", "openai_chat_completions", "openai_responses"
"""Of Harbor's `ModelApiFormat`, those that the gateway speaks."""


@dataclass(frozen=True)
class Way:
    """How an agent of Harbor's gets to the gateway: the API format that it is told for an endpoint of each dialect.

    Harbor tells each agent base URL and key in the agent's own way (its variables, its configuration file). Those that
    are installed call from the task's environment, the others from Harbor's process.
    """

    formats: Mapping[Dialect, str]
    installed: bool = True


BOTH = Way({"anthropic": MESSAGES, "openai": CHAT})
WAYS: Mapping[str, Way] = {
    "claude-code": Way({"anthropic": MESSAGES}),
    "codex": Way({"openai": RESPONSES}),
    "qwen-coder": Way({"openai": CHAT}),
    "vibe": Way({"openai": CHAT}),
    "terminus-2": Way(BOTH.formats, installed=False),
    **dict.fromkeys(
        (
            *("aider", "goose", "kimi-code", "mini-swe-agent", "opencode", "openhands", "openhands-sdk", "pi"),
            *("strands", "swe-agent", "trae-agent"),
        ),
        BOTH,
    ),
}
"""The agents that Harbor can send elsewhere (its `base_url`, `model_api_key_name` and `model_api_format`); a contract
test holds each to Harbor. The gateway has its paths with `/v1` and without, so that one base URL serves all of them."""


def asks_model(agent: str | None) -> bool:
    """Whether an agent that `--agent` names asks a model, and can."""
    return agent in WAYS


def problems(options: Options) -> Iterator[Problem]:
    """What stands in the way of the agent that `--agent` names."""
    name = options.agent
    if name not in HARBOR_AGENTS:
        known = did_you_mean(str(name), HARBOR_AGENTS) or f"it is one of {_listed()}"
        yield Problem("--agent", f"Harbor has no agent {name!r}", known)
    elif name not in MODELLESS and name not in WAYS:
        what = f"Harbor can't send {name}'s model calls to the gateway, which would meter and price them"
        yield Problem("--agent", what, f"baselines are {_listed()}")
    given: dict[str, object] = {
        "--rehearsal": options.rehearsal,
        "--script": options.script,
        "--record": options.record,
    }
    if name not in WAYS:
        given |= {
            "--manifest": options.manifest,
            "--endpoint-config": options.endpoint_config,
            "--model": options.model,
            "--budget-usd": options.budget_usd,
            "--budget-tokens": options.budget_tokens,
            "--budget-calls": options.budget_calls,
        }
    yield from no_effect("--agent", "takes the team's place", given)


def _listed() -> str:
    return ", ".join([*MODELLESS, *sorted(WAYS)])


def solution_problems(tasks: Sequence[Task]) -> Iterator[Problem]:
    """Tasks that the oracle can't solve, for want of a solution."""
    missing = [task.directory.name for task in tasks if not task.has_solution]
    if missing:
        yield Problem("--agent oracle", f"no solution/solve.sh in {', '.join(missing)}", "leave them out with -x")


def reach_problems(tasks: Sequence[Task], condition: Condition, environment: str) -> Iterator[Problem]:
    """Where an agent that is installed in a task's environment would not reach the gateway from there."""
    soloist = condition.soloist
    if soloist is None or not WAYS[soloist.agent].installed:
        return
    if environment == "sandbox":
        what = f"{soloist.agent} would need a network there, which the sandbox gives no real model"
        yield Problem("--agent", what, "use another environment, such as -e docker")
        return
    for task in tasks:
        mode = next((mode for mode in task.network_modes if mode not in (None, "public")), None)
        if mode:
            what = f"declares network_mode {mode!r}, in which {soloist.agent} does not reach the gateway"
            yield Problem(task.name, what, "leave it out with -x, or take terminus-2, which calls from outside")


def endpoint_problems(condition: Condition, endpoints: Mapping[str, Endpoint]) -> Iterator[Problem]:
    """An endpoint whose dialect the agent doesn't speak."""
    soloist = condition.soloist
    endpoint = endpoints.get(soloist.endpoint) if soloist else None
    if soloist is None or endpoint is None or endpoint.dialect in WAYS[soloist.agent].formats:
        return
    spoken = " and ".join(WAYS[soloist.agent].formats)
    what = f"{soloist.agent} speaks {spoken}, and the endpoint {endpoint.name} speaks {endpoint.dialect}"
    yield Problem("--agent", what, "name a --manifest, or a --model of it, on another endpoint")


def condition(name: str) -> Condition:
    """The condition that a baseline without a model is: its name alone. Its results are never pooled with a team's."""
    canonical, sha256 = _hashed({"agent": name})
    return Condition(name, (), {}, None, None, canonical, sha256)


def on_terms_of(team: Condition, agent: str, options: Mapping[str, Any], model: str | None) -> Condition | Problem:
    """The condition of an agent that plays with the model, at the prices and within the budget of a team's lead.

    `model` is another one of the manifest's, None for its lead's.
    """
    seats = {seat.model: seat for seat in reversed(team.agents)}
    wanted = model or team.orchestrator.model
    seat = seats.get(wanted)
    if seat is None:
        where = shown(team.path) if team.path else team.name
        known = did_you_mean(wanted, seats) or f"it has {', '.join(sorted(seats))}"
        return Problem("--model", f"{where} has no model {wanted!r}, so that nobody knows its price", known)
    seat = team.orchestrator if model is None else seat
    price = team.prices[seat.model]
    soloist = Soloist(agent, seat.endpoint, seat.model, dict(options))
    told = {
        "agent": agent,
        "options": soloist.options,
        "endpoint": seat.endpoint,
        "model": seat.model,
        "price": asdict(price),
        "limits": asdict(team.limits),
        "timeout_seconds": team.timeout_seconds,
        "overrides": dict(team.overrides),
    }
    canonical, sha256 = _hashed(told)
    return Condition(
        name=agent,
        agents=(),
        prices={seat.model: price},
        timeout_seconds=team.timeout_seconds,
        path=team.path,
        canonical=canonical,
        sha256=sha256,
        limits=team.limits,
        overrides=team.overrides,
        soloist=soloist,
    )


def _hashed(told: Mapping[str, Any]) -> tuple[str, str]:
    """The canonical text of a condition, and its hash."""
    canonical = json.dumps(told, sort_keys=True, separators=(",", ":"))
    return canonical, hashlib.sha256(canonical.encode()).hexdigest()
