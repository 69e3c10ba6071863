"""Texts that come in pieces: a model's answer streamed in deltas, a value cut over several fields of one JSON object.

`joined` puts together what is in the JSON of a file, in its lines or in the whole of it: the strings of one value in
their order, and those of the same field in one value after another, as streams of deltas are logged (also behind a
prefix, such as `data: `, and within a string of JSON). The pieces of a field are put together twice: all of it, and
apart for each `index`, `type`, `sessionId` and the like beside it or above it, so that streams may run through each
other.

It can't find what has no JSON around it, such as one letter a line; pieces in several files; pieces with other text
between them in their field; streams that nothing but their content tells apart; and what is in the middle of a longer
piece.
"""

from __future__ import annotations

import itertools
import json
import re
from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench.pack.streams import Unreadable

MOST_BYTES = 32_000_000
"""Of one JSON value: it takes many times as much memory when it is read."""

END_CHARACTERS = 1000
"""Of a longer piece its beginning and its end are taken: longer than any key."""

MOST_FIELDS = 20_000
"""That are followed at the same time; that which had no piece for longest makes room for a new one."""

MOST_BROKEN = 1_000_000
"""Lines that only look like JSON: a program's text has some."""

MOST_BEGINNINGS = 8
"""Of JSON in one line that is none."""

BEGINNING, BEGINNING_BYTES = re.compile(r"[{\[]"), re.compile(rb"[{\[]")

TELLING = frozenset(
    {
        *("agent", "agent_id", "author", "call_id", "choice", "content_index", "event", "id", "index", "item_id"),
        *("kind", "method", "name", "output_index", "role", "session", "sessionId", "sessionUpdate", "session_id"),
        *("stream", "toolCallId", "tool_call_id", "type"),
    }
)
"""Fields that tell one stream from another, in Anthropic's and OpenAI's streams and in ACP's updates."""


type Where = Callable[[int], str]


class Joined:
    """Pieces as one text. `starts` are where each begins in it, `lines` the line of each, 0 where there are none."""

    def __init__(self, where: Where) -> None:
        self.text, self.starts, self.lines = bytearray(), array("Q"), array("L")
        self._where = where

    def add(self, piece: str, line: int) -> None:
        """The next piece."""
        if len(piece) > 2 * END_CHARACTERS:
            # What is between them is looked at where it is.
            piece = f"{piece[:END_CHARACTERS]}\n{piece[-END_CHARACTERS:]}"
        self.starts.append(len(self.text))
        self.lines.append(line)
        self.text += piece.encode(errors="surrogatepass")

    def over(self, start: int, end: int) -> tuple[int, int, int]:
        """Of a part of the text: its first piece, its last, and where the first ends."""
        first, last = (bisect_right(self.starts, at) - 1 for at in (start, end - 1))
        return first, last, self.starts[first + 1] if first + 1 < len(self.starts) else len(self.text)

    def place(self, piece: int) -> str:
        """Where a piece is, to be put behind its file's name."""
        line, path = self.lines[piece], self._where(piece)
        return f"{f':{line}' if line else ''}{f', {path}' if path else ''}"


@dataclass(frozen=True)
class _Place:
    """A container, by its way from the top: `field` is the hash of that, `stream` also of what tells streams apart."""

    above: _Place | None
    name: str | int
    field: int
    stream: int


def joined(data: bytes) -> Iterator[Joined]:
    """The strings of each JSON value in these bytes, and what is in more than one piece in a field of several.

    Raises Unreadable where too much only looks like JSON.
    """
    fields: OrderedDict[int, Joined] = OrderedDict()
    seen: set[int] = set()
    for line, value in _values(data):
        whole = Joined(partial(_path_of_string, value))
        for place, name, piece in _strings(value):
            whole.add(piece, line)
            for key in {hash((place.field, name)), hash((place.stream, name))}:
                followed = fields.pop(key, None) or Joined(partial(_path, place, name))
                fields[key] = followed
                followed.add(piece, line)
                if len(fields) > MOST_FIELDS:
                    yield from _several(fields.popitem(last=False)[1], seen)
        if whole.starts:
            yield whole
    for followed in fields.values():
        yield from _several(followed, seen)


def _several(one: Joined, seen: set[int]) -> Iterator[Joined]:
    if len(one.starts) > 1 and (known := hash(bytes(one.text))) not in seen:
        seen.add(known)
        yield one


def _values(data: bytes) -> Iterator[tuple[int, Any]]:
    """(line, value) of the JSON in a file: of the whole of it, without a line, else of all that is in its lines."""
    if len(data) <= MOST_BYTES and data.lstrip()[:1] in (b"{", b"["):
        try:
            yield 0, _READER.decode(data.decode(errors="replace"))
        except (ValueError, RecursionError):
            pass
        else:
            return
    line, end, broken = 1, 0, 0
    while found := BEGINNING_BYTES.search(data, end):
        # Lines without any are passed over together.
        start = max(end, data.rfind(b"\n", end, found.start()) + 1)
        line += data.count(b"\n", end, start)
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        if end - start <= MOST_BYTES and data.find(b'"', start, end) >= 0:
            values = [*_in_line(data[start:end].decode(errors="replace"))]
            yield from ((line, value) for value in values)
            broken += not values
        if broken > MOST_BROKEN:
            raise Unreadable(f"more than {MOST_BROKEN:,} lines that look like JSON and are none")


def _in_line(text: str) -> Iterator[Any]:
    at, failed = 0, 0
    while failed < MOST_BEGINNINGS and (found := BEGINNING.search(text, at)):
        try:
            value, at = _READER.raw_decode(text, found.start())
        except (ValueError, RecursionError):
            failed, at = failed + 1, found.end()
        else:
            yield value


class _Object(list[tuple[str, Any]]):
    """A JSON object as its pairs: a name may be there twice."""


class _Number(str):
    """A number as it is written: one of thousands of digits is an error to Python."""

    __slots__ = ()


_READER = json.JSONDecoder(object_pairs_hook=_Object, parse_int=_Number, parse_float=_Number)


def _strings(value: Any) -> Iterator[tuple[_Place, str | int, str]]:
    """(container, name, string) of all strings in a value, in their order. Without recursion: it may be deep."""
    if isinstance(value, list):
        stack = [_entered(None, "", value)]
        while stack:
            place, rest = stack[-1]
            for name, part in rest:
                if isinstance(part, list):
                    stack.append(_entered(place, name, part))
                    break
                if isinstance(part, str) and not isinstance(part, _Number) and part:
                    yield place, name, part
                    if inner := [*_in_line(part)]:
                        stack.append(_entered(place, name, inner))
                        break
            else:
                stack.pop()


def _entered(above: _Place | None, name: str | int, value: list[Any]) -> tuple[_Place, Iterator[tuple[str | int, Any]]]:
    """A container's place, and what is in it."""
    by_field = hash((above.field, name if isinstance(name, str) else None)) if above else 0
    by_stream = hash((above.stream, name)) if above else 0
    if not isinstance(value, _Object):
        return _Place(above, name, by_field, by_stream), enumerate(value)
    for told, part in value:
        if told in TELLING and isinstance(part, str):
            by_stream = hash((by_stream, told, part))
    return _Place(above, name, by_field, by_stream), iter(value)


def _path(place: _Place, name: str | int, _: int = 0) -> str:
    names = [str(name)]
    above: _Place | None = place
    while above is not None and above.above is not None:
        names.append(str(above.name))
        above = above.above
    return ".".join(reversed(names))


def _path_of_string(value: Any, number: int) -> str:
    place, name, _ = next(itertools.islice(_strings(value), number, None))
    return _path(place, name)
