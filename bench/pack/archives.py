"""What is in archives and compressed files: agents leave them, and secrets may be inside. Bounded, and never unpacked.

`contents` gives what is in ZIP (also behind a program), tar, gzip, bzip2, xz, lzma and zlib, whatever these stand
behind, and in git's packs with their deltas. Of kinds that nothing here can open, such as 7z, it says so. What it can't
find are streams without a header of their own (raw deflate, brotli), and those with a wrong one.
"""

from __future__ import annotations

import io
import tarfile
import zipfile
import zlib
from collections.abc import Generator, Iterator

from bench.pack import gitpack, streams
from bench.pack.streams import Room, Unreadable

_END_OF_ZIP = b"PK\x05\x06"

CLOSED = {
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"Rar!\x1a\x07": "a RAR archive",
    b"\x28\xb5\x2f\xfd": "a Zstandard file",
    b"\x04\x22\x4d\x18": "an LZ4 file",
    b"\x1f\x9d\x90": "a file of `compress`",
    b"LZIP\x01": "an lzip file",
    b"\x89LZO\x00\r\n\x1a\n": "an lzop file",
}
"""What nothing here can open, by how it begins."""

_BROKEN = (OSError, EOFError, ValueError, RuntimeError, NotImplementedError, tarfile.TarError, zipfile.BadZipFile)
_BROKEN_ZIP = (*_BROKEN, zlib.error)


def contents(data: bytes, room: Room) -> Iterator[tuple[str, bytes]]:
    """(name, content) of what is in it, one level deep; nothing where it is no archive. Raises Unreadable."""
    if closed := next((what for magic, what in CLOSED.items() if data.startswith(magic)), None):
        raise Unreadable(closed)
    end, is_zip = 1, False
    if _is_tar(data):
        end = yield from _in_tar(data, room)
    elif gitpack.begins(data):
        yield from gitpack.contents(data, room)
        return
    elif is_zip := _is_zip(data):
        yield from _zipped(data, room)
    elif streams.begins(data):
        stream = streams.first(data, room)
        yield "content", stream.content
        if stream.fault and not data.startswith(b"x"):  # Of two letters nobody can tell whether they meant zlib.
            raise Unreadable(f"a compressed file that is damaged ({stream.fault})")
        end = 1 if stream.fault else stream.end
    for at, content in streams.anywhere(data, end, room, entries=not is_zip):
        yield f"content at {at}", content


def is_one(data: bytes) -> bool:
    """Whether it begins like an archive or something compressed."""
    begins = any(data.startswith(magic) for magic in CLOSED) or streams.begins(data) or gitpack.begins(data)
    return begins or _is_tar(data) or _is_zip(data)


def _is_tar(data: bytes) -> bool:
    return data[257:262] == b"ustar"


def _is_zip(data: bytes) -> bool:
    return data.startswith(streams.ZIP) or (
        streams.ZIP in data and _END_OF_ZIP in data and zipfile.is_zipfile(io.BytesIO(data))
    )


def _zipped(data: bytes, room: Room) -> Iterator[tuple[str, bytes]]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for entry in archive.infolist():
                if entry.flag_bits & 1:
                    raise Unreadable("an encrypted archive")
                with archive.open(entry) as file:
                    content = room.take(file.read(room.left + 1))
                yield entry.filename, content
    except _BROKEN_ZIP as error:
        raise Unreadable(f"an archive that is damaged ({type(error).__name__})") from None


def _in_tar(data: bytes, room: Room) -> Generator[tuple[str, bytes], None, int]:
    """Its files; returns where it ends."""
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for entry in archive:
                file = archive.extractfile(entry) if entry.isfile() else None
                if file is not None:
                    yield entry.name, room.take(file.read(room.left + 1))
            return archive.offset
    except _BROKEN as error:
        raise Unreadable(f"an archive that is damaged ({type(error).__name__})") from None
