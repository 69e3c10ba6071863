"""What an ELF file says of itself: enough to know whether it runs in an image that has nothing (public case 42).

Form: the ELF specification's header, program headers and dynamic section, all byte orders and both word sizes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MACHINES = {3: "i686", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv64"}
"""`e_machine` as target triples call it."""

LOAD, DYNAMIC, INTERPRETER = 1, 2, 3
END, NEEDED, STRING_TABLE = 0, 1, 5
DAMAGED = "it is a damaged ELF file"
PROGRAM_KINDS = (2, 3)
"""`e_type`: executables, and shared objects, which position-independent executables are too."""


class NotElf(ValueError):
    """The file is no program of this kind, or a damaged one. The message says which."""


@dataclass(frozen=True)
class Elf:
    """`bits` is 32 or 64; `needed` are the libraries that it wants loaded."""

    bits: int
    machine: str
    interpreter: str | None
    needed: tuple[str, ...]


@dataclass(frozen=True)
class _Segment:
    kind: int
    offset: int
    address: int
    size: int


def read(path: Path) -> Elf:
    """What the file says. Raises NotElf where it is no ELF program or ends too early."""
    data = path.read_bytes()
    if data[:4] != b"\x7fELF":
        raise NotElf("it is no ELF file")
    try:
        return _read(data)
    except NotElf:
        raise
    except (struct.error, LookupError, ValueError):
        raise NotElf(DAMAGED) from None


def unfit(path: Path, machine: str) -> str | None:
    """Why the program can't run in any image of that machine, such as x86_64; None where it can."""
    try:
        found = read(path)
    except NotElf as error:
        return str(error)
    if found.machine != machine:
        return f"it is for {found.machine}, not {machine}"
    if found.interpreter:
        return f"it is linked dynamically and wants {found.interpreter}"
    if found.needed:
        return f"it is linked dynamically and wants {', '.join(found.needed)}"
    return None


def _read(data: bytes) -> Elf:
    bits = {1: 32, 2: 64}[data[4]]
    order = {1: "<", 2: ">"}[data[5]]
    kind, machine = struct.unpack_from(f"{order}HH", data, 16)
    if kind not in PROGRAM_KINDS:
        raise NotElf("it is an ELF file, but no program")
    segments = list(_segments(data, bits, order))
    interpreter = next((segment for segment in segments if segment.kind == INTERPRETER), None)
    return Elf(
        bits=bits,
        machine=MACHINES.get(machine, f"machine {machine}"),
        interpreter=_text(data, interpreter.offset) if interpreter else None,
        needed=tuple(_needed(data, bits, order, segments)),
    )


def _segments(data: bytes, bits: int, order: str) -> Iterator[_Segment]:
    # e_phoff, then e_phentsize and e_phnum; p_flags is the second field in 64 bits and the last but one in 32.
    table = struct.unpack_from(f"{order}{'Q' if bits == 64 else 'I'}", data, 32 if bits == 64 else 28)[0]
    entry, count = struct.unpack_from(f"{order}HH", data, 54 if bits == 64 else 42)
    for index in range(count):
        place = table + index * entry
        if bits == 64:
            kind, _, offset, address, _, size = struct.unpack_from(f"{order}IIQQQQ", data, place)
        else:
            kind, offset, address, _, size = struct.unpack_from(f"{order}IIIII", data, place)
        yield _Segment(kind, offset, address, size)


def _needed(data: bytes, bits: int, order: str, segments: list[_Segment]) -> Iterator[str]:
    word = f"{order}{'qQ' if bits == 64 else 'iI'}"
    entries: list[tuple[int, int]] = []
    for segment in segments:
        if segment.kind == DYNAMIC:
            content = data[segment.offset : segment.offset + segment.size]
            if len(content) < segment.size:
                raise NotElf(DAMAGED)
            entries += struct.iter_unpack(word, content)
    # What follows the end mark is padding.
    tags = [tag for tag, _ in entries]
    entries = entries[: tags.index(END)] if END in tags else entries
    names = [value for tag, value in entries if tag == NEEDED]
    if not names:
        return
    strings = dict(entries).get(STRING_TABLE, -1)
    for loaded in segments:
        if loaded.kind == LOAD and loaded.address <= strings < loaded.address + loaded.size:
            yield from (_text(data, strings - loaded.address + loaded.offset + name) for name in names)
            return
    raise NotElf(DAMAGED)


def _text(data: bytes, place: int) -> str:
    return data[place : data.index(b"\0", place)].decode(errors="replace")
