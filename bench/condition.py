"""A condition: who plays, on which models, with which prompts, at which prices and limits. Its hash names it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from bench.errors import Problem
from bench.faults import shown
from bench.prices import Price

type Kind = Literal["orchestrator", "worker"]
type Harness = Literal["builtin", "buzz-agent", "goose", "codex"]

REAL_HARNESSES = frozenset({"buzz-agent"})
"""Those that run as real processes in the task's environment."""

RUNNABLE_HARNESSES = frozenset({"builtin", *REAL_HARNESSES})
"""The harnesses that can run here; a condition with another one can be planned, hashed and dry-run only."""


def trust_domain(harnesses: Sequence[str]) -> Literal["agent", "trial"] | None:
    """Within what a message's author is sure; None where there are no agents of ours.

    Agents of one container can read each other's keys (DESIGN decision 8), those on the host can't.
    """
    if not harnesses:
        return None
    return "agent" if REAL_HARNESSES.isdisjoint(harnesses) else "trial"


BUZZ_AGENT_EXTRAS = frozenset(
    {
        *("max_rounds", "max_handoffs", "max_parallel_tools", "max_tool_result_text_bytes", "max_history_bytes"),
        *("tool_timeout_secs", "llm_timeout_secs", "no_hints", "prompt_caching", "require_reply"),
    }
)
"""What `generation.extra` may set of a buzz-agent: its variables without `BUZZ_AGENT_` (BUZZ.md section 5)."""


DEFAULT_OUTPUT_TOKENS = 8192
"""What an answer of a builtin agent may have at most, where its manifest doesn't say (Anthropic's dialect wants that to
be said), and its model can answer with so many."""


@dataclass(frozen=True)
class Limits:
    """A cap on what may be spent; None means no cap. Money is in micro-dollars."""

    usd_micros: int | None = None
    tokens: int | None = None
    calls: int | None = None


@dataclass(frozen=True)
class Agent:
    """One agent of a team: `worker-2` is the second of the member `worker`; a lone one keeps the bare id.

    `prompt`, `persona` and `skills` are the texts themselves, already checked against their hashes. `platform_prompt`
    keeps Buzz's own guide in a real agent's system prompt.
    """

    name: str
    member: str
    index: int
    kind: Kind
    role: str
    harness: Harness
    endpoint: str
    model: str
    prompt: str
    persona: str | None = None
    skills: tuple[str, ...] = ()
    max_output_tokens: int | None = None
    context_window_tokens: int | None = None
    thinking_effort: str | None = None
    limits: Limits = Limits()
    concurrency: int = 1
    platform_prompt: bool = True
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Settings of its own harness alone."""


@dataclass(frozen=True)
class Soloist:
    """One of Harbor's agents that plays in a team's place, on the model of a manifest; `options` are its own.

    `max_output_tokens` bounds each of its answers, as far as those options tell.
    """

    agent: str
    endpoint: str
    model: str
    options: Mapping[str, Any] = field(default_factory=dict)
    max_output_tokens: int | None = None


@dataclass(frozen=True)
class Condition:
    """A team and the terms on which it plays.

    `prices` is keyed by model. `limits` are those of a whole trial, and `timeout_seconds` its time. `overrides` are
    the environment's resources that replace the task's own (`override_cpus`, `override_memory_mb`,
    `override_storage_mb`). `canonical` is the JSON whose SHA-256 is `sha256`, the condition's identity. `unenforced`
    names fields that a run could not hold to. A baseline has no agents of ours: it has a `soloist`, whose terms are of
    the manifest at `path`, or neither, where it asks no model.
    """

    name: str
    agents: tuple[Agent, ...]
    prices: Mapping[str, Price]
    timeout_seconds: int | None
    path: Path | None
    canonical: str
    sha256: str
    limits: Limits = Limits()
    overrides: Mapping[str, int] = field(default_factory=dict)
    unenforced: tuple[str, ...] = ()
    soloist: Soloist | None = None
    notes: tuple[Problem, ...] = ()
    """What in the manifest is allowed, and may be meant otherwise."""

    @property
    def where(self) -> str:
        """Its manifest, as messages name the place; the name of what has none."""
        return shown(self.path) if self.path else self.name

    @property
    def orchestrator(self) -> Agent:
        return next(agent for agent in self.agents if agent.kind == "orchestrator")

    @property
    def workers(self) -> tuple[Agent, ...]:
        return tuple(agent for agent in self.agents if agent.kind == "worker")

    def output_bound(self, agent: Agent) -> int | None:
        """What bounds each of an agent's answers, in tokens; None where that is its harness's own affair."""
        if agent.max_output_tokens is not None or agent.harness != "builtin":
            return agent.max_output_tokens
        price = self.prices.get(agent.model)
        most = price.max_output_tokens if price else None
        return DEFAULT_OUTPUT_TOKENS if most is None else min(most, DEFAULT_OUTPUT_TOKENS)

    @property
    def harnesses(self) -> tuple[str, ...]:
        """The kinds of harness that the roster uses, sorted."""
        return tuple(sorted({agent.harness for agent in self.agents}))

    @property
    def is_real(self) -> bool:
        """Whether Buzz's own processes take part, which run in the task's environment."""
        return not REAL_HARNESSES.isdisjoint(self.harnesses)

    @property
    def endpoints(self) -> tuple[str, ...]:
        """The names of the endpoints that the roster uses, in its order, or the soloist."""
        if self.soloist:
            return (self.soloist.endpoint,)
        return tuple(dict.fromkeys(agent.endpoint for agent in self.agents))


def agent_names(member_id: str, count: int) -> list[str]:
    """The names of a member's agents: `worker-1` and `worker-2`; the bare id where there is one."""
    return [member_id] if count == 1 else [f"{member_id}-{n}" for n in range(1, count + 1)]
