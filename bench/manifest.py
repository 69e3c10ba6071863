"""The condition that a team manifest describes: who plays, on which models, at which prices and limits.

The file's form (SEED.md row R4) is in `bench/manifest_schema.py`, what its fields say together in
`bench/manifest_checks.py`; both need pydantic and are imported only when a manifest is loaded.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bench.errors import raise_problems

if TYPE_CHECKING:
    from bench.manifest_checks import Texts
    from bench.manifest_schema import Member, Pinned

type Kind = Literal["orchestrator", "worker"]
type Harness = Literal["builtin", "buzz-agent", "goose", "codex"]

REAL_HARNESSES = frozenset({"buzz-agent"})
"""Those that run as real processes in the task's environment."""

RUNNABLE_HARNESSES = frozenset({"builtin", *REAL_HARNESSES})
"""The harnesses that can run here; a condition with another one can be planned, hashed and dry-run only."""

BUZZ_AGENT_EXTRAS = frozenset(
    {
        *("max_rounds", "max_handoffs", "max_parallel_tools", "max_tool_result_text_bytes", "max_history_bytes"),
        *("tool_timeout_secs", "llm_timeout_secs", "no_hints", "prompt_caching", "require_reply"),
    }
)
"""What `generation.extra` may set of a buzz-agent: its variables without `BUZZ_AGENT_` (BUZZ.md section 5)."""


@dataclass(frozen=True)
class Limits:
    """A cap on what may be spent; None means no cap. Money is in micro-dollars."""

    usd_micros: int | None = None
    tokens: int | None = None
    calls: int | None = None


@dataclass(frozen=True)
class Tier:
    """The rates of a call whose whole prompt has more than `above_tokens` tokens: they hold for all its tokens."""

    above_tokens: int
    input: int
    cache_read: int
    cache_write: int
    output: int


@dataclass(frozen=True)
class Price:
    """Micro-dollars per million tokens, one rate for each class of tokens. `tiers` rise in `above_tokens`."""

    input: int
    cache_read: int
    cache_write: int
    output: int
    tiers: tuple[Tier, ...] = ()


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
class Condition:
    """A team and the terms on which it plays.

    `prices` is keyed by model. `limits` are those of a whole trial, and `timeout_seconds` its time. `overrides` are
    the environment's resources that replace the task's own (`override_cpus`, `override_memory_mb`,
    `override_storage_mb`). `canonical` is the JSON whose SHA-256 is `sha256`, the condition's identity. `unenforced`
    names fields that a run could not hold to. A baseline has no agents of ours, no time of its own and no file.
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

    @property
    def orchestrator(self) -> Agent:
        return next(agent for agent in self.agents if agent.kind == "orchestrator")

    @property
    def workers(self) -> tuple[Agent, ...]:
        return tuple(agent for agent in self.agents if agent.kind == "worker")

    @property
    def harnesses(self) -> tuple[str, ...]:
        """The kinds of harness that the roster uses, sorted."""
        return tuple(sorted({agent.harness for agent in self.agents}))

    @property
    def endpoints(self) -> tuple[str, ...]:
        """The names of the endpoints that the roster uses, in its order."""
        return tuple(dict.fromkeys(agent.endpoint for agent in self.agents))


def load(path: Path) -> Condition:
    """The condition in a manifest. Raises InvalidInput with every fault, each with its file, line and field."""
    from bench import yamlfile
    from bench.manifest_checks import check
    from bench.manifest_schema import validate

    document = yamlfile.read(path, what="manifest")
    texts: Texts = {}
    manifest, problems = validate(document)
    raise_problems([*problems, *check(document, path, texts)])
    assert manifest
    content = manifest.model_dump(mode="json", exclude_defaults=True)
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return Condition(
        name=manifest.condition,
        agents=tuple(agent for member in manifest.roster for agent in _expand(member, texts)),
        prices={m.model_revision: manifest.price_of(m).rates() for m in manifest.roster},
        timeout_seconds=manifest.trial_budget.timeout_seconds,
        path=path.resolve(),
        canonical=canonical,
        sha256=hashlib.sha256(canonical.encode()).hexdigest(),
        limits=manifest.trial_budget.limits(),
        overrides=manifest.environment.model_dump(exclude_none=True),
        unenforced=manifest.unenforced,
    )


def agent_names(member_id: str, count: int) -> list[str]:
    """The names of a member's agents: `worker-1` and `worker-2`; the bare id where there is one."""
    return [member_id] if count == 1 else [f"{member_id}-{n}" for n in range(1, count + 1)]


def _expand(member: Member, texts: Texts) -> Iterator[Agent]:
    generation = member.generation

    def text(pinned: Pinned) -> str:
        return texts[pinned.path, pinned.sha256]

    for index, name in enumerate(agent_names(member.id, member.count), start=1):
        yield Agent(
            name=name,
            member=member.id,
            index=index,
            kind=member.kind,
            role=member.role,
            harness=member.harness,
            endpoint=member.endpoint,
            model=member.model_revision,
            prompt=text(member.prompt),
            persona=text(member.persona) if member.persona else None,
            skills=tuple(text(skill) for skill in member.skills),
            max_output_tokens=generation.max_output_tokens,
            context_window_tokens=generation.context_window_tokens,
            thinking_effort=generation.thinking_effort,
            limits=member.budget.limits(),
            concurrency=member.concurrency,
            platform_prompt=member.include_platform_prompt,
            extra=generation.extra,
        )
