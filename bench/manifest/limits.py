"""Limits of a manifest that contradict each other, each with both numbers: a cap that could never be reached, or one
under which no work could be done at all.

It works on the file's plain data, as `bench/manifest/checks.py` does, and skips what hasn't the right form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from bench.condition import DEFAULT_OUTPUT_TOKENS
from bench.errors import Problem
from bench.harness.buzz.fixed import IDLE_TIMEOUT_S
from bench.prices import TOKENS_PER_RATE, USD_MICROS, rate_usd_micros
from bench.reading import yamlfile

CAPS = ("max_cost_usd", "max_tokens", "max_input_tokens", "max_output_tokens", "max_calls")

type Member = tuple[int, Mapping[str, Any]]


def check(document: yamlfile.Document, roster: Sequence[Member], *, alone: bool = False) -> Iterator[Problem]:
    """The contradictions between the limits of members, of their generation, and of the whole trial.

    `alone` says that one agent plays on their terms.
    """
    whole = _section(document.data, "trial_budget")
    counted = 0
    for number, member in roster:
        own, at = _section(member, "budget"), ("roster", number)
        counted += _number(member, "count") or 1
        for cap in CAPS:
            mine, trials = _number(own, cap), _number(whole, cap)
            if mine is not None and trials is not None and mine > trials:
                what = f"{mine:g} is more than trial_budget.{cap} {trials:g}: it could never be reached"
                yield document.problem((*at, "budget", cap), what)
        yield from _generation(document, at, member)
        yield from _waiting(document, at, member)
        for place, where, budget in (((*at, "budget"), "", own), (("trial_budget",), f"{member.get('id')}: ", whole)):
            yield from _first_call(document, place, where, budget, member, alone=alone)
    calls = _number(whole, "max_calls")
    if calls is not None and calls < counted and not alone:
        what = f"{calls} calls are fewer than the {counted} agents: one of them could never make any"
        yield document.problem(("trial_budget", "max_calls"), what)


def _generation(document: yamlfile.Document, at: yamlfile.Field, member: Mapping[str, Any]) -> Iterator[Problem]:
    generation = _section(member, "generation")
    output, window = _number(generation, "max_output_tokens"), _number(generation, "context_window_tokens")
    compact = _number(generation, "compact_at_tokens")
    most = _number(_price(document.data, member), "max_output_tokens")
    if output is not None and type(most) is int and output > most:
        what = f"{output} is more than the {most} that the model can answer with, by the max_output_tokens of its price"
        yield document.problem((*at, "generation", "max_output_tokens"), what)
    if output is not None and window is not None and output >= window:
        what = f"{output} leaves no room for a prompt in context_window_tokens {window}"
        yield document.problem((*at, "generation", "max_output_tokens"), what)
    if compact is not None and window is not None and compact > window:
        what = f"{compact} is beyond context_window_tokens {window}: nothing would ever be compacted"
        yield document.problem((*at, "generation", "compact_at_tokens"), what)


def _waiting(document: yamlfile.Document, at: yamlfile.Field, member: Mapping[str, Any]) -> Iterator[Problem]:
    """How long a real agent may wait for a tool or a model: not for as long as makes its harness take it for dead."""
    extra = _section(_section(member, "generation"), "extra")
    for name in ("tool_timeout_secs", "llm_timeout_secs"):
        waits_s = _number(extra, name)
        if waits_s is not None and waits_s >= IDLE_TIMEOUT_S:
            what = f"{waits_s:g} s is not below the {IDLE_TIMEOUT_S} s of silence after which the turn is cancelled"
            yield document.problem((*at, "generation", "extra", name), what)


def _first_call(
    document: yamlfile.Document,
    place: yamlfile.Field,
    where: str,
    budget: Mapping[str, Any],
    member: Mapping[str, Any],
    *,
    alone: bool,
) -> Iterator[Problem]:
    """A cap below what one call may use: the gateway reserves that much before it sends any (DESIGN decision 6)."""
    generation = _section(member, "generation")
    output = _number(generation, "max_output_tokens")
    of = f"generation.max_output_tokens {output}"
    if "max_output_tokens" not in generation and member.get("harness") == "builtin" and not alone:
        most = _number(_price(document.data, member), "max_output_tokens")
        output = min(most or DEFAULT_OUTPUT_TOKENS, DEFAULT_OUTPUT_TOKENS)
        of = f"the {output} that an answer may have where generation.max_output_tokens is not set"
    if output is None:
        return
    for cap in ("max_tokens", "max_output_tokens"):
        allowed = _number(budget, cap)
        if allowed is not None and allowed < output:
            what = f"{where}{allowed} is below {of}: no call could be made"
            yield document.problem((*place, cap), what)
    rate, most_usd = _output_rate(document.data, member), _number(budget, "max_cost_usd")
    if rate is None or most_usd is None:
        return
    # In micro-dollars and tokens times rate, so that nothing is rounded.
    if Decimal(str(most_usd)) * USD_MICROS * TOKENS_PER_RATE < output * rate:
        call_usd = Decimal(output * rate) / TOKENS_PER_RATE / USD_MICROS
        what = (
            f"{where}{most_usd:g} USD is below the {call_usd:f} USD that one call of {of} may cost: none could be made"
        )
        yield document.problem((*place, "max_cost_usd"), what)


def _output_rate(data: Mapping[str, Any], member: Mapping[str, Any]) -> int | None:
    row = _price(data, member)
    given = row.get("output", row.get("output_per_million_usd"))
    try:
        return None if given is None or isinstance(given, bool) else rate_usd_micros(str(given))
    except ValueError:
        return None  # Told already, as a fault of the price.


def _price(data: Mapping[str, Any], member: Mapping[str, Any]) -> Mapping[str, Any]:
    """The price of a member's model: listed by its revision, or by its endpoint."""
    prices = _section(data, "prices")
    revision = str(member.get("model_revision"))
    return _section(prices, revision if revision in prices else str(member.get("endpoint")))


def _section(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = data.get(name)
    return value if isinstance(value, dict) else {}


def _number(data: Mapping[str, Any], name: str) -> Any:
    """The number above 0 in a field, whole for all but money; None where there is none."""
    value: Any = data.get(name)
    return value if type(value) in (int, float) and value > 0 else None
