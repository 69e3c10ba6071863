"""What the control socket carries: requests, replies and notices as frozen values.

Both ends use these; the wire is JSON lines (ARCHITECTURE.md, "The gateway's control socket"). Secrets have
no repr.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from bench.condition import Limits
from bench.endpoints import Dialect, Provider
from bench.gateway.backoff import USUAL, Patience
from bench.prices import Price

VERSION = 1

type FaultKind = Literal[
    "script_mismatch",
    "script_exhausted",
    "upstream_refused",
    "upstream_failed",
    "upstream_limit",
    "agent_budget",
    "trial_budget",
    "job_budget",
    "replay_miss",
    "receipts_failed",
    "gateway_lost",
]


@dataclass(frozen=True)
class Endpoint:
    """An upstream.

    `base_url` is as its provider's own clients take it: with `/v1` for OpenAI, without for Anthropic. `dialect` is for
    `scripted` and `replay` alone: the one that agents speak to it. An empty `api_key` sends none (a local server).
    """

    provider: Provider
    base_url: str = ""
    api_key: str = field(default="", repr=False)
    dialect: Dialect | None = None

    @property
    def spoken(self) -> Dialect:
        """The dialect that agents speak to this endpoint."""
        if self.provider == "scripted" or self.provider == "replay":
            return self.dialect or "anthropic"
        return self.provider


@dataclass(frozen=True)
class Context:
    """Where the scripted model acts: channel id, the user's name, the public keys of all members by name."""

    channel: str
    user: str
    members: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Recording:
    """A cassette to be made at `path`, absolute, and what its header says of the condition."""

    path: str
    condition: str
    condition_sha256: str
    rehearsal: str | None = None


@dataclass(frozen=True)
class Registration:
    """A job, as `register` brings it. `receipts` is the journal's absolute path.

    `record` has its calls recorded. `replay` is the absolute path of the cassette that its endpoints of the provider
    `replay` play.
    """

    job: str
    receipts: str
    endpoints: Mapping[str, Endpoint]
    prices: Mapping[str, Price]
    prices_sha256: str
    budget: Limits | None = None
    record: Recording | None = None
    replay: str | None = None
    patience: Patience = USUAL


@dataclass(frozen=True)
class Issue:
    """An agent that gets a token. `limits` are the agent's own; `trial_limits` those of its whole trial.

    `limits.tokens` counts all four classes, `limits.calls` upstream attempts.
    """

    trial: str
    task: str
    agent: str
    member: str
    endpoint: str
    models: tuple[str, ...]
    limits: Limits | None = None
    trial_limits: Limits | None = None
    script: Mapping[str, Any] | None = None
    context: Context | None = None


@dataclass(frozen=True)
class Grant:
    """An agent's token and where to use it: `base_url` has no path; `/v1/…` and `/…` both work below it.

    `turns`, in a replay, says whose mentions began each recorded turn of the agent.
    """

    token: str = field(repr=False)
    base_url: str
    turns: tuple[tuple[str, ...], ...] | None = None


@dataclass(frozen=True)
class AgentUsage:
    """What one agent used. A class is None where calls were made and none of them reported it.

    `calls` are upstream attempts that have ended, `sent_calls` all that have gone out, those under way among them;
    `unknown_calls` ended without a full report (their known part is in the sums); `refused_calls` are those that the
    gateway answered itself: late, over budget, or not allowed. `held_calls` still waited for an upstream in trouble
    when the agent's token died. `capped_calls` are those of the refused ones that a cap of the agent's own refused.
    """

    calls: int = 0
    input_tokens: int | None = 0
    cache_read_tokens: int | None = 0
    cache_write_tokens: int | None = 0
    output_tokens: int | None = 0
    cost_usd_micros: int | None = 0
    unknown_calls: int = 0
    refused_calls: int = 0
    held_calls: int = 0
    capped_calls: int = 0
    sent_calls: int = 0

    def since(self, before: AgentUsage) -> AgentUsage:
        """What was used after an earlier count of the same agent."""
        now, then = asdict(self), asdict(before)
        left: dict[str, Any] = {n: None if used is None else used - (then[n] or 0) for n, used in now.items()}
        return AgentUsage(**left)


@dataclass(frozen=True)
class Notice:
    """Something that happened to an agent's calls, told once for each kind of an agent.

    - `script_mismatch`, `script_exhausted`: the trial can't be judged
    - `upstream_refused`: 401, 402 or 403; nobody should go on
    - `upstream_failed`: a call failed at last (no connection, a timeout, 429 or 5xx); an agent may survive it
    - `upstream_limit`: the upstream's limit resets later than the job waits
    - `agent_budget`, `trial_budget`, `job_budget`: a cap of that scope refused a call
    - `replay_miss`: a call that the cassette doesn't have; the trial can't be judged
    - `receipts_failed`: the journal can't be written (a full disk), and no call is answered any more
    - `gateway_lost`: the gateway is gone, and every token with it (made by the client)
    """

    kind: FaultKind
    reason: str
    trial: str = ""
    agent: str = ""


type JobState = Literal["stopped", "waiting", "budget", "note"]


@dataclass(frozen=True)
class JobNotice:
    """Something that concerns the whole job. `reason` is one line for people.

    - `stopped`: an upstream refused (a wrong key, no money); no call goes out any more, and no open trial can be judged
    - `waiting`: an upstream's limit resets at `until` (ISO 8601, UTC), later than the job waits
    - `budget`: the job's own cap refused a call
    - `note`: for people alone: a cap of any scope is nearly reached, or calls wait for an upstream in trouble
    """

    state: JobState
    reason: str
    until: str | None = None
