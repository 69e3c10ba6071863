"""Only programs that are what their stamp says are given out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.xbuild import artifacts
from bench.xbuild.artifacts import NAMES, Program, Stamp

TRIPLE = "x86_64-unknown-linux-musl"


def built(state_dir: Path, triple: str = TRIPLE, built_at: str = "2026-11-30T10:00:00+00:00") -> artifacts.Artifacts:
    place = artifacts.directory(state_dir, triple)
    place.mkdir(parents=True)
    for name in NAMES:
        (place / name).write_text(f"{name} for {triple}")
    programs = {name: Program.of(place / name) for name in NAMES}
    stamp = Stamp("key", "a" * 40, None, "rust:1.98-alpine", "sha256:0", triple, built_at, programs)
    return artifacts.write(place, stamp)


def test_what_was_stamped_is_found_again(tmp_path: Path) -> None:
    made = built(tmp_path)
    assert artifacts.find(tmp_path, TRIPLE) == made
    assert made.path("relay-forwarder").read_text() == f"relay-forwarder for {TRIPLE}"


def test_records_get_all_of_the_stamp_and_nothing_of_the_machine(tmp_path: Path) -> None:
    recorded = json.dumps(built(tmp_path).provenance())
    assert str(tmp_path) not in recorded
    assert json.loads(recorded)["programs"]["buzz-acp"]["sha256"] == Program.of(built_path(tmp_path)).sha256


def built_path(state_dir: Path) -> Path:
    return artifacts.directory(state_dir, TRIPLE) / "buzz-acp"


def test_a_program_that_was_changed_or_removed_is_not_given_out(tmp_path: Path) -> None:
    built(tmp_path)
    text = built_path(tmp_path).read_text()
    built_path(tmp_path).write_text(text.replace("acp", "ACP"))
    assert artifacts.find(tmp_path, TRIPLE) is None
    built_path(tmp_path).write_text(text)
    assert artifacts.find(tmp_path, TRIPLE) is not None
    built_path(tmp_path).unlink()
    assert artifacts.find(tmp_path, TRIPLE) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"schema": "other"}', '{"schema": "buzzbench-artifacts-1"}'])
def test_a_damaged_stamp_counts_as_none(tmp_path: Path, text: str) -> None:
    made = built(tmp_path)
    (made.directory / artifacts.STAMP).write_text(text)
    assert artifacts.find(tmp_path, TRIPLE) is None


def test_the_newest_for_a_machine_is_taken_whatever_its_target(tmp_path: Path) -> None:
    assert artifacts.for_machine(tmp_path, "x86_64") is None
    built(tmp_path)
    newer = built(tmp_path, "x86_64-unknown-linux-gnu", "2026-11-30T11:00:00+00:00")
    other = built(tmp_path, "aarch64-unknown-linux-musl", "2026-11-30T12:00:00+00:00")
    assert artifacts.for_machine(tmp_path, "x86_64") == newer
    assert artifacts.for_machine(tmp_path, "aarch64") == other
    assert other.machine == "aarch64"
