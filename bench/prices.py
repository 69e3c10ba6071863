"""Prices of models and what a call costs: integers only, micro-dollars, never a float.

A rate is micro-dollars per million tokens, so that a manifest's `0.3` (USD per million) is exactly 300,000.
Tokens come in four classes that share none: fresh input, cache read, cache write, output. Of the cache writes, those
that stay for an hour may have a rate of their own.

    >>> price = Price(input=3_000_000, cache_read=300_000, cache_write=3_750_000, output=15_000_000)
    >>> cost_usd_micros(price, Tokens(input=86, cache_read=1920, cache_write=0, output=300))
    5334

Where a price has tiers, the length of the whole prompt, cached or not, decides which rates hold for the whole call.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

TOKENS_PER_RATE = 1_000_000
"""Rates are for a million tokens."""

USD_MICROS = 1_000_000
"""Micro-dollars in a dollar."""

HIGHEST_USD_PER_MILLION = Decimal(1000)
"""A higher price is a mistaken unit, not a price ("Public cases", case 22)."""

MOST_ANSWER_TOKENS = 10**9
"""More than any model gives in one answer."""

LOWEST_USD_PER_MILLION = Decimal("0.0001")
"""A price between this and nothing is one per token, put where one per million belongs."""


@dataclass(frozen=True)
class Tier:
    """The rates of a call whose whole prompt has more than `above_tokens` tokens: they hold for all its tokens."""

    above_tokens: int
    input: int
    cache_read: int
    cache_write: int
    output: int
    cache_write_1h: int | None = None


@dataclass(frozen=True)
class Price:
    """Micro-dollars per million tokens, one rate for each class of tokens. `tiers` rise in `above_tokens`.

    `cache_write_1h` is for those of the cache writes that stay for an hour; None where they cost what the others do.
    `max_output_tokens` is no rate: the most that the model can answer with, None where nobody says.
    """

    input: int
    cache_read: int
    cache_write: int
    output: int
    tiers: tuple[Tier, ...] = ()
    cache_write_1h: int | None = None
    max_output_tokens: int | None = None


@dataclass(frozen=True)
class Tokens:
    """The tokens of one call in disjoint classes; None is unknown, which is not zero.

    `cache_write_1h` is no class of its own: so many of the cache writes stay for an hour.
    """

    input: int | None
    cache_read: int | None
    cache_write: int | None
    output: int | None
    cache_write_1h: int = 0

    @property
    def total(self) -> int | None:
        """All classes together, or None where one is unknown."""
        known = [n for n in self.classes if n is not None]
        return sum(known) if len(known) == len(self.classes) else None

    @property
    def prompt(self) -> int | None:
        """The whole prompt, cached or not, or None where a class of it is unknown."""
        known = [n for n in self.classes[:3] if n is not None]
        return sum(known) if len(known) == 3 else None

    @property
    def classes(self) -> tuple[int | None, int | None, int | None, int | None]:
        """(fresh input, cache read, cache write, output)."""
        return (self.input, self.cache_read, self.cache_write, self.output)


FREE = Price(0, 0, 0, 0)
UNKNOWN = Tokens(None, None, None, None)
NONE_USED = Tokens(0, 0, 0, 0)


def rate_usd_micros(usd_per_million: Decimal | int | str) -> int:
    """A rate in micro-dollars per million tokens from USD per million tokens.

    Raises ValueError with one sentence for what is no number, negative, absurdly high or finer than a
    micro-dollar.
    """
    try:
        usd = Decimal(usd_per_million)
    except InvalidOperation:
        raise ValueError(f"{usd_per_million!r} is no price; give USD per million tokens, such as 0.30") from None
    if not usd.is_finite() or usd < 0:
        raise ValueError(f"{usd_per_million} is no price; give USD per million tokens, 0 or more")
    if usd > HIGHEST_USD_PER_MILLION:
        raise ValueError(f"{usd_per_million} USD is over {HIGHEST_USD_PER_MILLION}: the unit is USD per million tokens")
    if 0 < usd < LOWEST_USD_PER_MILLION:
        raise ValueError(f"{usd_per_million} USD is next to nothing: the unit is USD per million tokens, not per token")
    micros = usd * USD_MICROS
    if micros != micros.to_integral_value():
        raise ValueError(f"{usd_per_million} USD is finer than a micro-dollar; give at most six decimal places")
    return int(micros)


def rates_at(price: Price, prompt_tokens: int) -> Price | Tier:
    """The rates of a call whose whole prompt has so many tokens: those of the highest tier that it passes."""
    passed: Price | Tier = price
    for tier in price.tiers:
        if prompt_tokens > tier.above_tokens:
            passed = tier
    return passed


def cost_usd_micros(price: Price, tokens: Tokens) -> int | None:
    """The call's cost in micro-dollars, rounded half up once for the call; None where a class is unknown."""
    if tokens.prompt is None:
        return None
    rates = rates_at(price, tokens.prompt)
    total = tokens.cache_write_1h * (_of_an_hour(rates) - rates.cache_write)
    for count, rate in zip(tokens.classes, _rates(rates), strict=True):
        if count is None:
            return None
        total += count * rate
    return _half_up(total)


