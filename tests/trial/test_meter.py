"""What a team has used: our own count while it works, the gateway's at the end, and nothing after that."""

from __future__ import annotations

from harbor.models.agent.context import AgentContext

from bench import manifest
from bench.gateway.protocol import AgentUsage
from bench.prices import Tokens
from bench.settings import ROOT
from bench.trial.meter import Meter

CONDITION = manifest.load(ROOT / "manifests" / "rehearsal.yaml")
LEAD = CONDITION.orchestrator


def test_a_call_that_is_read_after_the_gateways_own_figures_is_in_them() -> None:
    """One that was cut when its token died: its receipt comes with the figures, and is read later."""
    context = AgentContext()
    meter = Meter(context, CONDITION)
    meter.count(LEAD, Tokens(10, 0, 0, 5))
    assert (meter.agents[LEAD.name]["calls"], context.n_output_tokens) == (1, 5)
    told = AgentUsage(calls=2, input_tokens=20, output_tokens=9, unknown_calls=1, sent_calls=2)
    meter.settle({LEAD.name: told})
    meter.count(LEAD, Tokens(None, None, None, None))
    assert (meter.agents[LEAD.name]["calls"], meter.agents[LEAD.name]["sent_calls"]) == (2, 2)
    assert (context.n_input_tokens, context.n_output_tokens) == (20, 9)
