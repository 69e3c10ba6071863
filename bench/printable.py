"""Text of others as it may be shown: nothing in it steers a terminal, and none of it passes for a line of ours."""

from __future__ import annotations

LONGEST = 2000
"""Characters of one line of others' text: who can write a name can write a megabyte of it."""


def printable(text: str) -> str:
    """The text with what isn't printable, but for line ends and tabs, as Python would write it.

    >>> printable("red: \\x1b[31m")
    'red: \\\\x1b[31m'
    """
    return "".join(c if c.isprintable() or c in "\n\t" else _escaped(c) for c in text)


def one_line(text: str) -> str:
    """The same on one line, of a bounded length.

    >>> one_line("a\\n   9  user → orch")
    'a\\\\n   9  user → orch'
    """
    if len(text) > LONGEST:
        text = f"{text[: LONGEST - 1]}…"
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return ascii(character)[1:-1]
