"""The one reader of files that people name: regular files alone, so long at most, UTF-8; and of how deep they nest.

A named pipe would be waited for without end, a device or a huge file fill the memory, and what is nested a thousand
times exhaust a parser.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Any

from bench.errors import InvalidInput
from bench.faults import shown
from bench.nearest import similar_path
from bench.settings import ROOT

MIB = 1 << 20

MOST_BYTES = 4 * MIB
"""Of a file that a person writes. Those that come with Buzzbench have some 10,000."""

USUAL_PLACES = {"manifest": ROOT / "manifests", "endpoint file": ROOT / "manifests/endpoints"}
"""Where files of a kind mostly are, for one that isn't where it was looked for."""

MOST_DEPTH = 50
"""How many lists and mappings may lie in one another; a manifest has six."""

TOO_DEEP = f"is nested more than {MOST_DEPTH} times"

MOST_DIGITS = 100
"""Of a whole number: what is longer overflows Python's floats, or its own parser."""

TOO_LONG_A_NUMBER = f"has a number of more than {MOST_DIGITS} digits"

HALF = re.compile(r"[\ud800-\udfff]")
"""Halves of a character, which JSON can name one by one (`\\ud800`) and no file or address can hold."""

NO_CHARACTER = "holds half a character, such as \\ud800"


def data(path: Path, *, what: str, where: str = "", most_bytes: int = MOST_BYTES) -> bytes:
    """The bytes of a file. Messages name its kind, `what`, and its path, or `where`. Raises InvalidInput."""
    where = where or shown(path)
    try:
        # Without O_NONBLOCK the opening of a pipe that nobody writes to would not return.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode):
                raise InvalidInput.of(where, f"is a pipe or a device, no {what}", "give a file")
            content = file.read(most_bytes + 1)
    except FileNotFoundError:
        raise InvalidInput.of(where, f"no such {what}", similar(path, what)) from None
    except IsADirectoryError:
        raise InvalidInput.of(where, f"is a directory, no {what}") from None
    except OSError as error:
        raise InvalidInput.of(where, f"the {what} can't be read: {error.strerror}") from None
    except ValueError:
        raise InvalidInput.of(ascii(where), f"is no path of a {what}") from None
    if len(content) > most_bytes:
        raise InvalidInput.of(where, f"this {what} has more than {most_bytes // MIB} MiB")
    return content


def similar(path: Path, what: str) -> str:
    """`did you mean <path>`, of a file that isn't there; `what` is its kind."""
    return similar_path(path, *(USUAL_PLACES[what],) if what in USUAL_PLACES else ())


def text(path: Path, *, what: str, where: str = "", most_bytes: int = MOST_BYTES) -> str:
    """The text of a file, with plain line ends. Raises InvalidInput as `data` does, and where it is not UTF-8."""
    content = data(path, what=what, where=where, most_bytes=most_bytes)
    try:
        return content.decode().replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidInput.of(f"{where or shown(path)}:{line}", f"this {what} is not UTF-8 text") from None


def fault(value: Any) -> str | None:
    """What no parsed file may hold, if it does: nesting without measure, or half a character.

    >>> fault({"a": ["b", {"c": 1}]}), fault([chr(0xD800)])
    (None, 'holds half a character, such as \\\\ud800')
    """
    level = [value]
    for _ in range(MOST_DEPTH + 1):
        below: list[Any] = []
        for part in level:
            if isinstance(part, str):
                if has_half(part):
                    return NO_CHARACTER
            elif isinstance(part, dict):
                below += part
                below += part.values()
            elif isinstance(part, list):
                below += part
            elif is_too_long(part):
                return TOO_LONG_A_NUMBER
        if not below:
            return None
        level = below
    return TOO_DEEP


def has_half(text: str) -> bool:
    """Whether it holds half a character."""
    return not text.isascii() and HALF.search(text) is not None


def is_too_long(value: Any) -> bool:
    """Whether it is a number that nobody can mean."""
    return isinstance(value, int) and abs(value) >= 10**MOST_DIGITS
