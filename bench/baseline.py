"""`--agent NAME`: one of Harbor's own agents in the team's place, on the same tasks, attempts and environment.

Those that ask a model do it through the gateway, like a team's: on the terms of a manifest, with a token of each trial.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from bench import budget
from bench.condition import Condition, Soloist
from bench.errors import Problem
from bench.faults import no_effect, shown
from bench.nearest import did_you_mean

if TYPE_CHECKING:
    from bench.condition import Limits
    from bench.endpoints import Dialect, Endpoint
    from bench.planning.dataset import Task
    from bench.planning.options import Options

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
    bound: tuple[str, ...] = ()
    """The option of Harbor's that bounds what an answer may use, and the key in it; none where there is no such option.

    A cap in money or tokens needs it: the gateway reserves that much before it sends a call.
    """


BOTH = Way({"anthropic": MESSAGES, "openai": CHAT})
BOUNDED = replace(BOTH, bound=("max_tokens",))
WAYS: Mapping[str, Way] = {
    "claude-code": Way({"anthropic": MESSAGES}),
    "codex": Way({"openai": RESPONSES}),
    "qwen-coder": Way({"openai": CHAT}),
    "vibe": Way({"openai": CHAT}, bound=("max_tokens",)),
    "terminus-2": Way(BOTH.formats, installed=False, bound=("llm_call_kwargs", "max_tokens")),
    **dict.fromkeys(("goose", "mini-swe-agent", "trae-agent"), BOUNDED),
    **dict.fromkeys(
        ("aider", "kimi-code", "opencode", "openhands", "openhands-sdk", "pi", "strands", "swe-agent"), BOTH
    ),
}
"""The agents that Harbor can send elsewhere (its `base_url`, `model_api_key_name` and `model_api_format`); a contract
test holds each to Harbor. The gateway has its paths with `/v1` and without, so that one base URL serves all of them."""


def asks_model(agent: str | None) -> bool:
    """Whether an agent that `--agent` names asks a model, and can."""
    return agent in WAYS


def cassette_problems(option: str, agent: str | None) -> Iterator[Problem]:
    """Why nothing is recorded of an agent, or played to it: `option` is the one that asks for it.

    Terminus 2 can: it calls from Harbor's process, one call after the other, with what the terminal showed alone.
    """
    if agent in MODELLESS:
        yield Problem(option, f"{agent} makes no model call through the gateway", f"leave {option} out")
    elif (way := WAYS.get(str(agent))) is not None and way.installed:
        what = (
            f"{agent} runs in the task's environment and asks with values of its own session, some calls side by side: "
            "another run of it would not ask what was recorded"
        )
        yield Problem(option, what, f"leave {option} out, or take terminus-2, which calls from outside")


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
    if options.record:
        yield from cassette_problems("--record", name)


def option_problems(agent: str, options: Mapping[str, Any]) -> Iterator[Problem]:
    """Options of `--agent-kwarg` that Harbor's agent doesn't have, or not with such a value.

    Only where there are any is the agent imported, which may take seconds.
    """
    if not options:
        return
    # As in the job itself: litellm would fetch its prices from the network when it is imported.
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    from harbor.agents.factory import AgentFactory
    from harbor.models.agent.name import AgentName

    try:
        AgentFactory.get_agent_class(AgentName(agent)).parse_options(dict(options))
    except ValueError as error:
        # Its first line names the agent, its last a command of Harbor's.
        said = [line.strip().rstrip(".") for line in str(error).splitlines() if line.startswith("  ")] or [str(error)]
        fix = f"harbor agent schema {agent} lists its options"
        yield Problem("--agent-kwarg", f"{agent} refuses it: {'; '.join(said)}", fix)


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


def bound_problems(condition: Condition, endpoints: Mapping[str, Endpoint], of_job: Limits) -> Iterator[Problem]:
    """A cap in money or tokens on an agent whose calls don't say what an answer may use, nor does its model's price.

    The gateway would refuse each of them. In Anthropic's dialect every call has to say it.
    """
    soloist = condition.soloist
    endpoint = endpoints.get(soloist.endpoint) if soloist else None
    caps = (condition.limits, of_job)
    if soloist is None or endpoint is None or all(c.usd_micros is None and c.tokens is None for c in caps):
        return
    way = WAYS[soloist.agent].bound
    if endpoint.dialect == "anthropic" or _is_bounded(soloist.options, way):
        return
    if condition.prices[soloist.model].max_output_tokens is not None:
        return
    what = f"a budget in money or tokens needs a bound on each answer, and {soloist.agent} sends none"
    fix = f"set prices.{soloist.model}.max_output_tokens in the manifest"
    if way:
        fix += ", or generation.max_output_tokens"
    yield Problem("--agent", what, fix)


def _is_bounded(options: Mapping[str, Any], way: tuple[str, ...]) -> bool:
    from bench.scoring.outcome import dig

    return bool(way) and dig(options, *way) is not None


def _bound_in(options: Mapping[str, Any], way: tuple[str, ...]) -> int | None:
    """The bound that the options set; what is no such number is Harbor's to refuse."""
    from bench.scoring.outcome import dig

    tokens = dig(options, *way) if way else None
    return tokens if type(tokens) is int and tokens > 0 else None


