"""In what two sides differ, and what that does to their figures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bench.compare import terms
from bench.condition import Limits
from bench.planning.leaderboard import Reason, Verdict
from bench.records.planrecord import JobPlanRecord, Seat
from tests.records.kit import job

LEAD = Seat("orch", "orch", "lead", Limits(), "sonnet", "cloud")
WORKERS = tuple(Seat(f"worker-{n}", "worker", "implementer", Limits(), "haiku", "cloud") for n in (1, 2))
SOLO = replace(
    job().plan,
    condition="solo",
    roster=(LEAD,),
    harnesses=("builtin",),
    budget={"timeout_seconds": 900, "usd_micros": None, "tokens": None, "calls": None},
    endpoints={"cloud": {"provider": "anthropic", "base_url": "https://cloud.example"}},
)
PAIR = replace(SOLO, condition="pair", condition_sha256="cd" * 32, roster=(LEAD, replace(LEAD, role="navigator")))


def _told(a: JobPlanRecord, b: JobPlanRecord) -> tuple[dict[str, tuple[str, str]], list[str], list[str]]:
    found = terms.differing([a], [b])
    shown = {one.name: (one.a, one.b) for one in found}
    return shown, [*terms.not_comparable(a, b, found)], [*terms.cautions(a, b, found)]


def test_one_permitted_difference_is_told_and_nothing_speaks_against_it() -> None:
    """Cases 51 and 52: a solo and a pair on the same model, with the same budget."""
    differing, against, cautions = _told(SOLO, PAIR)
    assert differing == {
        "condition": ("solo abababababab", "pair cdcdcdcdcdcd"),
        "team": ("lead", "lead + navigator"),
    }
    assert (against, cautions) == ([], [])


def test_two_differences_at_once_can_be_put_down_to_neither() -> None:
    team = replace(PAIR, roster=(LEAD, *WORKERS))
    differing, against, cautions = _told(SOLO, team)
    assert differing["team"] == ("lead", "lead + 2 implementer")
    assert differing["models"] == ("sonnet", "sonnet, haiku")
    assert against == []
    assert cautions == [
        "more than one thing differs (team, models): a difference can be put down to none of them alone"
    ]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"stack": "compose"}, "stack"),
        ({"environment": "sandbox"}, "environment"),
        ({"budget": {"timeout_seconds": 1800}}, "budget of each trial"),
        (
            {"leaderboard": Verdict((Reason("agent_timeout_multiplier", "2.0, and a board wants 1"),))},
            "other terms",
        ),
    ],
)
def test_what_must_be_equal_and_is_not_makes_figures_not_comparable(change: dict[str, Any], named: str) -> None:
    differing, against, _ = _told(SOLO, replace(PAIR, **change))
    assert named in differing
    assert against == [f"{named}: not the same on both sides"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"rehearsal": "good"}, "B is a rehearsal: its figures are the script's, and measure no team"),
        ({"replay": "ef" * 32}, "B is a replay: a cassette answered in the models' place"),
        ({"agent": "oracle"}, "B is Harbor's oracle, which asks no model"),
        ({"known": False}, "what B measured nobody can tell: its record can't be read"),
    ],
)
def test_what_asked_no_model_measures_no_team(change: dict[str, Any], why: str) -> None:
    assert why in _told(SOLO, replace(PAIR, **change))[1]


def test_of_a_side_without_a_record_nothing_is_made_up() -> None:
    unknown = replace(PAIR, known=False, stack="?", environment="?", roster=(), budget={})
    assert _told(SOLO, unknown) == ({}, ["what B measured nobody can tell: its record can't be read"], [])


def test_conditions_that_differ_only_in_what_the_record_does_not_hold_are_said_to_differ() -> None:
    _, against, cautions = _told(SOLO, replace(SOLO, condition_sha256="cd" * 32))
    assert against == []
    assert cautions == [
        "the conditions differ in prompts, prices or settings: `diff` of the two manifests shows in which"
    ]


def test_a_model_that_is_dearer_on_one_side_is_named() -> None:
    """Else its team would seem to cost more, or less, for what only the price sheet says."""
    cheap, dear, other = {"input": 3, "output": 15}, {"input": 30, "output": 15}, {"input": 1, "output": 5}
    ours, theirs = replace(SOLO, prices={"sonnet": cheap}), replace(PAIR, prices={"sonnet": dear, "haiku": other})
    said = "sonnet: not at the same prices on both sides: `inv reprice` costs both at those of one file"
    assert _told(ours, theirs)[2] == [said]
    assert _told(ours, replace(theirs, prices={"sonnet": cheap, "haiku": other}))[2] == []
    assert _told(ours, replace(theirs, prices={}))[2] == [], "a record of before doesn't say"


def test_times_of_sides_that_played_more_and_fewer_at_a_time_are_not_held_against_each_other() -> None:
    said = "A played 4 trials at a time and B 1: their times say nothing of the teams"
    assert _told(replace(SOLO, concurrent=4), replace(PAIR, concurrent=1))[2] == [said]
    assert _told(replace(SOLO, concurrent=4), replace(PAIR, concurrent=4))[2] == []
    assert _told(replace(SOLO, concurrent=4), PAIR)[2] == [], "a record that doesn't say"


def test_the_same_measured_twice_differs_by_chance() -> None:
    assert _told(SOLO, replace(SOLO, job="again"))[2] == ["both sides measured the same: what differs is chance"]


def test_several_jobs_of_a_side_are_told_together() -> None:
    other = replace(SOLO, dataset="org/bench@1")
    (found,) = terms.differing([SOLO, other], [SOLO])
    assert (found.name, found.a, found.b) == ("dataset", "tasks of a path + org/bench@1", "tasks of a path")
