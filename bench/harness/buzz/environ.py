"""The environment of one agent's process tree, as a file for a shell. Pure. Names are those of BUZZ.md, 4 and 5."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.condition import Agent
from bench.harness.buzz.fixed import IDLE_TIMEOUT_S

LLM_TIMEOUT_S = 1800
"""buzz-agent gives a call up after 240 s without a byte, and doesn't stream: a long answer would be paid three times.
Whether a call takes too long is the trial's deadline's to say."""


@dataclass(frozen=True)
class Login:
    """What one agent proves itself with: its Nostr key, the owner's attestation of it, its token for the gateway."""

    secret: str = field(repr=False)
    auth_tag: Sequence[str] = field(repr=False)
    token: str = field(repr=False)


@dataclass(frozen=True)
class Place:
    """Where a team's agents are: `team` is the kit's directory and `programs` that of the programs, both inside."""

    relay_url: str
    team: str
    programs: str


def variables(agent: Agent, login: Login, place: Place, *, dialect: str) -> dict[str, str]:
    """The variables but for the gateway's address, which is known only inside."""
    return {
        "BUZZ_RELAY_URL": place.relay_url,
        "BUZZ_PRIVATE_KEY": login.secret,
        "BUZZ_AUTH_TAG": json.dumps(list(login.auth_tag), separators=(",", ":")),
        "BUZZ_ACP_AGENT_COMMAND": f"{place.team}/agent.sh",
        # Unset it would be `acp`, which buzz-agent doesn't take.
        "BUZZ_ACP_AGENT_ARGS": "",
        "BUZZ_ACP_MCP_COMMAND": f"{place.team}/mcp.sh",
        # The default hands a mention to the running turn, which loses it in the turn's last call (BUZZ.md section 0).
        "BUZZ_ACP_MULTIPLE_EVENT_HANDLING": "queue",
        "BUZZ_ACP_IDLE_TIMEOUT": str(IDLE_TIMEOUT_S),
        # The channel is private: everybody in it is of the trial, and asking who is who costs a request a message.
        "BUZZ_ACP_RESPOND_TO": "anyone",
        "BUZZ_ACP_SYSTEM_PROMPT_FILE": f"{place.team}/agents/{agent.name}/prompt.md",
        "BUZZ_ACP_NO_BASE_PROMPT": "false" if agent.platform_prompt else "true",
        # A key that is made for one trial remembers nothing.
        "BUZZ_ACP_NO_MEMORY": "true",
        "BUZZ_ACP_DISPLAY_NAME": agent.name,
        "BUZZBENCH_TEAM": place.team,
        "BUZZBENCH_BIN": place.programs,
        # Colours would be codes within the line that says that it is ready.
        "NO_COLOR": "1",
        "RUST_LOG": "info",
        **_model(agent, login, dialect),
        **{f"BUZZ_AGENT_{name.upper()}": _word(value) for name, value in agent.extra.items()},
    }


def _word(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _model(agent: Agent, login: Login, dialect: str) -> dict[str, str]:
    limits = {
        "BUZZ_AGENT_MAX_OUTPUT_TOKENS": agent.max_output_tokens,
        "BUZZ_AGENT_MAX_CONTEXT_TOKENS": agent.context_window_tokens,
        "BUZZ_AGENT_THINKING_EFFORT": agent.thinking_effort,
        "BUZZ_AGENT_LLM_TIMEOUT_SECS": LLM_TIMEOUT_S,
    }
    key = {"OPENAI_COMPAT_API_KEY": login.token, "OPENAI_COMPAT_API": "chat"}
    return {
        "BUZZ_AGENT_PROVIDER": dialect,
        "BUZZ_AGENT_MODEL": agent.model,
        **({"ANTHROPIC_API_KEY": login.token} if dialect == "anthropic" else key),
        **{name: str(value) for name, value in limits.items() if value is not None},
    }


ADDRESSES = {"anthropic": ("ANTHROPIC_BASE_URL", ""), "openai": ("OPENAI_COMPAT_BASE_URL", "/v1")}
"""By dialect: the variable that holds the model's address, and what follows the gateway's own there."""


def shell_file(given: Mapping[str, str], dialect: str) -> str:
    """The variables as a file for `.`, in which scripts/start.sh puts in the gateway's address."""
    name, path = ADDRESSES[dialect]
    lines = [f"export {key}={shlex.quote(value)}" for key, value in given.items()]
    return "\n".join([*lines, f'export {name}="$bzb_gateway{path}"', ""])
