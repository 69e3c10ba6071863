"""What a whole team may use in a trial, so that "equal budget" can be said of two conditions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.manifest import Condition, Limits

if TYPE_CHECKING:
    from collections.abc import Iterable

UNITS = ("usd_micros", "tokens", "calls")


def of_team(condition: Condition) -> Limits:
    """The caps of a whole trial: its own, or its agents' added up where every agent has one and that is less."""
    caps = (
        _least(getattr(condition.limits, unit), _sum(getattr(a.limits, unit) for a in condition.agents))
        for unit in UNITS
    )
    return Limits(*caps)


def said(limits: Limits, timeout_seconds: int | None) -> str:
    """`900 s, $2.50, 2,000,000 tokens, any number of calls`."""
    money = "any cost" if limits.usd_micros is None else f"${limits.usd_micros / 1_000_000:,.2f}"
    time = "the tasks' own time" if timeout_seconds is None else f"{timeout_seconds} s"
    return f"{time}, {money}, {_number(limits.tokens, 'tokens')}, {_number(limits.calls, 'calls')}"


def _number(cap: int | None, what: str) -> str:
    return f"any number of {what}" if cap is None else f"{cap:,} {what}"


def _sum(caps: Iterable[int | None]) -> int | None:
    known = list(caps)
    return None if not known or None in known else sum(cap for cap in known if cap is not None)


def _least(*caps: int | None) -> int | None:
    return min((cap for cap in caps if cap is not None), default=None)
