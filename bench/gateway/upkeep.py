"""A cassette's file after its time: put in order when its job has ended, taken up again when its job goes on. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson

from bench.gateway import cassette
from bench.gateway.cassette import Address


def tidied(data: bytes) -> bytes:
    """A finished cassette: calls by address, then times as they went, so that what differs by chance comes last.

    Of a trial that was run again only the last attempt stays. An agent's calls keep their order, for each is told
    against the one before.
    """
    head, values = _read(data)
    last = {(v["time"]["task"], v["trial"]): _attempt(v["time"]) for v in values if "time" in v}
    kept, _ = _kept(values, set(last.values()))

    def place(value: Mapping[str, Any]) -> tuple[Any, ...]:
        if "call" in value:
            return (0, *value["call"].values())
        return (1, *_attempt(value["time"]), value["asked"])

    return head + b"".join(cassette.line(value) for value in sorted(kept, key=place))


def reopened(data: bytes, is_kept: Callable[[str], bool]) -> tuple[bytes, dict[str, int]]:
    """(a cassette's lines to go on from, how many attempts they have at each task).

    Left out are what a kill tore, and the attempts of trials that are not kept any more; the others move up.
    """
    head, values = _read(data)
    kept, counts = _kept(values, {_attempt(v["time"]) for v in values if "time" in v and is_kept(v["trial"])})
    return head + b"".join(map(cassette.line, kept)), counts


def _read(data: bytes) -> tuple[bytes, list[dict[str, Any]]]:
    """The header's line, and the values of the others that are whole; a call without its time is not."""
    head, *lines = data.splitlines(keepends=True)
    values = [value for line in lines if (value := _parsed(line)) is not None]
    timed = {Address(**value["time"]) for value in values if "time" in value}
    return head, [value for value in values if "time" in value or Address(**value["call"]) in timed]


def _kept(
    values: Iterable[dict[str, Any]], attempts: set[tuple[str, int]]
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """The values of these attempts, numbered anew from 1 at each task, and how many there are."""
    numbers: dict[tuple[str, int], int] = {}
    counts: dict[str, int] = {}
    for task, attempt in sorted(attempts):
        numbers[task, attempt] = counts[task] = counts.get(task, 0) + 1
    kept = []
    for value in values:
        name = "call" if "call" in value else "time"
        if _attempt(value[name]) in numbers:
            kept.append({**value, name: {**value[name], "attempt": numbers[_attempt(value[name])]}})
    return kept, counts


def _attempt(address: Mapping[str, Any]) -> tuple[str, int]:
    return address["task"], address["attempt"]


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None
