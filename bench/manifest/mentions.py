"""Mentions in a prompt's text: a persona that addresses somebody whom the roster lacks would wake nobody."""

from __future__ import annotations

import re
from collections.abc import Collection

MENTION = re.compile(r"(?<![\w@./+-])@([A-Za-z][\w-]*+)(?![\w/(.]*[/(]|\.\w)")
"""`@name` as a word of its own: no e-mail address, package (`@scope/name`) or decorator (`@mark.slow`, `@cache(1)`)."""

TALK = frozenset({"mention", "mentions", "mentioned", "mentioning", "name", "names", "everyone", "all"})
"""Words that texts about mentions write with an `@` and mean nobody by."""


def unknown_mentions(text: str, known: Collection[str]) -> dict[str, int]:
    """The names that a text mentions and `known` lacks, each with the first line that has it. Case doesn't count.

    >>> unknown_mentions("Ask @worker-1, then\\nthe @critic.", {"orch", "worker-1"})
    {'critic': 2}
    """
    allowed = {name.casefold() for name in known} | TALK
    found: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        for match in MENTION.finditer(line):
            found.setdefault(match[1], number)
    return {name: line for name, line in found.items() if name.casefold() not in allowed and not name.isupper()}
