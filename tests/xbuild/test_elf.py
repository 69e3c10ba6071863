"""A program that would not run in any image is told from one that would, with what it wants."""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from bench.xbuild import elf
from bench.xbuild.elf import NotElf


def program(
    *,
    bits: int = 64,
    order: str = "<",
    kind: int = 3,
    machine: int = 62,
    interpreter: str = "",
    needed: tuple[str, ...] = (),
) -> bytes:
    """A minimal ELF file: a header, segments for what is given, and one that loads all of it at 0x1000."""
    word = "Q" if bits == 64 else "I"
    header_bytes, entry_bytes = (64, 56) if bits == 64 else (52, 32)
    strings = b"\0" + b"".join(name.encode() + b"\0" for name in needed)
    start = header_bytes + 3 * entry_bytes
    texts = interpreter.encode() + b"\0"
    tables = start + len(texts)
    dynamic, place = b"", 1
    for name in needed:
        dynamic += struct.pack(f"{order}2{word}", 1, place)
        place += len(name) + 1
    dynamic += struct.pack(f"{order}4{word}", 5, 0x1000 + tables, 0, 0)
    # What comes after the end mark must not be read.
    dynamic += struct.pack(f"{order}2{word}", 1, 1)
    content = texts + strings + dynamic
    segments = [(1, 0, 0x1000, start + len(content)), (2, tables + len(strings), 0, len(dynamic))]
    if interpreter:
        segments.append((3, start, 0, len(texts)))
    table = b"".join(
        struct.pack(f"{order}IIQQQQQQ", kind, 0, offset, address, 0, size, size, 0)
        if bits == 64
        else struct.pack(f"{order}8I", kind, offset, address, 0, size, size, 0, 0)
        for kind, offset, address, size in segments
    ).ljust(3 * entry_bytes, b"\0")
    identity = b"\x7fELF" + bytes([bits // 32, 1 if order == "<" else 2, 1]) + bytes(9)
    header = identity + struct.pack(f"{order}HHI3{word}I", kind, machine, 1, 0, header_bytes, 0, 0)
    header += struct.pack(f"{order}6H", header_bytes, entry_bytes, len(segments), 0, 0, 0)
    return header + table + content


def written(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "program"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("order", ["<", ">"])
def test_interpreter_and_libraries_are_read_in_every_form(tmp_path: Path, bits: int, order: str) -> None:
    data = program(bits=bits, order=order, interpreter="/lib/ld-musl.so.1", needed=("libc.so.6", "libm.so.6"))
    found = elf.read(written(tmp_path, data))
    assert found == elf.Elf(bits, "x86_64", "/lib/ld-musl.so.1", ("libc.so.6", "libm.so.6"))


def test_a_static_program_of_the_machine_is_fit(tmp_path: Path) -> None:
    assert elf.unfit(written(tmp_path, program(machine=183)), "aarch64") is None
    assert elf.unfit(written(tmp_path, program(kind=2)), "x86_64") is None


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (program(machine=183), "it is for aarch64, not x86_64"),
        (program(machine=9), "it is for machine 9, not x86_64"),
        (program(interpreter="/lib64/ld.so"), "it is linked dynamically and wants /lib64/ld.so"),
        (program(needed=("libc.so",)), "it is linked dynamically and wants libc.so"),
        (program(kind=1), "it is an ELF file, but no program"),
        (b"#!/bin/sh\n", "it is no ELF file"),
        (b"", "it is no ELF file"),
        (program(needed=("libc.so",))[:70], "it is a damaged ELF file"),
        (b"\x7fELF", "it is a damaged ELF file"),
        (b"\x7fELF\x07\x01" + bytes(60), "it is a damaged ELF file"),
    ],
)
def test_what_is_unfit_says_why(tmp_path: Path, data: bytes, reason: str) -> None:
    assert elf.unfit(written(tmp_path, data), "x86_64") == reason


def test_no_damage_makes_the_reader_fail(tmp_path: Path) -> None:
    whole = program(interpreter="/lib/ld.so", needed=("libc.so",))
    for length in range(len(whole)):
        with pytest.raises(NotElf):
            elf.read(written(tmp_path, whole[:length]))


@pytest.mark.skipif(sys.platform != "linux", reason="the programs of this system are no ELF files")
@pytest.mark.skipif(shutil.which("readelf") is None, reason="readelf is the yardstick, and not here")
def test_a_program_of_this_system_is_read_as_readelf_reads_it() -> None:
    shell = Path(shutil.which("sh") or "").resolve()
    shown = subprocess.run(
        ["readelf", "--wide", "--program-headers", "--dynamic", shell], capture_output=True, text=True, check=True
    ).stdout
    found = elf.read(shell)
    assert found.bits == 64
    assert f"[Requesting program interpreter: {found.interpreter}]" in shown
    assert found.needed
    assert shown.count("(NEEDED)") == len(found.needed)
    assert all(f"Shared library: [{name}]" in shown for name in found.needed)
