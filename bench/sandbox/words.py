"""A Dockerfile's words: quotes, escapes and variables, as its reference tells."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_VARIABLE = re.compile(r"\$(?:(?P<name>\w+)|\{(?P<braced>\w+)(?:(?P<how>:[-+])(?P<other>[^}]*))?\})")


class Unsupported(Exception):
    """What an instruction asks for that a sandbox doesn't do; the text says what."""


def word(text: str, variables: Mapping[str, str]) -> str:
    """The text as one word: quotes taken away, variables filled in (an unknown one is empty), blanks kept.

    >>> word('"$HOME/x y"', {"HOME": "/root"})
    '/root/x y'
    """
    return "".join(value for value, _ in _pieces(text, variables))


def split(text: str, variables: Mapping[str, str]) -> list[str]:
    """The words of the text; blanks separate them where they aren't quoted or escaped, or come from a variable.

    >>> split("a=1 b='two $words' c=$X", {"X": "a b"})
    ['a=1', 'b=two $words', 'c=a b']
    """
    words: list[str] = []
    current: str | None = None
    for value, blank in _pieces(text, variables):
        if not blank:
            current = (current or "") + value
        elif current is not None:
            words.append(current)
            current = None
    return words if current is None else [*words, current]


def _pieces(text: str, variables: Mapping[str, str]) -> Iterator[tuple[str, bool]]:
    """Pieces of the text as they read, each with whether it is a blank that separates."""
    at, quote = 0, ""
    while at < len(text):
        char = text[at]
        if char == "\\" and quote != "'" and at + 1 < len(text):
            kept = "\\" if quote and text[at + 1] not in '"$\\' else ""
            yield kept + text[at + 1], False
            at += 2
        elif char in "'\"" and quote in ("", char):
            quote = "" if quote else char
            yield "", False
            at += 1
        elif char == "$" and quote != "'":
            value, at = _variable(text, at, variables)
            yield value, False
        else:
            yield char, char in " \t" and not quote
            at += 1
    if quote:
        raise Unsupported(f"a quote ({quote}) isn't closed")


def _variable(text: str, at: int, variables: Mapping[str, str]) -> tuple[str, int]:
    match = _VARIABLE.match(text, at)
    if match is None:
        if text.startswith("${", at):
            raise Unsupported(f"{text[at:]} isn't a substitution that is supported")
        return "$", at + 1
    value = variables.get(match["name"] or match["braced"], "")
    if match["how"] == ":-" and not value:
        value = word(match["other"], variables)
    elif match["how"] == ":+":
        value = word(match["other"], variables) if value else ""
    return value, match.end()
