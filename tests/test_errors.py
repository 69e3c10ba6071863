"""Exit codes and messages of what goes wrong."""

from __future__ import annotations

import signal

import pytest

from bench.errors import (
    BuzzbenchError,
    Interrupted,
    InvalidInput,
    JobEnded,
    MachineLacks,
    Problem,
    raise_problems,
)
from bench.trial.stops import EXIT_CODES


def test_exit_codes_are_those_of_the_design() -> None:
    assert [c.exit_code for c in (BuzzbenchError, InvalidInput, MachineLacks)] == [1, 2, 3]
    assert {kind: JobEnded("", code).exit_code for kind, code in EXIT_CODES.items()} == {
        "stopped": 1,
        "budget": 4,
        "waiting": 75,
    }
    assert Interrupted(signal.SIGINT, "").exit_code == 130
    assert Interrupted(signal.SIGTERM, "").exit_code == 143


def test_a_problem_says_where_what_and_what_to_do() -> None:
    assert (
        str(Problem("team.yaml: roster", "no orchestrator", "give one"))
        == "team.yaml: roster: no orchestrator; give one"
    )


def test_problems_of_input_and_machine_together_are_all_said_and_count_as_input() -> None:
    with pytest.raises(InvalidInput, match=r"a: x\nb: y") as raised:
        raise_problems([Problem("a", "x"), Problem("b", "y", lacks=True)])
    assert raised.value.exit_code == 2


def test_problems_of_the_machine_alone_are_exit_3() -> None:
    with pytest.raises(MachineLacks):
        raise_problems([Problem("b", "y", lacks=True)])


def test_no_problem_raises_nothing_and_twice_the_same_is_said_once() -> None:
    raise_problems([])
    with pytest.raises(InvalidInput) as raised:
        raise_problems([Problem("a", "x"), Problem("a", "x")])
    assert len(raised.value.problems) == 1
