"""Where the agents' programs are, whether they were built or a person has them already."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import xbuild
from bench.errors import MachineLacks
from bench.places import programs_directory
from bench.settings import ROOT, Settings

TEAM = str(ROOT / "manifests" / "tb-cobol-sonnet-haiku.yaml")


def test_a_directory_that_a_person_named_comes_before_what_was_built(tmp_path: Path) -> None:
    assert programs_directory(Settings(state_dir=tmp_path)) == tmp_path / "agent-programs"
    assert programs_directory(Settings(state_dir=tmp_path, agent_programs=tmp_path / "own")) == tmp_path / "own"


def test_a_named_directory_needs_no_build_and_no_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BUZZBENCH_AGENT_PROGRAMS", str(tmp_path))
    with pytest.raises(MachineLacks, match="there is no buzz-acp and no buzz-agent and no buzz-dev-mcp"):
        xbuild.xbuild(manifest=TEAM)
    for name in ("buzz-acp", "buzz-agent", "buzz-dev-mcp"):
        (tmp_path / name).touch()
    assert xbuild.xbuild(manifest=TEAM) is None
    assert capsys.readouterr().err == f"xbuild: the agents' programs are those in {tmp_path}, nothing to build\n"
