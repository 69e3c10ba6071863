"""Compressed streams anywhere in some bytes: gzip, zlib, bzip2, xz, lzma, and the entries of ZIP by their own headers.

Programs put them behind headers of their own: PDF and PNG, git's packs, a ZIP that was cut off. Bounded by a `Room`.
"""

from __future__ import annotations

import bz2
import lzma
import re
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

MEMORY_BYTES = 256_000_000
"""What xz may take for its dictionary: its strongest preset wants 65 MB."""

CHUNK = 16_384

MOST_ATTEMPTS, MOST_TRIED_BYTES = 200_000, 200_000_000
"""At places of one file that only look like the beginning of a stream: two letters do, for zlib. Some are read far."""

LEAST_BYTES = 8
"""What comes out of a stream before it breaks, where it was none."""

ZIP = b"PK\x03\x04"
_DEFLATED = 8
_ENTRY = struct.Struct("<4s5H3I2H")
"""The header of a ZIP's entry: its signature, five numbers of two bytes (the third is the method), CRC, sizes, and how
long its name and what follows that are."""

_WINDOW = 15
"""As zlib counts it, in bits; 16 more mean gzip's header, and less than none no header at all."""

_GZIP, _BZIP2, _XZ = rb"\x1f\x8b\x08[\0-\x1f]", rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)", rb"\xfd7zXZ\0"
_ALONE = rb"\x5d\0\0[\s\S]{2}(?:\xff{8}|[\s\S]{5}\0{3})"

_MAKERS: dict[re.Pattern[bytes], Callable[[], Any]] = {
    re.compile(_GZIP): lambda: zlib.decompressobj(_WINDOW + 16),
    re.compile(_BZIP2): bz2.BZ2Decompressor,
    re.compile(_XZ): lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, MEMORY_BYTES),
    re.compile(_ALONE): lambda: lzma.LZMADecompressor(lzma.FORMAT_ALONE, MEMORY_BYTES),
}
"""By what they begin with, where that is enough to tell: of lzma's own form it is the size, unknown or below 1 TB."""

_ZLIB = re.compile(rb"x[\x01\x5e\x9c\xda]")
"""As zlib begins with its usual window: so does each object of a git repository."""

_ANYWHERE = re.compile(b"|".join((_GZIP, _BZIP2, _XZ, _ZLIB.pattern, ZIP)))

_BROKEN = (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError)


class Unreadable(Exception):
    """What can't be looked into: it is encrypted, damaged, too large or too deep. The text says which."""


class Room:
    """How many bytes may still come out of archives: of one file, and with `whole` of all files together."""

    def __init__(self, most_bytes: int, whole: Room | None = None, what: str = "in one archive") -> None:
        self._most_bytes, self._whole, self._what = most_bytes, whole, what
        self._taken = 0

    @property
    def left(self) -> int:
        """In bytes, at least none."""
        own = max(0, self._most_bytes - self._taken)
        return own if self._whole is None else min(own, self._whole.left)

    def take(self, content: bytes) -> bytes:
        """The content, which is booked. Raises Unreadable where it is more than there was room for."""
        self.book(len(content))
        return content

    def book(self, number_bytes: int) -> None:
        """Book so many. Raises Unreadable where it is more than there was room for."""
        self._taken += number_bytes
        if self._taken > self._most_bytes:
            raise Unreadable(f"more than {self._most_bytes // 1_000_000:,} MB {self._what}")
        if self._whole is not None:
            self._whole.book(number_bytes)


@dataclass(frozen=True)
class Stream:
    """What came out of one. `end` is where it ends among the bytes around it; `fault` says why it isn't whole."""

    content: bytes
    end: int
    fault: str = ""


def begins(data: bytes) -> bool:
    """Whether it begins like a compressed file."""
    return any(magic.match(data) for magic in _MAKERS) or _ZLIB.match(data) is not None


def first(data: bytes, room: Room) -> Stream:
    """The one at the beginning; of some that follow each other, as gzip and others write them, all together."""
    magic = next((magic for magic in _MAKERS if magic.match(data)), None)
    if magic is None:
        return read(data, 0, zlib.decompressobj(), room)
    contents, end, fault = [], 0, ""
    while not fault and magic.match(data, end):
        stream = read(data, end, _MAKERS[magic](), room)
        contents.append(stream.content)
        end, fault = stream.end, stream.fault
    return Stream(b"".join(contents), end, fault)


def anywhere(data: bytes, start: int, room: Room, *, entries: bool) -> Iterator[tuple[int, bytes]]:
    """(place, content) of those that begin behind `start`, also as far as broken ones go; ZIP's too with `entries`.

    Raises Unreadable where too many places look like one.
    """
    attempts, tried_bytes, end = 0, 0, start
    for found in _ANYWHERE.finditer(data, start):
        at = found.start()
        if at < end or (found[0] == ZIP and not entries):
            continue
        attempts += 1
        if attempts > MOST_ATTEMPTS or tried_bytes > MOST_TRIED_BYTES:
            raise Unreadable("too many places that look like something compressed")
        stream = _at(data, at, found[0], room)
        if stream and len(stream.content) >= LEAST_BYTES:
            yield at, stream.content
        if stream and not stream.fault:
            end = stream.end
        elif stream:
            tried_bytes += stream.end - at


def _at(data: bytes, at: int, found: bytes, room: Room) -> Stream | None:
    if found == ZIP:
        if len(data) < at + _ENTRY.size:
            return None
        _, _, _, method, *_, name, more = _ENTRY.unpack_from(data, at)
        begin = at + _ENTRY.size + name + more
        return read(data, begin, zlib.decompressobj(-_WINDOW), room) if method == _DEFLATED else None
    magic = next((magic for magic in _MAKERS if magic.match(found)), None)
    return read(data, at, _MAKERS[magic]() if magic else zlib.decompressobj(), room)


def read(data: bytes, at: int, decompressor: Any, room: Room) -> Stream:
    """One stream, from where it begins. Raises Unreadable where there is no room for what comes out."""
    contents, fed, rest = [], at, b""
    fault = ""
    try:
        while not decompressor.eof:
            if not rest and getattr(decompressor, "needs_input", True):
                rest = data[fed : fed + CHUNK]
                fed += len(rest)
                if not rest:
                    fault = "it is cut off"
                    break
            contents.append(room.take(decompressor.decompress(rest, room.left + 1)))
            rest = getattr(decompressor, "unconsumed_tail", b"")
    except _BROKEN as error:
        fault = type(error).__name__
    return Stream(b"".join(contents), fed - len(getattr(decompressor, "unused_data", b"")), fault)
