"""`--agent NAME`: one of Harbor's own agents in the team's place, on the same tasks, attempts and environment.

Those that ask a model do it through the gateway, like a team's: on the terms of a manifest, with a token of each trial.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from bench import budget
from bench.condition import Condition, Soloist
from bench.errors import Problem
from bench.faults import shown
from bench.nearest import did_you_mean

if TYPE_CHECKING:
    from bench.endpoints import Dialect

MODELLESS = ("oracle", "nop")
"""Agents that ask no model: a task's own solution, and one that does nothing."""

MEMBER = "baseline"
"""As whom such an agent's model calls are booked."""

MANIFEST = "manifests/builtin-solo.yaml"
"""Whose terms hold where no other manifest is named: one agent alone."""


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


def is_bounded(options: Mapping[str, Any], way: tuple[str, ...]) -> bool:
    """Whether an agent's options bound what an answer may use."""
    from bench.scoring.outcome import dig

    return bool(way) and dig(options, *way) is not None


def _bound_in(options: Mapping[str, Any], way: tuple[str, ...]) -> int | None:
    """The bound that the options set; what is no such number is Harbor's to refuse."""
    from bench.scoring.outcome import dig

    tokens = dig(options, *way) if way else None
    return tokens if type(tokens) is int and tokens > 0 else None


def _bounded(options: Mapping[str, Any], way: tuple[str, ...], tokens: int | None) -> dict[str, Any]:
    """The options with a bound of so many tokens to each answer, where there is a way to say it and none is set."""
    if tokens is None or not way or is_bounded(options, way):
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
