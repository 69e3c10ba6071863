"""A cassette's file after its time: put in order when its job has ended, taken up again when its job goes on. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from bench.gateway import cassette
from bench.gateway.cassette import Address


def tidied(data: bytes) -> bytes:
    """A finished cassette's lines in an order that doesn't hang on chance: calls by address, then times as they were.

    A call's request is told against the one before of the same agent, so an agent's calls keep their order.
    """
    head, *lines = data.splitlines(keepends=True)
    parsed = [(orjson.loads(line), line) for line in lines]

    def place(entry: tuple[dict[str, Any], bytes]) -> tuple[Any, ...]:
        value = entry[0]
        if "call" in value:
            return (0, *value["call"].values())
        time = value["time"]
        return (1, time["task"], time["attempt"], value["asked"])

    return head + b"".join(line for _, line in sorted(parsed, key=place))


def reopened(data: bytes, is_kept: Callable[[str], bool]) -> tuple[bytes, dict[str, int]]:
    """(an unfinished or finished cassette's lines to go on from, how many attempts they have at each task).

    Left out are what a kill tore, and the attempts of trials that are not kept any more; the others move up.
    """
    lines = [_parsed(line) for line in data.splitlines()]
    head, values = data.splitlines(keepends=True)[0], [value for value in lines[1:] if value is not None]
    kept = {_attempt(v["time"]) for v in values if "time" in v and is_kept(v.get("trial", ""))}
    timed = {Address(**v["time"]) for v in values if "time" in v}
    numbers: dict[tuple[str, int], int] = {}
    counts: dict[str, int] = {}
    for task, attempt in sorted(kept):
        counts[task] = numbers[task, attempt] = counts.get(task, 0) + 1
    out = [head]
    for value in values:
        name = "call" if "call" in value else "time"
        address = Address(**value[name])
        if _attempt(value[name]) in kept and address in timed:
            value[name]["attempt"] = numbers[_attempt(value[name])]
            out.append(cassette.line(value))
    return b"".join(out), counts


def _attempt(address: Mapping[str, Any]) -> tuple[str, int]:
    return address["task"], address["attempt"]


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None
