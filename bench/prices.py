"""Prices of models and what a call costs: integers only, micro-dollars, never a float.

A rate is micro-dollars per million tokens, so that a manifest's `0.3` (USD per million) is exactly 300,000.
Tokens come in four classes that share none: fresh input, cache read, cache write, output.

    >>> price = price_of_usd(input="3", cache_read="0.3", cache_write="3.75", output="15")
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

TOKENS_PER_RATE = 1_000_000
"""Rates are for a million tokens."""

USD_MICROS = 1_000_000
"""Micro-dollars in a dollar."""

HIGHEST_USD_PER_MILLION = Decimal(1000)
"""A higher price is a mistaken unit, not a price ("Public cases", case 22)."""

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


@dataclass(frozen=True)
class Price:
    """Micro-dollars per million tokens, one rate for each class of tokens. `tiers` rise in `above_tokens`."""

    input: int
    cache_read: int
    cache_write: int
    output: int
    tiers: tuple[Tier, ...] = ()


@dataclass(frozen=True)
class Tokens:
    """The tokens of one call in disjoint classes; None is unknown, which is not zero."""

    input: int | None
    cache_read: int | None
    cache_write: int | None
    output: int | None

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


def price_of_usd(
    *,
    input: Decimal | int | str,  # noqa: A002  (the class of tokens, as everywhere)
    cache_read: Decimal | int | str,
    cache_write: Decimal | int | str,
    output: Decimal | int | str,
) -> Price:
    """A model's rates from USD per million tokens. Raises ValueError as `rate_usd_micros` does."""
    return Price(
        input=rate_usd_micros(input),
        cache_read=rate_usd_micros(cache_read),
        cache_write=rate_usd_micros(cache_write),
        output=rate_usd_micros(output),
    )


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
    total = 0
    for count, rate in zip(tokens.classes, _rates(rates_at(price, tokens.prompt)), strict=True):
        if count is None:
            return None
        total += count * rate
    return _half_up(total)


def bound_usd_micros(price: Price, *, prompt_tokens: int, output_tokens: int) -> int:
    """The most that a call can cost whose prompt and output are at most so long, in micro-dollars.

    The prompt may turn out to be shorter, so every tier that it can reach counts ("Public cases", case 20).
    """
    reached: tuple[Price | Tier, ...] = (price, *(tier for tier in price.tiers if prompt_tokens > tier.above_tokens))
    totals = (
        prompt_tokens * max(rates.input, rates.cache_read, rates.cache_write) + output_tokens * rates.output
        for rates in reached
    )
    return -(-max(totals) // TOKENS_PER_RATE)


def sheet_sha256(prices: Mapping[str, Price]) -> str:
    """The price sheet's hash: SHA-256 of its canonical JSON, models and classes sorted, tiers only where there are."""
    sheet = {model: _told(price) for model, price in prices.items()}
    text = json.dumps(sheet, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _told(price: Price) -> dict[str, object]:
    told = asdict(price)
    return told if price.tiers else {name: value for name, value in told.items() if name != "tiers"}


def _rates(rates: Price | Tier) -> tuple[int, int, int, int]:
    return (rates.input, rates.cache_read, rates.cache_write, rates.output)


def _half_up(rated_tokens: int) -> int:
    return (2 * rated_tokens + TOKENS_PER_RATE) // (2 * TOKENS_PER_RATE)
