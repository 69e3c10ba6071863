"""Prices are integers with a stated unit, and each class of tokens is charged once ("Public cases", 21 and 22)."""

from __future__ import annotations

import doctest
import hashlib
import re
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import prices
from bench.prices import (
    UNKNOWN,
    Price,
    Tier,
    Tokens,
    bound_usd_micros,
    cost_usd_micros,
    hour_writes,
    rate_usd_micros,
    rates_at,
    sheet_sha256,
)

counts = st.integers(0, 10_000_000)
rates = st.integers(0, 1_000_000_000)
hour_rates = st.none() | rates
tiers = st.lists(st.integers(1, 20_000_000), max_size=3, unique=True).flatmap(
    lambda edges: st.tuples(
        *(st.builds(Tier, st.just(e), rates, rates, rates, rates, hour_rates) for e in sorted(edges))
    )
)
some_price = st.builds(Price, rates, rates, rates, rates, tiers, hour_rates)
some_tokens = st.builds(Tokens, counts, counts, counts, counts).flatmap(
    lambda tokens: st.integers(0, tokens.cache_write or 0).map(lambda hour: replace(tokens, cache_write_1h=hour))
)


def test_the_example_in_the_docstring_holds() -> None:
    assert doctest.testmod(prices).failed == 0


@pytest.mark.parametrize(
    ("usd", "micros"),
    [("3", 3_000_000), ("0.30", 300_000), (Decimal("0.0375"), 37_500), (15, 15_000_000), ("0", 0), ("1000", 10**9)],
)
def test_a_manifests_price_is_exact(usd: Decimal | int | str, micros: int) -> None:
    assert rate_usd_micros(usd) == micros


