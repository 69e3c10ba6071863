"""What a whole team may use in a trial, so that "equal budget" can be said of two conditions; and a whole job."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from bench.condition import Condition, Limits, Soloist
from bench.errors import Problem
from bench.prices import USD_MICROS, bound_usd_micros

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from bench.endpoints import Endpoint
    from bench.faults import Faults
    from bench.planning.options import Options

MOST = 999_999_999_999
"""Of micro-dollars, tokens or calls."""

UNITS = ("usd_micros", "tokens", "calls")
OPTIONS = ("--budget-usd", "--budget-tokens", "--budget-calls")

NO_CAP = ("none", "off")
"""What a person gives for no cap, where a job that goes on had one."""


def of_team(condition: Condition) -> Limits:
    """The caps of a whole trial: its own, or its agents' added up where every agent has one and that is less."""
    return narrowest(condition.limits, Limits(*(_sum(getattr(a.limits, u) for a in condition.agents) for u in UNITS)))


def narrowest(*limits: Limits) -> Limits:
    """Caps that hold together: of each unit the lowest."""
    return Limits(*(_least(*(getattr(each, unit) for each in limits)) for unit in UNITS))


def of_job(options: Options, faults: Faults) -> Limits:
    """The caps of a whole job, from `--budget-usd`, `--budget-tokens` and `--budget-calls`; None also for `NO_CAP`."""
    return Limits(
        _usd_micros(options.budget_usd, faults),
        *(
            None if is_no_cap(given) else faults.number(option, given, most=MOST, otherwise="give one, or none")
            for option, given in zip(OPTIONS[1:], (options.budget_tokens, options.budget_calls), strict=True)
        ),
    )


def is_no_cap(given: int | str | None) -> bool:
    """Whether what was given for a cap says that there is none."""
    return str(given).strip().lower() in NO_CAP


def _usd_micros(given: str | None, faults: Faults) -> int | None:
    if given is None or is_no_cap(given):
        return None
    try:
        micros = Decimal(given) * USD_MICROS
        if 1 <= micros <= MOST:
            return int(micros)
    except (ArithmeticError, ValueError):
        pass
    faults.append(Problem("--budget-usd", f"{given} is no sum of money", "give USD, such as 25 or 2.50, or none"))
    return None


def said(limits: Limits, timeout_seconds: int | None) -> str:
    """`900 s, $2.50, 2,000,000 tokens, any number of calls`."""
    time = "the tasks' own time" if timeout_seconds is None else f"{timeout_seconds} s"
    return f"{time}, {caps_said(limits)}"


def caps_said(limits: Limits) -> str:
    """`$2.50, 2,000,000 tokens, any number of calls`."""
    return ", ".join([_money(limits.usd_micros), _number(limits.tokens, "tokens"), _number(limits.calls, "calls")])


def agents_said(limits: Iterable[tuple[str, Limits]]) -> str:
    """The caps of single agents, by name: `orch: $0.50; worker-1, worker-2: 40 calls`; empty where none has any."""
    having: dict[Limits, list[str]] = {}
    for name, own in limits:
        having.setdefault(own, []).append(name)
    having.pop(Limits(), None)
    return "; ".join(f"{', '.join(names)}: {_caps_alone(own)}" for own, names in having.items())


def _caps_alone(limits: Limits) -> str:
    """Those that there are."""
    told = [
        _money(limits.usd_micros) if limits.usd_micros is not None else "",
        _number(limits.tokens, "tokens") if limits.tokens is not None else "",
        _number(limits.calls, "calls") if limits.calls is not None else "",
    ]
    return ", ".join(filter(None, told))


def _money(cap: int | None) -> str:
    """`$2.50`, with as many digits more as it takes."""
    if cap is None:
        return "any cost"
    whole, _, part = f"{cap / USD_MICROS:,.6f}".rstrip("0").partition(".")
    return f"${whole}.{part.ljust(2, '0')}"


def too_small(
    condition: Condition,
    endpoints: Mapping[str, Endpoint],
    budget: Limits,
    charged: Callable[[str], int | None] = lambda _: 0,
) -> Iterator[Problem]:
    """The caps of a job that hold no call any more, or not even the first answer: no work could be done.

    `charged` says what counts against the cap of a unit already, None where that is unknown. The gateway reserves the
    most that an answer may use before it sends a call, and the prompt besides, which is only known then. Of a team the
    caps of a trial are held against that in its manifest; of a baseline, whose options may say otherwise, here.
    """
    who, least = _least_of_a_call(condition, endpoints)
    for unit, option in zip(UNITS, OPTIONS, strict=True):
        cap, used, needed = getattr(budget, unit), charged(unit) or 0, getattr(least, unit)
        if cap is not None and cap - used < needed:
            what = f"{_amount(used, unit)} spent of a cap of {_amount(cap, unit)}"
            if needed > 1:
                what += f", and an answer of {who} may use {_amount(needed, unit)}"
            yield Problem(option, f"{what}: no call would go out", "raise it, or give none")
    for unit in UNITS if condition.soloist else ():
        cap, needed = getattr(condition.limits, unit), getattr(least, unit)
        if cap is not None and cap < needed:
            what = f"a trial has a cap of {_amount(cap, unit)}, and an answer of {who} may use {_amount(needed, unit)}"
            yield Problem(condition.where, f"{what}: no call would go out", "raise it, or bound the answers lower")


def _least_of_a_call(condition: Condition, endpoints: Mapping[str, Endpoint]) -> tuple[str, Limits]:
    """Who asks first, and what is reserved for that at least: 1 of each where nobody knows what bounds the answer."""
    alone = condition.soloist
    lead = next((agent for agent in condition.agents if agent.kind == "orchestrator"), None)
    if alone:
        who, model, most = condition.name, alone.model, _most_of(alone, condition, endpoints)
    elif lead:
        who, model, most = lead.name, lead.model, condition.output_bound(lead)
    else:
        return condition.name, Limits(1, 1, 1)
    if most is None:
        return who, Limits(1, 1, 1)
    usd_micros = bound_usd_micros(condition.prices[model], prompt_tokens=0, output_tokens=most)
    return who, Limits(usd_micros, most, 1)


def _most_of(alone: Soloist, condition: Condition, endpoints: Mapping[str, Endpoint]) -> int | None:
    """What a baseline's answer may have, and is reserved: its option's bound, or its model's own where it sends none.

    In Anthropic's dialect every call has a bound, which is then the agent's own affair.
    """
    endpoint = endpoints.get(alone.endpoint)
    if alone.max_output_tokens is not None or endpoint is None or endpoint.dialect == "anthropic":
        return alone.max_output_tokens
    return condition.prices[alone.model].max_output_tokens


def _amount(number: int, unit: str) -> str:
    if unit == "usd_micros":
        return f"${number / USD_MICROS:,.4f}"
    return f"{number:,} {unit.removesuffix('s') if number == 1 else unit}"


def _number(cap: int | None, what: str) -> str:
    return f"any number of {what}" if cap is None else f"{cap:,} {what}"


def _sum(caps: Iterable[int | None]) -> int | None:
    known = list(caps)
    return None if not known or None in known else sum(cap for cap in known if cap is not None)


def _least(*caps: int | None) -> int | None:
    return min((cap for cap in caps if cap is not None), default=None)
