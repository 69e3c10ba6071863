"""`inv pack --verify`: whose signature it is, and whatever was changed since."""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest

from bench import pack
from bench.errors import BuzzbenchError, InvalidInput
from bench.pack import bundle, signing
from tests.pack import jobs
from tests.pack.kit import packed


def test_what_is_no_pack_is_refused_without_a_word_of_python(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / bundle.MANIFEST)
    (tmp_path / bundle.SIGNATURE).write_text("[" * 100_000)
    with pytest.raises(InvalidInput, match=r"buzzbench-pack.json: is a pipe or a device, no file of a pack"):
        bundle.verify(tmp_path)
    (tmp_path / bundle.MANIFEST).unlink()
    with pytest.raises(InvalidInput, match=r": is no pack: there is no buzzbench-pack.json$"):
        bundle.verify(tmp_path)
    (tmp_path / bundle.MANIFEST).write_text("{}")
    with pytest.raises(BuzzbenchError, match=r": its list or its signature can't be read: it is damaged$"):
        bundle.verify(tmp_path)


def test_the_key_is_made_once_private_and_damage_is_named(tmp_path: Path) -> None:
    key = signing.ensure(tmp_path / "state")
    path = tmp_path / "state" / signing.FILE_NAME
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert signing.ensure(tmp_path / "state") == key
    path.write_text("cut of")
    with pytest.raises(InvalidInput, match=r"signing.key: damaged: not 64 hex digits; restore it from a backup"):
        signing.ensure(tmp_path / "state")


def test_a_pack_is_checked_wherever_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs.make(tmp_path)
    made = packed(tmp_path)
    made.directory.rename(tmp_path / "moved")
    pack.verify(jobs.settings(tmp_path), tmp_path / "moved", made.public_key.upper(), as_json=False)
    whose = f"signed by {made.public_key}, this installation's key"
    assert capsys.readouterr().out.endswith(f"{whose}, and the one that was asked for\n")
    pack.verify(jobs.settings(tmp_path), tmp_path / "moved", "", as_json=False)
    assert capsys.readouterr().out.endswith(f"{whose}\n")
    pack.verify(jobs.settings(tmp_path / "another"), tmp_path / "moved", made.public_key, as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert (told["public_key"], told["ours"], told["asked_for"]) == (made.public_key, False, True)
    assert not (tmp_path / "another").exists()


def test_without_a_key_to_ask_for_it_is_said_that_anybody_may_have_signed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs.make(tmp_path)
    made = packed(tmp_path)
    pack.verify(jobs.settings(tmp_path / "another"), made.directory, "", as_json=False)
    first, second = capsys.readouterr().out.splitlines()
    assert first.endswith(f"signed by {made.public_key}, a key that is not this installation's")
    assert second == (
        "whose key that is nobody has said: whoever changes a pack can sign it anew with a key of their own; "
        f"`inv pack --verify {made.directory} --key PUBLIC_KEY` accepts only the key that its maker told you"
    )


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda out: (out / "lb-team/alpha__1/result.json").write_text("{}"), "alpha__1/result.json: is not what was"),
        (lambda out: (out / "lb-team/alpha__1/lock.json").unlink(), "alpha__1/lock.json: is missing"),
        (lambda out: shutil.rmtree(out / "lb-team/alpha__1/agent"), r"^\S*alpha__1/agent/trajectory.json: is missing$"),
        (lambda out: (out / "lb-team/alpha__1/agent/trajectory.json").unlink(), r"^\S*trajectory.json: is missing$"),
        (lambda out: (out / "lb-team/more.txt").write_text("x"), "lb-team/more.txt: is not on the list"),
        (lambda out: (out / "lb-team/link").symlink_to("/etc"), "lb-team/link: is not on the list"),
        (lambda out: (out / "lb-team/a\nb").write_text("x"), r"out/lb-team/a\\nb: is not on the list$"),
        (lambda out: (out / "lb-team/empty").mkdir(), "lb-team/empty/: is not on the list"),
        (lambda out: os.mkfifo(out / "lb-team/pipe"), "lb-team/pipe: is not on the list"),
        (lambda out: _linked(out / "lb-team/config.json"), "lb-team/config.json: is a link, a pipe or a device"),
        (lambda out: _linked(out / "lb-team/alpha__1"), "lb-team/alpha__1: is not on the list"),
        (lambda out: _linked(out / bundle.MANIFEST), "buzzbench-pack.json: is a link, and no file of a pack is one"),
        (lambda out: _piped(out / "lb-team/config.json"), "lb-team/config.json: is a link, a pipe or a device"),
        (
            lambda out: (out / "metadata.yaml").rename(out / "m.yaml"),
            "m.yaml: is not on the list\n.*metadata.yaml: is mi",
        ),
        (
            lambda out: [(out / f"{number}").touch() for number in range(30)],
            "/26: is not on the list\nand so are 10 more$",
        ),
        (lambda out: _edit(out / bundle.MANIFEST, '"passed": 5', '"passed": 6'), "is not what .* has signed"),
        (lambda out: _edit(out / bundle.SIGNATURE, "signature", "signatur"), "can't be read"),
        (
            lambda out: (out / bundle.SIGNATURE).unlink(),
            "out: is not signed by anybody: there is no buzzbench-pack.sig",
        ),
    ],
)
def test_whatever_was_changed_in_a_pack_is_seen(tmp_path: Path, harm: Any, said: str) -> None:
    jobs.make(tmp_path)
    out = packed(tmp_path).directory
    harm(out)
    with pytest.raises(BuzzbenchError, match=said):
        bundle.verify(out)


def test_a_pack_that_somebody_else_has_signed_anew_is_not_the_expected_one(tmp_path: Path) -> None:
    jobs.make(tmp_path)
    made = packed(tmp_path)
    (tmp_path / "state" / signing.FILE_NAME).unlink()
    packed(tmp_path, out=tmp_path / "forged")
    with pytest.raises(BuzzbenchError, match=f"it is signed by .*, not by {made.public_key}"):
        pack.verify(jobs.settings(tmp_path), tmp_path / "forged", made.public_key, as_json=False)


def test_modes_are_no_part_of_a_pack(tmp_path: Path) -> None:
    """They change as it is sent about, and say nothing of what was measured."""
    jobs.make(tmp_path)
    out = packed(tmp_path).directory
    (out / "metadata.yaml").chmod(0o777)
    bundle.verify(out)


def test_a_pack_in_which_a_file_became_a_pipe_is_replaced_all_the_same(tmp_path: Path) -> None:
    jobs.make(tmp_path)
    _piped(packed(tmp_path).directory / "metadata.yaml")
    assert packed(tmp_path).changed == ("metadata.yaml",)
    _piped(tmp_path / "out" / bundle.MANIFEST)
    with pytest.raises(InvalidInput, match="is there already, and no pack"):
        packed(tmp_path)


def _linked(path: Path) -> None:
    """What it was is elsewhere now, and a link leads there."""
    elsewhere = path.parents[2] / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def _piped(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
