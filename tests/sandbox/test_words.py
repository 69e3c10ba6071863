"""A Dockerfile's words are read as its reference says."""

from __future__ import annotations

import pytest

from bench.sandbox.words import Unsupported, split, word

VARIABLES = {"X": "a b", "HOME": "/root", "EMPTY": ""}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("one two\tthree", ["one", "two", "three"]),
        ("a='x y' b=\"x y\" c=x\\ y", ["a=x y", "b=x y", "c=x y"]),
        ("'$X' \"$X\" $X", ["$X", "a b", "a b"]),
        ("${X}c $Xc \\$X $", ["a bc", "", "$X", "$"]),
        ("${NONE:-/y} ${EMPTY:-z} ${X:+w} ${NONE:+w}", ["/y", "z", "w", ""]),
        ("${NONE:-$HOME/x}", ["/root/x"]),
        ("'' \"\"", ["", ""]),
        ('"a\\"b" "a\\nb" \'a\\b\'', ['a"b', "a\\nb", "a\\b"]),
        ("", []),
    ],
)
def test_words_are_split(text: str, words: list[str]) -> None:
    assert split(text, VARIABLES) == words


def test_one_word_keeps_its_blanks() -> None:
    assert word("the rest  of $HOME", VARIABLES) == "the rest  of /root"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("'open", "a quote (') isn't closed"),
        ("${X#a}", "${X#a} isn't a substitution that is supported"),
    ],
)
def test_what_cannot_be_read_is_refused(text: str, reason: str) -> None:
    with pytest.raises(Unsupported) as refused:
        split(text, VARIABLES)
    assert str(refused.value) == reason
