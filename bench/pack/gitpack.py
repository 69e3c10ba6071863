"""The objects of git's packs (`.git/objects/pack/*.pack`, bundles): zlib streams in a row, some of them deltas.

The form is that of gitformat-pack(5), versions 2 and 3. A delta whose base is elsewhere gives what it adds.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from bench.pack import streams
from bench.pack.streams import Room, Unreadable

_BUNDLE = re.compile(rb"# v[23] git bundle\n(?:[^\n]+\n)*\n(?=PACK)")
_HEADER = 12
_DIGEST = 20
"""Of SHA-1, by which deltas name a base, and which ends a pack; one of SHA-256 is told as damaged."""

_KINDS = {1: b"commit", 2: b"tree", 3: b"blob", 4: b"tag"}
_BY_OFFSET, _BY_NAME = 6, 7
_LONGEST_NUMBER = 10


class _Object(NamedTuple):
    """One that is whole. `kind` is empty where nobody knows it: its base is elsewhere."""

    kind: bytes
    content: bytes


def begins(data: bytes) -> bool:
    """Whether it is a pack, or a bundle of one."""
    return _start(data) is not None


def contents(data: bytes, room: Room) -> Iterator[tuple[str, bytes]]:
    """(`object at PLACE`, content) of each object. Raises Unreadable."""
    try:
        for at, content in _objects(data, _start(data) or 0, room):
            yield f"object at {at}", content
    except (ValueError, IndexError) as error:
        raise Unreadable(f"a pack of git's that is damaged ({error})") from None


def _objects(data: bytes, start: int, room: Room) -> Iterator[tuple[int, bytes]]:
    """(place, content) of each object. Raises ValueError, IndexError and Unreadable."""
    by_offset: dict[int, _Object] = {}
    by_name: dict[bytes, _Object] = {}
    at = start + _HEADER
    for _ in range(int.from_bytes(data[start + 8 : at])):
        begin = at
        kind, at = _kind(data, at)
        base: _Object | None = None
        if kind == _BY_OFFSET:
            back, at = _offset(data, at)
            base = by_offset.get(begin - back)
        elif kind == _BY_NAME:
            base, at = by_name.get(data[at : at + _DIGEST]), at + _DIGEST
        elif kind not in _KINDS:
            raise ValueError(f"an object of kind {kind}")
        stream = streams.read(data, at, zlib.decompressobj(), room)
        if stream.fault:
            raise ValueError(stream.fault)
        at, one = stream.end, _Object(_KINDS.get(kind, b""), stream.content)
        if kind not in _KINDS:
            one = _Object(base.kind if base else b"", _applied(stream.content, base.content if base else None, room))
            room.book(len(one.content))
        if one.kind:
            by_offset[begin] = one
            whole = b"%s %d\0" % (one.kind, len(one.content)) + one.content
            by_name[hashlib.sha1(whole, usedforsecurity=False).digest()] = one
        yield begin, one.content
    if len(data) - at != _DIGEST:
        raise ValueError("it holds something else than it says")


def _start(data: bytes) -> int | None:
    bundle = _BUNDLE.match(data)
    start = bundle.end() if bundle else 0
    is_one = data.startswith((b"PACK\0\0\0\2", b"PACK\0\0\0\3"), start) and len(data) >= start + _HEADER
    return start if is_one else None


def _kind(data: bytes, at: int) -> tuple[int, int]:
    """The kind of the object that begins there, and where its own header ends."""
    first = data[at]
    while data[at] & 0x80:
        at += 1
    return (first >> 4) & 7, at + 1


def _offset(data: bytes, at: int) -> tuple[int, int]:
    """How far before a delta its base begins."""
    value = data[at] & 0x7F
    for _ in range(_LONGEST_NUMBER):
        if not data[at] & 0x80:
            return value, at + 1
        at += 1
        value = ((value + 1) << 7) | (data[at] & 0x7F)
    raise ValueError("a number without end")


def _number(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(_LONGEST_NUMBER):
        value |= (data[at] & 0x7F) << (7 * place)
        at += 1
        if not data[at - 1] & 0x80:
            return value, at
    raise ValueError("a number without end")


def _applied(delta: bytes, base: bytes | None, room: Room) -> bytes:
    """What a delta makes of its base; without one, what it adds itself. Raises ValueError, IndexError, Unreadable."""
    _, at = _number(delta, 0)
    _, at = _number(delta, at)
    made = bytearray()
    while at < len(delta):
        order = delta[at]
        at += 1
        if order & 0x80:
            numbers = []
            for first, width in ((0, 4), (4, 3)):
                value = 0
                for place in range(width):
                    if order & (1 << (first + place)):
                        value |= delta[at] << (8 * place)
                        at += 1
                numbers.append(value)
            offset, size = numbers[0], numbers[1] or 0x10000
            made += b"\n" if base is None else base[offset : offset + size]
        elif order:
            made += delta[at : at + order]
            at += order
        else:
            raise ValueError("an order without a meaning")
        if len(made) > room.left:
            room.book(len(made))
    return bytes(made)
