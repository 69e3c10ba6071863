"""The statistics of a comparison: intervals for rates and for paired differences, the sign test. Pure.

A task is the unit: attempts at one task are alike, and intervals that count each as evidence of its own are too narrow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist, fmean, stdev

LEVEL = 0.95


@dataclass(frozen=True)
class Interval:
    """A 95 % confidence interval."""

    low: float
    high: float


def wilson(passed: int, of: int) -> Interval | None:
    """Wilson's score interval of a rate; None for a rate over nothing.

    E. B. Wilson, Journal of the American Statistical Association 22 (1927), 209–212. It takes the attempts as
    independent.
    """
    if not of:
        return None
    z = NormalDist().inv_cdf((1 + LEVEL) / 2)
    rate, share = passed / of, z * z / of
    middle = (rate + share / 2) / (1 + share)
    half = z / (1 + share) * math.sqrt(rate * (1 - rate) / of + share / of / 4)
    # At 0 and at 1 the bound is the rate itself, which floats miss by a hair.
    return Interval(max(0.0, middle - half) if passed else 0.0, min(1.0, middle + half) if passed < of else 1.0)


def difference_interval(differences: Sequence[Fraction]) -> Interval | None:
    """Of the mean of paired differences, one a task, each of per-task means: between -1 and 1.

    The standard error of paired differences, clustered by task (E. Miller, Adding Error Bars to Evals, arXiv
    2411.00640), with Student's t of n - 1 degrees of freedom, since tasks are often few. None where there is but one
    difference, or where all are the same: there is nothing to tell by how sure the mean is.
    """
    if len(set(differences)) < 2:
        return None
    mean = fmean(differences)
    half = student_t(len(differences) - 1) * stdev(differences) / math.sqrt(len(differences))
    return Interval(max(-1.0, mean - half), min(1.0, mean + half))


def sign_test(better: int, worse: int) -> float | None:
    """The exact two-sided p of so many pairs for the one side and so many for the other; None where no pair differs.

    sign_test(22, 8) -> 0.0161 (public case 52). Pairs without a difference say nothing (W. J. Dixon and A. M. Mood,
    Journal of the American Statistical Association 41 (1946), 557–566).
    """
    pairs = better + worse
    if not pairs:
        return None
    tail = sum(math.comb(pairs, k) for k in range(min(better, worse) + 1))
    return min(1.0, 2 * tail / (1 << pairs))


def student_t(freedom: int) -> float:
    """What `|T|` stays below with 95 %, of so many degrees of freedom: 12.706 for 1, 1.960 for very many."""
    low, high = 0.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < LEVEL else (low, middle)
    return high


def _within(t: float, freedom: int) -> float:
    """The probability of `|T| < t`: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4."""
    angle = math.atan2(t, math.sqrt(freedom))
    odd = freedom % 2
    term, series = (math.cos(angle) if odd else 1.0), 0.0
    for k in range(2 + odd, freedom + 1, 2):
        series += term
        term *= math.cos(angle) ** 2 * (k - 1) / k
    series *= math.sin(angle)
    return (angle + series) * 2 / math.pi if odd else series
