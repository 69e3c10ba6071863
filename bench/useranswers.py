"""What the user of a task answers when the team asks: the task's `user.yaml`. Pure but for reading that file.

    answers:
      - asked: ["berth", "quay"]              # any of these in a message that mentions the user, whatever their case
        answer: "The Meridian gets berth 9."

The first answer that fits is given, to a model as to a script. Nobody is answered for ever: two who thank each other
would not stop (public case 28).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bench.errors import InvalidInput
from bench.reading import yamlfile

FILE = "user.yaml"

TIMES = 3
"""How often one answer is given in a trial: a team may ask again, but not go on for ever."""

type Text = Annotated[str, Field(min_length=1)]


class Answer(BaseModel):
    """What is said to a message that has any of the words in `asked`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    asked: Annotated[list[Text], Field(min_length=1)] = Field(
        description="Words, any of which in a message that mentions the user asks for this answer, whatever their case."
    )
    answer: Text = Field(description=f"What the user says, in the thread of that message; {TIMES} times at most.")

    def fits(self, text: str) -> bool:
        """Whether the text asks for it."""
        return any(word.casefold() in text.casefold() for word in self.asked)


class Answers(BaseModel):
    """The form of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    answers: Annotated[list[Answer], Field(min_length=1)] = Field(
        description="The first one that a message asks for is given."
    )


def load(task_dir: Path) -> tuple[Answer, ...]:
    """The task's answers in their order, none where it has no such file. Raises InvalidInput with every fault."""
    path = task_dir / FILE
    if not path.exists():
        return ()
    document = yamlfile.read(path, what="file of the user's answers")
    try:
        return tuple(Answers.model_validate(document.data).answers)
    except ValidationError as error:
        raise InvalidInput(document.problems(error, Answers)) from None


def fitting(answers: Sequence[Answer], text: str, given: Mapping[int, int]) -> int | None:
    """The number of the answer that is to be given; `given` says how often each was. None where none fits any more.

    >>> answers = (Answer(asked=["berth"], answer="Nine."), Answer(asked=["?"], answer="I don't know."))
    >>> fitting(answers, "Which Berth?", {}), fitting(answers, "How late is it?", {}), fitting(answers, "Thanks", {})
    (0, 1, None)
    """
    number = next((n for n, answer in enumerate(answers) if answer.fits(text)), None)
    return None if number is None or given.get(number, 0) >= TIMES else number
