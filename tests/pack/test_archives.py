"""What agents pack away is looked at, too; what can't be looked into isn't sent in unseen."""

from __future__ import annotations

import base64
import bz2
import gzip
import importlib
import io
import lzma
import subprocess
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.pack import archives
from bench.pack.archives import contents
from bench.pack.scan import DEEPEST, Finding, Scanner
from bench.pack.streams import Room, Unreadable

scanning = importlib.import_module("bench.pack.scan")
KEY = b"canary+key/5f0c1d7e9b==4a"


def zipped(data: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("folder/inner.txt", data)
    return packed.getvalue()


def tarred(data: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        entry = tarfile.TarInfo("inner.txt")
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    return packed.getvalue()


def scan(data: bytes) -> list[Finding]:
    return Scanner({"the value of KEY": KEY.decode()}, {}).scan(data, "out.bin")


def alone(data: bytes) -> bytes:
    return lzma.compress(data, format=lzma.FORMAT_ALONE)


def behind_a_program(data: bytes) -> bytes:
    return b"#!/bin/sh\nexit\n" + zipped(data)


COMPRESSED = [zipped, tarred, gzip.compress, bz2.compress, lzma.compress, alone, behind_a_program, zlib.compress]


@pytest.mark.parametrize("pack", COMPRESSED)
def test_a_secret_in_an_archive_is_found_with_its_place_there(pack: Callable[[bytes], bytes]) -> None:
    found = scan(pack(b"one\nkey: " + KEY))
    assert {finding.what for finding in found} == {"the value of KEY, in plain"}
    # One that stores what it can't make smaller shows it outside as well.
    (inside,) = (finding for finding in found if finding.place.startswith("out.bin/"))
    assert inside.place.endswith(":2")
    assert scan(pack(b"nothing of the kind")) == []


def test_archives_within_archives_are_looked_into_as_far_as_that_makes_sense() -> None:
    (finding,) = scan(gzip.compress(tarred(zipped(KEY))))
    assert finding.place == "out.bin/content/inner.txt/folder/inner.txt:1"
    deep = KEY
    for _ in range(DEEPEST + 2):
        deep = gzip.compress(deep)
    (finding,) = scan(deep)
    assert finding.what == "archives within archives, more than 6 deep, which can't be looked into"


def test_what_cannot_be_looked_into_is_a_finding_that_can_be_let_be() -> None:
    encrypted = bytearray(zipped(KEY))
    encrypted[6] |= 1  # the flag of the local entry
    encrypted[encrypted.find(b"PK\x01\x02") + 8] |= 1  # and of the directory's
    (finding,) = scan(bytes(encrypted))
    assert finding.what == "an encrypted archive, which can't be looked into"
    assert Scanner({}, {}, [finding.mark]).scan(bytes(encrypted), "out.bin") == []


@pytest.mark.parametrize("pack", [zipped, gzip.compress, bz2.compress, lzma.compress])
def test_a_damaged_archive_is_a_finding(pack: Callable[[bytes], bytes]) -> None:
    whole = pack(bytes(range(256)) * 40)
    (finding,) = scan(whole[: len(whole) // 2])
    assert "damaged" in finding.what


@pytest.mark.parametrize("pack", COMPRESSED)
def test_an_archive_that_would_fill_memory_is_not_read_to_its_end(pack: Callable[[bytes], bytes]) -> None:
    with pytest.raises(Unreadable, match="more than 1 MB in one archive"):
        list(contents(pack(b"\0" * 20_000_000), Room(1_000_000)))


def test_what_the_machines_own_tools_make_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(KEY)
    subprocess.run(["tar", "-C", tmp_path, "-czf", tmp_path / "a.tgz", "a.txt"], check=True)
    places = [finding.place for finding in scan((tmp_path / "a.tgz").read_bytes())]
    assert "out.bin/content/a.txt:1" in places


def test_a_text_that_begins_like_zlib_is_none() -> None:
    assert scan(b"x^2 + y^2 = z^2") == []
    (finding,) = scan(tarred(gzip.compress(KEY)) + zipped(b"x"))
    assert finding.place == "out.bin/inner.txt/content:1"


@pytest.mark.parametrize("pack", [zipped, gzip.compress, base64.b64encode, base64.encodebytes])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.encodebytes])
def test_a_secret_is_found_in_what_was_packed_before_it_became_base64(
    pack: Callable[[bytes], bytes], encode: Callable[[bytes], bytes]
) -> None:
    found = scan(b"line\nout: " + encode(pack(b"some words before it, and the key: " + KEY + b" and more of them")))
    assert "out.bin:2, Base64" in {one.place for one in found}


# Behind something else, and what is made to harm


def cut_off(data: bytes) -> bytes:
    """Without the directory at its end, which ZIP is read by."""
    whole = zipped(data)
    return whole[: whole.index(b"PK\x01\x02")]


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress, bz2.compress, lzma.compress, cut_off])
@pytest.mark.parametrize("before", [b"a line\n", b"%PDF-1.4\n1 0 obj <</Filter/FlateDecode>>\nstream\n", bytes(5000)])
def test_a_secret_in_a_stream_behind_something_else_is_found(pack: Callable[[bytes], bytes], before: bytes) -> None:
    text = b"".join(b"BT (line %d of the text) Tj ET\n" % number for number in range(50))
    (finding,) = scan(before + pack(text + KEY) + b"\nendstream\n")
    assert finding.place == f"out.bin/content at {len(before)}:51"
    assert scan(before + pack(text)) == []


