"""Budgets reserve before they spend: no order of calls passes a cap, and sums are the receipts' sums."""

from __future__ import annotations

import asyncio
import json
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.condition import Limits
from bench.gateway.jobs import Tally
from bench.gateway.ledger import Amount, Ledger, Refusal, Reservation, usd
from bench.gateway.receipts import Journal, Receipt, charged


def opened(job: Limits | None = None, trial: Limits | None = None, agent: Limits | None = None) -> Ledger:
    ledger = Ledger("j", job)
    for name in ("a", "b"):
        ledger.open("t", name, trial_limits=trial, limits=agent)
    return ledger


def test_a_reservation_holds_until_it_settles() -> None:
    ledger = opened(job=Limits(usd_micros=100))
    held = ledger.reserve("t", "a", Amount(60, 1, 1))
    assert isinstance(held, Reservation)
    refused = ledger.reserve("t", "b", Amount(60, 1, 1))
    assert isinstance(refused, Refusal)
    assert refused.passing, "it may fit once the first call has settled"
    ledger.settle(held, Amount(10, 1, 1))
    assert isinstance(ledger.reserve("t", "b", Amount(60, 1, 1)), Reservation)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (
            {"agent": Limits(usd_micros=600_000)},
            "the agent a has a cap of 0.60 USD: 0.000001 USD spent, 0.00 USD reserved by calls under way, and this "
            "call may take 0.60 USD",
        ),
        (
            {"trial": Limits(tokens=10)},
            "the trial t has a cap of 10 tokens: 1 token spent, 0 tokens reserved by calls under way, and this "
            "call may take 11 tokens, more than the whole cap",
        ),
        (
            {"job": Limits(calls=1)},
            "the job j has a cap of 1 call: 1 call spent, 0 calls reserved by calls under way, and this "
            "call may take 1 call",
        ),
    ],
)
def test_a_refusal_names_the_cap_and_what_stands_against_it(limits: dict[str, Limits], message: str) -> None:
    ledger = opened(**limits)
    first = ledger.reserve("t", "a", Amount(1, 1, 1))
    assert isinstance(first, Reservation)
    ledger.settle(first, Amount(1, 1, 1))
    refused = ledger.reserve("t", "a", Amount(600_000, 11, 1))
    assert isinstance(refused, Refusal)
    assert (str(refused), refused.passing) == (message, False)


def test_a_refused_call_leaves_no_trace() -> None:
    ledger = opened(job=Limits(calls=0))
    assert isinstance(ledger.reserve("t", "a", Amount(1, 1, 1)), Refusal)
    assert all(account.reserved == Amount() for account in ledger.accounts("t", "a"))


def test_new_caps_keep_what_was_spent() -> None:
    ledger = opened(agent=Limits(calls=1))
    held = ledger.reserve("t", "a", Amount(1, 1, 1))
    assert isinstance(held, Reservation)
    ledger.settle(held, Amount(1, 1, 1))
    ledger.open("t", "a", trial_limits=None, limits=Limits(calls=2))
    assert isinstance(ledger.reserve("t", "a", Amount(1, 1, 1)), Reservation)
    assert isinstance(ledger.reserve("t", "a", Amount(1, 1, 1)), Refusal)


def test_only_caps_in_money_or_tokens_need_a_bound() -> None:
    assert not opened(job=Limits(calls=3)).bounded("t", "a")
    assert opened(trial=Limits(tokens=3)).bounded("t", "a")


@pytest.mark.parametrize(("micros", "text"), [(0, "0.00 USD"), (5, "0.000005 USD"), (1_500_000, "1.50 USD")])
def test_money_is_shown_in_dollars(micros: int, text: str) -> None:
    assert usd(micros) == text


amounts = st.builds(Amount, st.integers(0, 50), st.integers(0, 50), st.just(1))
steps = st.lists(st.tuples(st.sampled_from("ab"), amounts, st.integers(0, 100), st.integers(0, 3)), max_size=40)


@given(steps, st.integers(0, 200), st.integers(0, 200), st.integers(0, 20))
def test_no_order_of_calls_passes_a_cap(run: list[Any], job: int, trial: int, agent: int) -> None:
    ledger = opened(Limits(usd_micros=job), Limits(tokens=trial), Limits(calls=agent))
    open_calls: list[Reservation] = []
    for name, amount, percent, settle in run:
        held = ledger.reserve("t", name, amount)
        if isinstance(held, Reservation):
            open_calls.append(held)
        for _ in range(min(settle, len(open_calls))):
            ending = open_calls.pop(0)
            used = ending.amount
            ledger.settle(ending, Amount(used.usd_micros * percent // 100, used.tokens * percent // 100, 1))
        own, whole, all_of_it = ledger.accounts("t", name)
        assert own.spent.calls + own.reserved.calls <= agent
        assert whole.spent.tokens + whole.reserved.tokens <= trial
        assert all_of_it.spent.usd_micros + all_of_it.reserved.usd_micros <= job


receipts = st.lists(
    st.tuples(st.sampled_from(["ok", "unknown", "error", "refused"]), st.integers(0, 10**9), st.integers(0, 10**6)),
    max_size=12,
)


@settings(max_examples=40)
@given(receipts)
def test_the_journals_sum_is_the_ledgers(run: list[tuple[Any, int, int]]) -> None:
    async def write(path: Path) -> tuple[Amount, Tally]:
        ledger, tally, journal = opened(), Tally(), Journal.open(path)
        for outcome, micros, tokens in run:
            receipt = made(outcome, micros, tokens)
            tally.add(receipt)
            journal.write(receipt)
            if outcome != "refused":
                held = ledger.reserve("t", "a", Amount(micros, tokens, 1))
                assert isinstance(held, Reservation)
                ledger.settle(held, Amount(micros, tokens, 1))
        await journal.close()
        return ledger.job.spent, tally

    with TemporaryDirectory() as home:
        path = Path(home) / "receipts.jsonl"
        spent, tally = asyncio.run(write(path))
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert sum(charged(path).values(), Amount()) == spent
        known = [line["cost_usd_micros"] for line in lines if line["cost_usd_micros"] is not None]
        assert (tally.usage.cost_usd_micros or 0) == sum(known)
        assert tally.usage.calls + tally.usage.refused_calls == len(lines)


numbers = count()


def made(outcome: Any, micros: int, tokens: int) -> Receipt:
    known = outcome in ("ok", "error")
    cost, used = (micros, tokens) if known else (None, None)
    if outcome == "refused":
        cost = used = micros = tokens = 0
    return Receipt(
        call_id=f"call-{next(numbers)}",
        job="j",
        trial="t",
        agent="a",
        member="a",
        endpoint="e",
        provider="scripted",
        model="m",
        dialect="anthropic",
        started_at="2026-11-30T00:00:00.000Z",
        total_ms=1.0,
        first_byte_ms=None,
        status=200,
        outcome=outcome,
        input_tokens=used,
        cache_read_tokens=None if used is None else 0,
        cache_write_tokens=None if used is None else 0,
        output_tokens=None if used is None else 0,
        cost_usd_micros=cost,
        charged_usd_micros=micros,
        charged_tokens=tokens,
        prices_sha256="00",
        usage=None,
        request_sha256=None,
        response_sha256=None,
    )
