"""The statistics of a comparison, against values from elsewhere."""

from __future__ import annotations

from fractions import Fraction

import pytest

from bench.compare.paired import difference_interval, sign_test, student_t, wilson


def _halves(*numbers: int) -> list[Fraction]:
    return [Fraction(number, 2) for number in numbers]


@pytest.mark.parametrize(
    ("passed", "of", "low", "high"),
    [
        # R. G. Newcombe, Statistics in Medicine 17 (1998), 857–872, table I, method 3; the last is the third mirrored.
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (20, 20, 0.8389, 1.0),
    ],
)
def test_a_rates_interval_is_wilsons(passed: int, of: int, low: float, high: float) -> None:
    interval = wilson(passed, of)
    assert interval is not None
    assert (round(interval.low, 4), round(interval.high, 4)) == (low, high)


def test_a_rate_over_nothing_has_no_interval() -> None:
    assert wilson(0, 0) is None


@pytest.mark.parametrize(
    ("freedom", "t"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262), (10, 2.228), (29, 2.045), (120, 1.980)],
)
def test_students_t_is_that_of_the_tables(freedom: int, t: float) -> None:
    assert round(student_t(freedom), 3) == t


def test_a_differences_interval_is_over_tasks() -> None:
    """Differences 1, 0, 0 and 1/2: mean 0.375, s = 0.4787, t(3) = 3.1824, cut at 1."""
    interval = difference_interval(_halves(2, 0, 0, 1))
    assert interval is not None
    assert (round(interval.low, 4), interval.high) == (-0.3867, 1.0)
    wide = difference_interval(_halves(1, 0, 1, 0, 1, 0, 1, 0, 1, 0))
    assert wide is not None
    assert (round(wide.low, 4), round(wide.high, 4)) == (0.0615, 0.4385)


@pytest.mark.parametrize("differences", [(), (1,), (2, 2, 2), (0, 0)])
def test_differences_that_do_not_vary_tell_nothing_of_how_sure_they_are(differences: tuple[int, ...]) -> None:
    assert difference_interval(_halves(*differences)) is None


def test_equal_differences_are_equal_however_they_came_about() -> None:
    """As floats 1 - 2/3 and 1/3 are not the same."""
    assert difference_interval([1 - Fraction(2, 3), Fraction(1, 3)]) is None


@pytest.mark.parametrize(
    ("better", "worse", "p"),
    [(22, 8, 0.0161), (8, 22, 0.0161), (5, 0, 0.0625), (9, 1, 0.0215), (3, 3, 1.0), (1, 0, 1.0)],
)
def test_the_sign_test_is_exact_and_of_two_sides(better: int, worse: int, p: float) -> None:
    """Case 52: 22 against 8."""
    found = sign_test(better, worse)
    assert found is not None
    assert round(found, 4) == p


def test_without_a_pair_that_differs_there_is_no_p() -> None:
    assert sign_test(0, 0) is None


def test_many_pairs_are_no_trouble() -> None:
    assert sign_test(3000, 2000) == pytest.approx(0.0, abs=1e-12)
