"""What stands in the way of `--agent NAME`: the name, the options, the tasks, the environment, endpoint and budget."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bench.baseline import MODELLESS, WAYS, is_bounded
from bench.condition import Condition
from bench.errors import Problem
from bench.faults import no_effect
from bench.nearest import did_you_mean
from bench.planning.dataset import Task

if TYPE_CHECKING:
    from bench.condition import Limits
    from bench.endpoints import Endpoint
    from bench.planning.options import Options

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
    if endpoint.dialect == "anthropic" or is_bounded(soloist.options, way):
        return
    if condition.prices[soloist.model].max_output_tokens is not None:
        return
    what = f"a budget in money or tokens needs a bound on each answer, and {soloist.agent} sends none"
    fix = f"set prices.{soloist.model}.max_output_tokens in the manifest"
    if way:
        fix += ", or generation.max_output_tokens"
    yield Problem("--agent", what, fix)
