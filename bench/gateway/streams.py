"""Streamed answers on a cassette: an event each, with names for values, also for those that run over several events.

A model's text comes in pieces, and an event id in it may begin in one and end in the next. Its name stands whole in the
piece in which the value ends. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from bench.gateway.normalise import REFERENCES, Texts, mapped

PIECES = frozenset(
    {"text", "thinking", "partial_json", "content", "reasoning_content", "reasoning", "refusal", "arguments", "delta"}
)
"""The fields whose values, one event after the other, make one text: of Anthropic's and both of OpenAI's streams."""

WHICH = ("type", "index", "item_id", "output_index", "content_index", "summary_index")
"""The fields of an event that tell one such text from another."""

_EVENT = re.compile(r".*?(?:\r\n\r\n|\n\n|\r\r)|.+", re.DOTALL)
_DATA = re.compile(r"^data: ?(.*?)\r?$", re.MULTILINE)

type Place = tuple[Any, ...]
type Visit = Callable[[Place, str], str]


def events_of(body: str) -> list[str]:
    """The events of a stream, each with the blank line that ends it; what follows the last one is one more."""
    return _EVENT.findall(body)


def named(body: str, said: Callable[[Sequence[str]], list[str]], reference: Texts) -> tuple[str, ...]:
    """The events of a stream, named. `said` names a text that comes in pieces, piece by piece."""
    events = [(event, _data(event)) for event in events_of(body)]
    pieces: dict[Place, list[str]] = {}

    def collect(place: Place, text: str) -> str:
        pieces.setdefault(place, []).append(text)
        return text

    for number, (_, value) in enumerate(events):
        _walk(value, _visitor(number, value, collect))
    told = {place: iter(said(texts)) for place, texts in pieces.items()}

    def event(number: int) -> str:
        text, value = events[number]
        if value is None:
            return said([text])[0]
        visit = _visitor(number, value, lambda place, _: next(told[place]), reference)
        return _with_data(text, _walk(value, visit))

    return tuple(map(event, range(len(events))))


def spoken(events: Sequence[str], text: Texts, reference: Texts) -> Iterator[str]:
    """The events with this run's values."""
    for event in events:
        value = _data(event)
        yield text(event) if value is None else _with_data(event, mapped(value, text, reference))


def _data(event: str) -> dict[str, Any] | None:
    """An event's data; None where it isn't a JSON object."""
    found = _DATA.search(event)
    try:
        value = orjson.loads(found[1]) if found else None
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def _with_data(event: str, value: Mapping[str, Any]) -> str:
    data = orjson.dumps(value).decode()
    found = _DATA.search(event)
    assert found
    return f"{event[: found.start()]}data: {data}{event[found.end(1) :]}"


def _visitor(number: int, value: Any, visit: Visit, reference: Texts | None = None) -> Visit:
    """Calls `visit` with the place of each text of an event: of all its pieces the same, else of its own."""
    which = tuple(str(value.get(name)) for name in WHICH) if isinstance(value, dict) else ()

    def of_path(path: Place, text: str) -> str:
        if path[-1] in REFERENCES:
            return text if reference is None else reference(text)
        return visit((which, path) if path[-1] in PIECES else (number, path), text)

    return of_path


def _walk(value: Any, visit: Visit, path: Place = ()) -> Any:
    """The value with its texts visited, in order. A part of a list is known by its `index`, if it has one."""
    if isinstance(value, str):
        return visit(path, value)
    if isinstance(value, list):
        return [
            _walk(part, visit, (*path, part.get("index", number) if isinstance(part, dict) else number))
            for number, part in enumerate(value)
        ]
    if isinstance(value, dict):
        return {name: _walk(part, visit, (*path, name)) for name, part in value.items()}
    return value