def bound_usd_micros(price: Price, *, prompt_tokens: int, output_tokens: int, for_an_hour: bool = True) -> int:
    """The most that a call can cost whose prompt and output are at most so long, in micro-dollars.

    The prompt may turn out to be shorter, so every tier that it can reach counts ("Public cases", case 20).
    `for_an_hour` is whether some of it may be written to a cache that stays for an hour.
    """
    reached: tuple[Price | Tier, ...] = (price, *(tier for tier in price.tiers if prompt_tokens > tier.above_tokens))
    totals = (
        prompt_tokens * max(*_rates(rates)[:3], _of_an_hour(rates) if for_an_hour else 0) + output_tokens * rates.output
        for rates in reached
    )
    return -(-max(totals) // TOKENS_PER_RATE)


def hour_writes(usage: Any) -> int | None:
    """How many of the cache writes in a usage report stay for an hour; None where what it says is no such number.

    Only Anthropic's tells, as `cache_creation.ephemeral_1h_input_tokens`, which `cache_creation_input_tokens` counts,
    too. Where a report doesn't split them, none does.
    """
    split = usage.get("cache_creation") if isinstance(usage, dict) else None
    told = split.get("ephemeral_1h_input_tokens", 0) if isinstance(split, dict) else 0
    return told if type(told) is int and told >= 0 else None


def every_rate(price: Price) -> tuple[int, ...]:
    """All rates of a price, those of its tiers too."""
    rows: tuple[Price | Tier, ...] = (price, *price.tiers)
    return tuple(rate for rates in rows for rate in (*_rates(rates), _of_an_hour(rates)))


def sheet_sha256(prices: Mapping[str, Price]) -> str:
    """The price sheet's hash: SHA-256 of its canonical JSON, models and classes sorted, without what isn't priced."""
    sheet = {model: _told(price) for model, price in prices.items()}
    text = json.dumps(sheet, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def rates_told(price: Price) -> dict[str, object]:
    """A price's rates by their names, as JSON takes them: two that are equal cost any call alike."""
    return {name: value for name, value in _told(price).items() if name != "max_output_tokens"}


def _told(rates: Price | Tier) -> dict[str, object]:
    told = {name: value for name, value in asdict(rates).items() if name != "tiers" and value is not None}
    if isinstance(rates, Price) and rates.tiers:
        told["tiers"] = [_told(tier) for tier in rates.tiers]
    return told


def _rates(rates: Price | Tier) -> tuple[int, int, int, int]:
    return (rates.input, rates.cache_read, rates.cache_write, rates.output)


def _of_an_hour(rates: Price | Tier) -> int:
    """The rate of cache writes that stay for an hour."""
    return rates.cache_write if rates.cache_write_1h is None else rates.cache_write_1h


def _half_up(rated_tokens: int) -> int:
    return (2 * rated_tokens + TOKENS_PER_RATE) // (2 * TOKENS_PER_RATE)