@pytest.mark.parametrize(
    ("usd", "message"),
    [
        ("cheap", "'cheap' is no price; give USD per million tokens, such as 0.30"),
        ("-1", "-1 is no price; give USD per million tokens, 0 or more"),
        ("NaN", "NaN is no price; give USD per million tokens, 0 or more"),
        ("3000000", "3000000 USD is over 1000: the unit is USD per million tokens"),
        ("0.000003", "0.000003 USD is next to nothing: the unit is USD per million tokens, not per token"),
        ("0.1234567", "0.1234567 USD is finer than a micro-dollar; give at most six decimal places"),
    ],
)
def test_a_price_in_another_unit_is_refused(usd: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        rate_usd_micros(usd)


def test_a_cost_is_rounded_half_up_once_for_the_call() -> None:
    half = Price(500_000, 0, 0, 0)
    assert [cost_usd_micros(half, Tokens(n, 0, 0, 0)) for n in (0, 1, 2, 3)] == [0, 1, 1, 2]
    quarter = Price(250_000, 250_000, 0, 0)
    assert cost_usd_micros(quarter, Tokens(1, 0, 0, 0)) == 0
    assert cost_usd_micros(quarter, Tokens(1, 1, 0, 0)) == 1


def test_an_unknown_class_makes_the_cost_unknown_not_zero() -> None:
    price = Price(3_000_000, 300_000, 3_750_000, 15_000_000)
    assert cost_usd_micros(price, UNKNOWN) is None
    assert cost_usd_micros(price, Tokens(1, 1, 1, None)) is None
    assert Tokens(1, None, 1, 1).total is None
    assert Tokens(1, 2, 3, 4).total == 10


@given(some_price, some_tokens)
def test_no_call_costs_more_than_its_bound(price: Price, tokens: Tokens) -> None:
    prompt = (tokens.input or 0) + (tokens.cache_read or 0) + (tokens.cache_write or 0)
    cost = cost_usd_micros(price, tokens)
    assert cost is not None
    for_an_hour = tokens.cache_write_1h > 0
    bound = bound_usd_micros(price, prompt_tokens=prompt, output_tokens=tokens.output or 0, for_an_hour=for_an_hour)
    assert cost <= bound <= bound_usd_micros(price, prompt_tokens=prompt, output_tokens=tokens.output or 0)


SONNET = Price(3_000_000, 300_000, 3_750_000, 15_000_000, cache_write_1h=6_000_000)


def test_cache_writes_for_an_hour_have_their_own_rate_and_the_others_theirs() -> None:
    assert cost_usd_micros(SONNET, Tokens(0, 0, 1_000_000, 0)) == 3_750_000
    assert cost_usd_micros(SONNET, Tokens(0, 0, 1_000_000, 0, cache_write_1h=1_000_000)) == 6_000_000
    assert cost_usd_micros(SONNET, Tokens(0, 0, 1_000_000, 0, cache_write_1h=400_000)) == 2_250_000 + 2_400_000
    one_rate = replace(SONNET, cache_write_1h=None)
    assert cost_usd_micros(one_rate, Tokens(0, 0, 1_000_000, 0, cache_write_1h=400_000)) == 3_750_000


def test_only_a_call_that_may_write_for_an_hour_reserves_that() -> None:
    assert bound_usd_micros(SONNET, prompt_tokens=1_000_000, output_tokens=0) == 6_000_000
    assert bound_usd_micros(SONNET, prompt_tokens=1_000_000, output_tokens=0, for_an_hour=False) == 3_750_000


@pytest.mark.parametrize(
    ("usage", "hour"),
    [
        ({"cache_creation": {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 4}}, 4),
        ({"cache_creation": {"ephemeral_5m_input_tokens": 3}}, 0),
        ({"cache_creation": None}, 0),
        ({"prompt_tokens": 9}, 0),
        (None, 0),
        ({"cache_creation": {"ephemeral_1h_input_tokens": -4}}, None),
        ({"cache_creation": {"ephemeral_1h_input_tokens": "4"}}, None),
    ],
)
def test_an_hours_cache_writes_are_read_from_the_report(usage: object, hour: int | None) -> None:
    assert hour_writes(usage) == hour


def test_a_sheets_hash_is_of_its_content() -> None:
    one, two = Price(1, 2, 3, 4), Price(5, 6, 7, 8)
    assert sheet_sha256({"a": one, "b": two}) == sheet_sha256({"b": two, "a": one})
    assert sheet_sha256({"a": one}) != sheet_sha256({"a": two})
    canonical = b'{"a":{"cache_read":2,"cache_write":3,"input":1,"output":4}}'
    assert sheet_sha256({"a": one}) == hashlib.sha256(canonical).hexdigest()
    assert sheet_sha256({"a": replace(one, cache_write_1h=3)}) != sheet_sha256({"a": one})


TIERED = Price(2_500_000, 250_000, 2_500_000, 15_000_000, (Tier(272_000, 5_000_000, 500_000, 5_000_000, 22_500_000),))


def test_a_prompt_over_a_tiers_edge_is_charged_its_rates_as_a_whole() -> None:
    assert cost_usd_micros(TIERED, Tokens(272_000, 0, 0, 100)) == 680_000 + 1_500
    assert cost_usd_micros(TIERED, Tokens(272_001, 0, 0, 100)) == 1_360_005 + 2_250


def test_cached_tokens_count_for_a_tiers_edge() -> None:
    assert rates_at(TIERED, 272_000) is TIERED
    assert cost_usd_micros(TIERED, Tokens(1, 272_000, 0, 0)) == 5 + 136_000


def test_a_bound_counts_every_tier_that_the_prompt_may_reach() -> None:
    assert bound_usd_micros(TIERED, prompt_tokens=272_000, output_tokens=0) == 680_000
    assert bound_usd_micros(TIERED, prompt_tokens=272_001, output_tokens=0) == 1_360_005
    cheaper_when_long = Price(4_000_000, 0, 0, 0, (Tier(100, 1_000_000, 0, 0, 0),))
    assert bound_usd_micros(cheaper_when_long, prompt_tokens=200, output_tokens=0) == 800, "it may turn out shorter"


def test_tiers_are_part_of_a_sheets_hash() -> None:
    flat = Price(2_500_000, 250_000, 2_500_000, 15_000_000)
    assert sheet_sha256({"m": TIERED}) != sheet_sha256({"m": flat})
