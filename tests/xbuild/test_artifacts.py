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
    assert artifacts.find(tmp_path, "aarch64-unknown-linux-musl") is None


def test_a_trial_records_what_it_got_and_from_what_that_was_built(tmp_path: Path) -> None:
    made = built(tmp_path)
    got = {name: made.stamp.programs[name].sha256 for name in ("buzz-acp", "buzz-agent")}
    recorded = artifacts.provenance(made.directory, got)
    assert recorded == {
        "sha256": got,
        "revision": "a" * 40,
        "changes": None,
        "image": "rust:1.98-alpine",
        "image_id": "sha256:0",
        "triple": TRIPLE,
        "built_at": "2026-11-30T10:00:00+00:00",
    }
    assert str(tmp_path) not in json.dumps(recorded)


def test_programs_that_are_not_those_of_the_stamp_are_recorded_by_content_alone(tmp_path: Path) -> None:
    made = built(tmp_path)
    got = {"buzz-acp": "0" * 64}
    assert artifacts.provenance(made.directory, got) == {"sha256": got}
    assert artifacts.provenance(tmp_path, got) == {"sha256": got}


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
