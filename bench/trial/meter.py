"""What a team has used, written into Harbor's AgentContext as it happens: a timeout or a cancel loses nothing of it.

While the team works the figures are our own reading of each answer; at the end the gateway's replace them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bench.condition import Agent, Condition
from bench.costs import NOTHING, Spend
from bench.prices import USD_MICROS, Tokens, cost_usd_micros

if TYPE_CHECKING:
    from harbor.models.agent.context import AgentContext

    from bench.gateway.protocol import AgentUsage


class Meter:
    """Counts one trial, or one step of its task, into its context.

    `agents` is the figures by agent, as `metadata` shows them. `before` is what they had used earlier in the trial.
    """

    def __init__(
        self, context: AgentContext, condition: Condition, before: Mapping[str, AgentUsage] | None = None
    ) -> None:
        self._context, self._condition, self._before = context, condition, before or {}
        self._sums: dict[str, Spend] = {}
        self.agents: dict[str, dict[str, Any]] = {}
        self._is_settled = False

    def count(self, agent: Agent, tokens: Tokens) -> None:
        """One answer of the agent's model. One that is read after the gateway told its own figures is in them."""
        if self._is_settled:
            return
        cost = call_cost(self._condition, agent, tokens)
        fresh, cache_read, cache_write, output = (known or 0 for known in tokens.classes)
        call = Spend(1, fresh, cache_read, cache_write, output, cost or 0, int(cost is None))
        total = self._sums[agent.name] = self._sums.get(agent.name, NOTHING) + call
        self.agents[agent.name] = asdict(total)
        self._write()

    def settle(self, usage: Mapping[str, AgentUsage]) -> None:
        """The gateway's own figures of the trial, which count what we did not see (calls that were cut)."""
        self._is_settled = True
        self.agents.clear()
        for name, used in sorted(usage.items()):
            before = self._before.get(name)
            self.agents[name] = asdict(used if before is None else used.since(before))
        self._write()

    def _write(self) -> None:
        """None is unknown: an unknown cost makes the sum unknown, never smaller."""

        def total(name: str) -> int:
            return sum(used[name] or 0 for used in self.agents.values())

        cached = total("cache_read_tokens")
        self._context.n_input_tokens = total("input_tokens") + cached + total("cache_write_tokens")
        self._context.n_cache_tokens = cached
        self._context.n_output_tokens = total("output_tokens")
        unknown = any(u["unknown_calls"] or u["cost_usd_micros"] is None for u in self.agents.values())
        self._context.cost_usd = None if unknown else total("cost_usd_micros") / USD_MICROS


def call_cost(condition: Condition, agent: Agent, tokens: Tokens) -> int | None:
    """One call's cost in micro-dollars, None where it is unknown."""
    price = condition.prices.get(agent.model)
    return None if price is None else cost_usd_micros(price, tokens)
