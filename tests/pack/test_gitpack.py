"""What an agent commits is looked at in git's own form, too: packs and bundles that the real git has made."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.pack import gitpack
from bench.pack.scan import Finding, Scanner
from bench.pack.streams import Room, Unreadable

KEY = "canary+key/5f0c1d7e9b==4a"
SHAPED = "sk-" + "ant-api03-" + "a1B2" * 6


def git(place: Path, *words: str) -> bytes:
    nobody = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environ = {**os.environ, **nobody, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    return subprocess.run(["git", "-C", place, *words], check=True, capture_output=True, env=environ).stdout


def committed(place: Path, texts: Sequence[str]) -> Path:
    """A repository with a commit for each state of its one file, all in one pack."""
    place.mkdir()
    git(place, "init", "-q")
    for text in texts:
        (place / "notes.txt").write_text(text)
        git(place, "add", ".")
        git(place, "commit", "-qm", "more")
    git(place, "gc", "-q", "--aggressive")
    (pack,) = (place / ".git" / "objects" / "pack").glob("*.pack")
    return pack


def notes(lines: int) -> list[str]:
    draw = random.Random(7)
    return ["".join(draw.choices("abcdefgh ", k=60)) + "\n" for _ in range(lines)]


def scan(data: bytes) -> list[Finding]:
    return Scanner({"the value of KEY": KEY}, {}).scan(data, "a.pack")


@pytest.mark.parametrize("secret", [KEY, SHAPED])
def test_a_secret_in_a_commit_of_before_is_found_in_the_pack(tmp_path: Path, secret: str) -> None:
    text = notes(200)
    clean = "".join(text)
    texts = [clean, "".join([*text[:90], f"key = {secret}\n", *text[90:]]), clean + "the end\n"]
    assert scan(committed(tmp_path / "one", texts).read_bytes())
    assert not scan(committed(tmp_path / "other", [clean, clean + "the end\n"]).read_bytes())


def test_a_secret_of_which_a_delta_adds_a_part_is_found(tmp_path: Path) -> None:
    """Half of it is copied from the base: it is nowhere in the pack as a whole."""
    text = notes(400)
    at = len(SHAPED) - 8
    texts = ["".join([*text[:200], f"key = {SHAPED[:at]}", "\n", *text[200:]])]
    texts.append(texts[0].replace(SHAPED[:at], SHAPED))
    pack = committed(tmp_path / "one", texts).read_bytes()
    whole = sorted(content for _, content in gitpack.contents(pack, Room(10**7)))
    assert {text.encode() for text in texts} <= {*whole}
    assert len({one.mark for one in scan(pack)}) == 2


@pytest.mark.parametrize("deltas_by_name", [True, False])
def test_every_object_is_what_git_says_it_is(tmp_path: Path, deltas_by_name: bool) -> None:
    text = notes(300)
    texts = ["".join([*text[:number], f"{number}\n", *text[number:]]) for number in range(0, 300, 15)]
    pack = committed(tmp_path / "one", texts)
    listed = git(tmp_path / "one", "rev-list", "--objects", "--all", "--no-object-names")
    how = [] if deltas_by_name else ["--delta-base-offset"]
    words = ["git", "-C", str(tmp_path / "one"), "pack-objects", "--stdout", "--window=50", "-q", *how]
    data = subprocess.run(words, input=listed, check=True, capture_output=True).stdout
    assert git(tmp_path / "one", "verify-pack", "-v", str(pack)).count(b"chain length") > 0
    names = listed.decode().split()
    ours = sorted(content for _, content in gitpack.contents(data, Room(10**8)))
    theirs = sorted(git(tmp_path / "one", "cat-file", _type(tmp_path / "one", name), name) for name in names)
    assert ours == theirs


def _type(place: Path, name: str) -> str:
    return git(place, "cat-file", "-t", name).decode().strip()


def test_a_bundle_is_a_pack_too(tmp_path: Path) -> None:
    committed(tmp_path / "one", [f"key = {KEY}\n"])
    git(tmp_path / "one", "bundle", "create", "-q", str(tmp_path / "a.bundle"), "--all")
    assert [one.what for one in scan((tmp_path / "a.bundle").read_bytes())] == ["the value of KEY, in plain"]


def test_a_secret_in_a_repository_that_was_not_packed_is_found(tmp_path: Path) -> None:
    place = tmp_path / "one"
    place.mkdir()
    git(place, "init", "-q")
    (place / "notes.txt").write_text(f"key = {KEY}\n")
    git(place, "add", ".")
    loose = [path for path in (place / ".git" / "objects").rglob("*") if path.is_file()]
    assert [one.what for path in loose for one in scan(path.read_bytes())] == ["the value of KEY, in plain"]


def test_a_damaged_pack_is_a_finding_that_can_be_let_be(tmp_path: Path) -> None:
    pack = committed(tmp_path / "one", ["".join(notes(50))]).read_bytes()
    fewer = pack[:8] + (1).to_bytes(4) + pack[12:]
    for harmed in (pack[:-40], fewer, pack + b"more", pack[:20] + bytes(100) + pack[120:], pack[:12], b"PACK\0\0\0\2"):
        found = scan(harmed)
        assert all("a pack of git's that is damaged" in one.what for one in found)
        assert len(found) == (len(harmed) > 8)
        assert not Scanner({}, {}, [one.mark for one in found]).scan(harmed, "a.pack")


def test_a_pack_that_would_fill_memory_is_not_read_to_its_end(tmp_path: Path) -> None:
    pack = committed(tmp_path / "one", ["x" * 5_000_000]).read_bytes()
    assert len(pack) < 50_000
    with pytest.raises(Unreadable, match="more than 1 MB in one archive"):
        list(gitpack.contents(pack, Room(1_000_000)))
