"""Checks: a cause is told, and not its symptoms; nothing is passed over in silence."""

from __future__ import annotations

from typing import Any

import pytest

from bench.doctor.check import Check, Found, Result, State, run
from bench.doctor.run import CHECKS, counts, exit_code, lines
from bench.errors import BuzzbenchError, MachineLacks
from tests.doctor.conftest import Make


def check(name: str, state: State = "ok", *needs: str, **more: Any) -> Check:
    return Check(name, lambda _: Found(state, f"{name} was looked at", "mend it"), needs, **more)


def broken(error: Exception) -> Check:
    def look(_: object) -> Found:
        raise error

    return Check("broken", look)


def states(make: Make, *checks: Check) -> dict[str, tuple[State, str]]:
    return {result.name: (result.state, result.detail) for result in run(checks, make())}


def test_what_depends_on_a_failure_is_skipped_and_names_its_cause(make: Make) -> None:
    found = states(
        make, check("engine", "fail"), check("compose", "ok", "engine"), check("up", "ok", "compose"), check("disk")
    )
    assert found == {
        "engine": ("fail", "engine was looked at"),
        "compose": ("skip", "it needs engine"),
        "up": ("skip", "it needs engine"),
        "disk": ("ok", "disk was looked at"),
    }


def test_a_warning_keeps_nobody_from_looking(make: Make) -> None:
    assert states(make, check("a", "warn"), check("b", "ok", "a"))["b"] == ("ok", "b was looked at")


def test_a_failure_that_is_not_required_is_shown_as_a_warning_and_still_a_cause(make: Make) -> None:
    found = states(make, check("a", "fail", required=False), check("b", "ok", "a"))
    assert found == {"a": ("warn", "a was looked at"), "b": ("skip", "it needs a")}


def test_a_skipped_check_is_no_ground_to_stand_on(make: Make) -> None:
    assert states(make, check("a", "skip"), check("b", "ok", "a"))["b"] == ("skip", "it needs a")


@pytest.mark.parametrize(
    ("error", "detail", "fix"),
    [
        (MachineLacks.of("disk", "it is full", "make room"), "disk: it is full", "make room"),
        (BuzzbenchError("it died", fix="start it"), "it died; start it", ""),
        (KeyError("x"), "the check broke: KeyError: 'x'", "report it, with this line"),
    ],
)
def test_a_check_that_raises_has_failed_and_breaks_no_other(
    make: Make, error: Exception, detail: str, fix: str
) -> None:
    first, second = run([broken(error), check("next")], make())
    assert (first.state, first.detail, first.fix, second.state) == ("fail", detail, fix, "ok")


def test_the_exit_code_is_3_where_a_check_failed_and_with_strict_also_where_one_was_skipped() -> None:
    """Case 50."""
    by_state = {state: [Result("a", "ok", ""), Result("b", state, "")] for state in ("ok", "warn", "skip", "fail")}
    assert {state: exit_code(results, strict=False) for state, results in by_state.items()} == {
        "ok": 0,
        "warn": 0,
        "skip": 0,
        "fail": 3,
    }
    assert {state: exit_code(results, strict=True) for state, results in by_state.items()} == {
        "ok": 0,
        "warn": 3,
        "skip": 3,
        "fail": 3,
    }


def test_every_finding_but_a_good_one_has_its_fix_below() -> None:
    results = [Result("lock", "fail", "differs", "run ./inv"), Result("disk", "ok", "room", "unused")]
    assert lines(results) == ["✗ lock  differs", "        → run ./inv", "✓ disk  room", "1 ok, 1 fail"]
    assert counts(results) == {"ok": 1, "warn": 0, "fail": 1, "skip": 0}


def test_colour_is_only_for_who_wants_it() -> None:
    assert lines([Result("a", "warn", "x")], colour=True)[0] == "\x1b[33m!\x1b[0m a  x"


def test_every_check_has_a_name_of_its_own_and_needs_only_those_before_it() -> None:
    seen: list[str] = []
    for one in CHECKS:
        assert one.name not in seen
        assert set(one.needs) <= set(seen)
        seen.append(one.name)
