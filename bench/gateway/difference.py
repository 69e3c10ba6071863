"""Where two requests part: the recorded request nearest to one that wasn't recorded, and the first difference. Pure.

>>> first({"messages": [{"content": "REPORT 1"}]}, {"messages": [{"content": "REPORT 2"}]}).where
'messages[0].content'
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import orjson

from bench.gateway.cassette import Call, conversation_of

AROUND_CHARACTERS = 60
"""What is shown of a text before and after the place where it differs."""


@dataclass(frozen=True)
class Difference:
    """The first place where a request differs from a recorded one: `where` is its path, the two are excerpts."""

    where: str
    recorded: str
    now: str

    def __str__(self) -> str:
        return f"it differs first at {self.where}: recorded {self.recorded}, now {self.now}"


def first(recorded: Mapping[str, Any], now: Mapping[str, Any]) -> Difference | None:
    """The first difference, the conversation last; None where there is none."""
    talk = conversation_of(recorded)
    fields = [*sorted((recorded.keys() | now.keys()) - {talk}), talk]
    return next(_differences(fields, recorded, now), None)


def nearest(request: Mapping[str, Any], calls: Iterable[Call]) -> Call | None:
    """The recorded call whose conversation shares most with the request: messages, then characters of the next one."""
    return max(calls, key=lambda call: _likeness(call.request, request), default=None)


def _likeness(recorded: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[int, int, int]:
    theirs, ours = (request.get(conversation_of(request)) or [] for request in (recorded, now))
    same = _shared(theirs, ours)
    rest = [orjson.dumps(messages[same]).decode() if same < len(messages) else "" for messages in (theirs, ours)]
    return same, _shared(*rest), -abs(len(theirs) - len(ours))


def _shared(a: Sequence[Any], b: Sequence[Any]) -> int:
    """With how many equal parts two lists, or texts, begin."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))


def _differences(fields: Iterable[str], recorded: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Difference]:
    for name in fields:
        if name not in recorded:
            yield Difference(name, "nothing", _excerpt(now[name], 0))
        elif name not in now:
            yield Difference(name, _excerpt(recorded[name], 0), "nothing")
        else:
            yield from _within(name, recorded[name], now[name])


def _within(where: str, recorded: Any, now: Any) -> Iterator[Difference]:
    if recorded == now and type(recorded) is type(now):
        return
    if isinstance(recorded, dict) and isinstance(now, dict):
        for name in sorted(recorded.keys() | now.keys()):
            yield from _part(f"{where}.{name}", recorded.get(name, _ABSENT), now.get(name, _ABSENT))
    elif isinstance(recorded, list) and isinstance(now, list):
        for number in range(max(len(recorded), len(now))):
            theirs, ours = (part[number] if number < len(part) else _ABSENT for part in (recorded, now))
            yield from _part(f"{where}[{number}]", theirs, ours)
    elif isinstance(recorded, str) and isinstance(now, str):
        at = _shared(recorded, now)
        yield Difference(where, _excerpt(recorded, at), _excerpt(now, at))
    else:
        yield Difference(where, _excerpt(recorded, 0), _excerpt(now, 0))


_ABSENT = object()


def _part(where: str, recorded: Any, now: Any) -> Iterator[Difference]:
    if recorded is _ABSENT or now is _ABSENT:
        yield Difference(where, *("nothing" if part is _ABSENT else _excerpt(part, 0) for part in (recorded, now)))
    else:
        yield from _within(where, recorded, now)


def _excerpt(value: Any, at: int) -> str:
    """What of a value is shown, for a text around a place in it."""
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    begin, end = max(0, at - AROUND_CHARACTERS), at + AROUND_CHARACTERS
    cut = text[begin:end]
    return repr(f"{'…' if begin else ''}{cut}{'…' if end < len(text) else ''}")
