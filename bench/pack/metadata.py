"""`metadata.yaml`, by which a board knows who played: from the roster, and from what only a person can say. Pure.

Its fields are those that Terminal-Bench's board requires of a submission. `leaderboard-row.yaml` says the same as
Harbor's `hub leaderboard row create` takes it (0.26), for a board's owner.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from bench.endpoints import BASE_URLS
from bench.errors import Problem
from bench.records.planrecord import JobPlanRecord

MAKERS = {"anthropic": "Anthropic", "openai": "OpenAI"}
"""Whose models a provider's own API serves."""


@dataclass(frozen=True)
class Said:
    """What a person says of the team. `model_orgs` are the makers of models, by the model."""

    agent_url: str = ""
    agent_name: str = ""
    org: str = ""
    model_orgs: Mapping[str, str] = field(default_factory=dict)


def of(plan: JobPlanRecord, said: Said) -> dict[str, Any]:
    """The fields; what nobody knows is an empty text (see `problems`).

    Of a rehearsal and a replay the name says that they are: a row shows nothing else by which one could tell.
    """
    kind = f" ({plan.unasked})" if plan.unasked else ""
    models = dict.fromkeys((seat.model, seat.endpoint) for seat in plan.roster if seat.model)
    return {
        "agent_url": said.agent_url,
        "agent_display_name": f"{said.agent_name or plan.condition}{kind}",
        "agent_org_display_name": said.org,
        "models": [_model(name, plan.endpoints.get(endpoint, {}), said) for name, endpoint in models],
    }


def _model(name: str, endpoint: Mapping[str, Any], said: Said) -> dict[str, str]:
    provider = str(endpoint.get("provider") or "")
    own = urlsplit(str(endpoint.get("base_url"))).hostname == urlsplit(BASE_URLS.get(provider, "")).hostname
    return {
        "model_name": name,
        "model_provider": provider,
        "model_display_name": name,
        "model_org_display_name": said.model_orgs.get(name) or (MAKERS.get(provider, "") if own else ""),
    }


def problems(metadata: Mapping[str, Any], said: Said) -> Iterator[Problem]:
    """What a board requires and nobody has said, and what was said of models that nobody plays on."""
    if not metadata["agent_url"].startswith(("http://", "https://")):
        yield Problem("metadata.yaml: agent_url", "a board wants a link to what played", "give --agent-url https://…")
    if not metadata["agent_org_display_name"]:
        yield Problem("metadata.yaml: agent_org_display_name", "a board wants to know whose it is", "give --org NAME")
    models = metadata["models"]
    if not models:
        yield Problem("metadata.yaml: models", "the job's record doesn't say which models played")
    for model in models:
        if not model["model_org_display_name"]:
            name = model["model_name"]
            what = f"whose model {name} is isn't known from its endpoint"
            yield Problem("metadata.yaml: model_org_display_name", what, f"give --model-org {name}=NAME")
    names = {model["model_name"] for model in models}
    for name in sorted(said.model_orgs.keys() - names):
        listed = ", ".join(sorted(names)) or "none"
        yield Problem(f"--model-org {name}", f"nobody of the team plays on it; its models are {listed}")


def row(metadata: Mapping[str, Any], rewards: Sequence[float], trial_ids: Sequence[str]) -> dict[str, Any]:
    """The row of a board on Harbor Hub: the mean reward of all its trials."""
    models = [model["model_name"] for model in metadata["models"]]
    shown = {
        "agent": metadata["agent_display_name"],
        "org": metadata["agent_org_display_name"],
        "url": metadata["agent_url"],
        "models": ", ".join(models),
    }
    mean = sum(rewards) / len(rewards) if rewards else 0.0
    metrics = {"reward": round(mean, 6), "n_trials": len(rewards)}
    return {"rows": [{"metadata": shown, "metrics": metrics, "trial_ids": list(trial_ids)}]}
