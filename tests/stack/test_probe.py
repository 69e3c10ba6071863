"""What using the relay tells of why it can't be used."""

from __future__ import annotations

from email.utils import formatdate

import pytest

from bench.errors import MachineLacks
from bench.stack.probe import CLOCKS_APART_S, check_clock

NOW = 1_800_000_000.0


@pytest.mark.parametrize("apart_s", [-50, 0, 50])
def test_a_relay_whose_clock_is_near_enough_is_not_blamed_for_it(apart_s: int) -> None:
    check_clock(formatdate(NOW + apart_s, usegmt=True), NOW)


@pytest.mark.parametrize("date", [None, "", "yesterday", "Mon, 99 Foo 2026 00:00:00 GMT"])
def test_one_that_tells_no_time_is_not_either(date: str | None) -> None:
    check_clock(date, NOW)


@pytest.mark.parametrize(
    ("apart_s", "said"),
    [(3_600, "3,600 s ahead of"), (-3_600, "3,600 s behind"), (CLOCKS_APART_S + 2, "57 s ahead of")],
)
def test_one_an_hour_apart_is_told_as_that_whatever_it_says_itself(apart_s: float, said: str) -> None:
    with pytest.raises(MachineLacks) as caught:
        check_clock(formatdate(NOW + apart_s, usegmt=True), NOW)
    assert str(caught.value) == (
        f"the relay's clock: {said} this machine's, and it refuses 60; set both by NTP; `inv doctor` compares them"
    )
