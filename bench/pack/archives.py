"""What is in archives and compressed files: agents leave them, and secrets may be inside. Bounded, and never unpacked.

`opened` gives the contents of ZIP (also behind a program), tar, gzip, bzip2, xz, lzma and zlib, within each other too.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any

MOST_BYTES = 200_000_000
"""Of all that is in one file: what is more is no log of a trial, or is made to fill memory."""

DEEPEST = 3

_MAGIC: Mapping[bytes, Callable[..., Any]] = {
    b"\x1f\x8b\x08": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
    b"\x5d\x00\x00": lzma.open,
}
_ZIP, _END_OF_ZIP = b"PK\x03\x04", b"PK\x05\x06"
_ZLIB = tuple(bytes((0x78, level)) for level in (0x01, 0x5E, 0x9C, 0xDA))
"""As zlib begins with its usual window: so does each object of a git repository."""

_BROKEN = (OSError, EOFError, ValueError, RuntimeError, NotImplementedError, tarfile.TarError, zipfile.BadZipFile)
_BROKEN_STREAM = (*_BROKEN, zlib.error, lzma.LZMAError)


class Unreadable(Exception):
    """An archive that can't be looked into: it is encrypted, damaged, too large or too deep. The text says which."""


def opened(data: bytes) -> Iterator[tuple[str, bytes]]:
    """(name, content) of what is in it; nothing where it is no archive. Raises Unreadable."""
    yield from _opened(data, [MOST_BYTES], DEEPEST)


def is_one(data: bytes) -> bool:
    """Whether it looks like an archive or something compressed."""
    return bool(_kind(data))


def _opened(data: bytes, left: list[int], depth: int) -> Iterator[tuple[str, bytes]]:
    for name, content in _members(data, left):
        yield name, content
        for inner, more in _opened(content, left, depth - 1) if depth else _too_deep(content):
            yield f"{name}/{inner}", more


def _too_deep(data: bytes) -> Iterator[tuple[str, bytes]]:
    if _kind(data):
        raise Unreadable(f"archives within archives, more than {DEEPEST} deep")
    yield from ()


def _kind(data: bytes) -> str:
    if any(data.startswith(magic) for magic in _MAGIC):
        return "compressed"
    if data.startswith(_ZIP):
        return "zip"
    if data[257:262] == b"ustar":
        return "tar"
    if data.startswith(_ZLIB):
        return "zlib"
    return "zip" if _ZIP in data and _END_OF_ZIP in data and zipfile.is_zipfile(io.BytesIO(data)) else ""


def _members(data: bytes, left: list[int]) -> Iterator[tuple[str, bytes]]:
    match _kind(data):
        case "compressed":
            opener = next(opener for magic, opener in _MAGIC.items() if data.startswith(magic))
            try:
                with opener(io.BytesIO(data)) as file:
                    yield "content", _read(file, left)
            except _BROKEN_STREAM as error:
                raise Unreadable(f"a compressed file that is damaged ({type(error).__name__})") from None
        case "zlib":
            yield from _inflated(data, left)
        case "zip":
            yield from _zipped(data, left)
        case "tar":
            yield from _in_tar(data, left)


def _inflated(data: bytes, left: list[int]) -> Iterator[tuple[str, bytes]]:
    """What zlib made of something, as far as it goes; nothing where two letters only happened to look like it."""
    try:
        content = zlib.decompressobj().decompress(data, left[0] + 1)
    except zlib.error:
        return
    yield "content", _read(io.BytesIO(content), left)


def _zipped(data: bytes, left: list[int]) -> Iterator[tuple[str, bytes]]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for entry in archive.infolist():
                if entry.flag_bits & 1:
                    raise Unreadable("an encrypted archive")
                with archive.open(entry) as file:
                    content = _read(file, left)
                yield entry.filename, content
    except _BROKEN_STREAM as error:
        raise Unreadable(f"an archive that is damaged ({type(error).__name__})") from None


def _in_tar(data: bytes, left: list[int]) -> Iterator[tuple[str, bytes]]:
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for entry in archive:
                file = archive.extractfile(entry) if entry.isfile() else None
                if file is not None:
                    yield entry.name, _read(file, left)
    except _BROKEN as error:
        raise Unreadable(f"an archive that is damaged ({type(error).__name__})") from None


def _read(file: IO[bytes], left: list[int]) -> bytes:
    """All of it, as far as there is room left. Raises Unreadable."""
    content = file.read(left[0] + 1)
    left[0] -= len(content)
    if left[0] < 0:
        raise Unreadable(f"more than {MOST_BYTES // 1_000_000} MB in one archive")
    return content