def _bounded(options: Mapping[str, Any], way: tuple[str, ...], tokens: int | None) -> dict[str, Any]:
    """The options with a bound of so many tokens to each answer, where there is a way to say it and none is set."""
    if tokens is None or not way or _is_bounded(options, way):
        return dict(options)
    name, *inner = way
    if not inner:
        return {**options, name: tokens}
    section = options.get(name) or {}
    # What is no mapping is Harbor's to refuse.
    return {**options, name: {**section, inner[0]: tokens}} if isinstance(section, Mapping) else dict(options)


def condition(name: str) -> Condition:
    """The condition that a baseline without a model is: its name alone. Its results are never pooled with a team's."""
    canonical, sha256 = _hashed({"agent": name})
    return Condition(name, (), {}, None, None, canonical, sha256)


def on_terms_of(team: Condition, agent: str, options: Mapping[str, Any], model: str | None) -> Condition | Problem:
    """The condition of an agent that plays with the model, at the prices and within the budgets of a team and its lead.

    `model` is another one of the manifest's, None for its lead's. An answer is bounded as that member's, where the
    agent has an option for it.
    """
    seats = {seat.model: seat for seat in reversed(team.agents)}
    wanted = model or team.orchestrator.model
    seat = seats.get(wanted)
    if seat is None:
        where = shown(team.path) if team.path else team.name
        known = did_you_mean(wanted, seats) or f"it has {', '.join(sorted(seats))}"
        return Problem("--model", f"{where} has no model {wanted!r}, so that nobody knows its price", known)
    seat = team.orchestrator if model is None else seat
    price, limits = team.prices[seat.model], budget.narrowest(team.limits, seat.limits)
    own = _bounded(options, WAYS[agent].bound, seat.max_output_tokens)
    soloist = Soloist(agent, seat.endpoint, seat.model, own, _bound_in(own, WAYS[agent].bound))
    told = {
        "agent": agent,
        "options": soloist.options,
        "endpoint": seat.endpoint,
        "model": seat.model,
        "price": {name: value for name, value in asdict(price).items() if name != "max_output_tokens" or value},
        "limits": asdict(limits),
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
        limits=limits,
        overrides=team.overrides,
        soloist=soloist,
        notes=team.notes,
    )


def _hashed(told: Mapping[str, Any]) -> tuple[str, str]:
    """The canonical text of a condition, and its hash."""
    canonical = json.dumps(told, sort_keys=True, separators=(",", ":"))
    return canonical, hashlib.sha256(canonical.encode()).hexdigest()
