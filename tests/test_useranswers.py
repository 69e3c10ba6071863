"""What the user of a task answers: the first answer that fits, and none for ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.errors import InvalidInput
from bench.useranswers import TIMES, Answer, fitting, load

ANSWERS = (Answer(asked=["berth", "Quay"], answer="Nine."), Answer(asked=["?"], answer="I don't know."))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("Which berth?", 0),
        ("On what QUAY does it lie", 0),
        ("How late is it?", 1),
        ("Thank you", None),
    ],
)
def test_the_first_answer_that_fits_is_given(text: str, number: int | None) -> None:
    assert fitting(ANSWERS, text, {}) == number


def test_an_answer_is_not_given_for_ever_and_no_other_stands_in_for_it() -> None:
    assert fitting(ANSWERS, "Which berth?", {0: TIMES - 1}) == 0
    assert fitting(ANSWERS, "Which berth?", {0: TIMES}) is None
    assert fitting(ANSWERS, "How late is it?", {0: TIMES}) == 1


def test_a_task_without_the_file_has_a_user_who_answers_nothing(tmp_path: Path) -> None:
    assert load(tmp_path) == ()


def test_the_file_is_read_in_its_order(tmp_path: Path) -> None:
    (tmp_path / "user.yaml").write_text(
        'answers:\n  - asked: ["berth", "Quay"]\n    answer: Nine.\n  - asked: ["?"]\n    answer: "I don\'t know."\n'
    )
    assert load(tmp_path) == ANSWERS


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- asked: x\n", "{file}: this file of the user's answers is no mapping of fields to values"),
        ("answers: []\n", "{file}:1: answers: is empty"),
        ("answers:\n  - asked: []\n    answer: x\n", "{file}:2: answers[0].asked: is empty"),
        ("answers:\n  - asked: [x]\n", "{file}:2: answers[0].answer: is missing"),
        ("answers:\n  - asked: [x]\n    answer: 9\n", "{file}:3: answers[0].answer: 9 is no text"),
        (
            "answers:\n  - asked: [x]\n    anser: y\n    answer: z\n",
            "{file}:3: answers[0].anser: unknown field; did you mean answer",
        ),
    ],
)
def test_a_fault_is_named_with_its_line(text: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "user.yaml"
    file.write_text(text)
    with pytest.raises(InvalidInput) as caught:
        load(tmp_path)
    assert str(caught.value).startswith(problem.format(file=file))