def test_streams_that_follow_each_other_are_read_together_and_apart() -> None:
    assert scan(gzip.compress(b"the key: " + KEY[:13]) + gzip.compress(KEY[13:] + b" it was"))
    assert scan(gzip.compress(b"nothing") + b"more" + gzip.compress(b"the key: " + KEY))
    assert scan(zlib.compress(b"nothing") + zlib.compress(b"the key: " + KEY))


@pytest.mark.parametrize("magic", [*archives.CLOSED])
def test_a_kind_that_nothing_here_can_open_is_a_finding_that_can_be_let_be(magic: bytes) -> None:
    (finding,) = scan(magic + bytes(100))
    assert finding.what == f"{archives.CLOSED[magic]}, which can't be looked into"
    assert Scanner({}, {}, [finding.mark]).scan(magic + bytes(100), "out.bin") == []


def test_an_xz_file_that_wants_gigabytes_is_not_given_them() -> None:
    data = lzma.compress(b"x" * 100, filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 20}])
    # The size of the dictionary is one byte of the header, and its checksum follows at the header's end.
    header = bytearray(data[12 : 12 + (data[12] + 1) * 4])
    at = header.index(0x21) + 2
    header[at] = 40  # 4 GB
    header[-4:] = zlib.crc32(bytes(header[:-4])).to_bytes(4, "little")
    (finding,) = scan(data[:12] + bytes(header) + data[12 + len(header) :])
    assert finding.what == "a compressed file that is damaged (LZMAError), which can't be looked into"


def test_what_is_in_all_archives_of_a_file_has_one_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """However they are put into it: each of these is small enough."""
    monkeypatch.setattr(scanning, "MOST_BYTES", 1_000_000)
    bomb = gzip.compress(bytes(300_000))
    for data in (tarred(bomb) * 5, base64.b64encode(bomb) + b"\n" + b"\n".join([base64.b64encode(bomb)] * 5)):
        assert {one.what for one in scan(data)} == {"more than 1 MB in one archive, which can't be looked into"}


def test_what_is_in_the_archives_of_all_files_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanning, "MOST_BYTES_OF_ALL", 1_000_000)
    scanner = Scanner({}, {})
    found = [scanner.scan(gzip.compress(bytes(400_000)), "out.bin") for _ in range(3)]
    what = "more than 1 MB in the archives of all files together, which can't be looked into"
    assert [[one.what for one in each] for each in found] == [[], [], [what]]


def test_empty_entries_without_end_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanning, "MOST_BYTES", 1_000_000)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for number in range(1100):
            archive.writestr(f"{number}", b"")
    assert [one.what for one in scan(packed.getvalue())] == [
        "more than 1 MB in one archive, which can't be looked into"
    ]


def test_base64_of_base64_is_undone_as_far_as_that_makes_sense() -> None:
    deep = KEY * 3
    for _ in range(DEEPEST):
        deep = base64.encodebytes(deep)
    assert any("the value of KEY" in one.what for one in scan(deep))
    for _ in range(3):
        deep = base64.encodebytes(deep)
    assert any("more than 6 deep" in one.what for one in scan(deep))


@pytest.mark.parametrize("data", [b"x\x9c" * 300_000, b"\x1f\x8b\x08" * 300_000, b"PK\x03\x04" * 300_000])
def test_places_that_look_like_archives_are_not_tried_without_end(data: bytes) -> None:
    (finding,) = scan(b"- " + data)
    assert finding.what == "too many places that look like something compressed, which can't be looked into"
