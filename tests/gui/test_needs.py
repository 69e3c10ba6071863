"""What is missing for the desktop app is said all at once, a line each."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.errors import Problem
from bench.gui import needs
from bench.settings import Settings
from tests.gui import checkout


def said(settings: Settings, environ: dict[str, str], platform: str = "linux") -> list[str]:
    return [str(problem) for problem in needs.problems("gui", settings, "--source", environ, platform)]


@pytest.fixture
def programs(tmp_path: Path) -> dict[str, str]:
    """An environment with every program and a display."""
    home = tmp_path / "bin"
    home.mkdir()
    for name in needs.PROGRAMS:
        (home / name).touch(mode=0o755)
    return {"PATH": str(home), "WAYLAND_DISPLAY": "wayland-0"}


def test_nothing_is_missing_where_all_is_there(tmp_path: Path, programs: dict[str, str]) -> None:
    assert said(Settings(buzz_source=checkout.make(tmp_path / "buzz")), programs) == []


def test_everything_that_is_missing_is_said_at_once(tmp_path: Path) -> None:
    assert said(Settings(), {"PATH": str(tmp_path)}) == [
        "gui: no checkout of Buzz is named; give --source to `inv gui`, or set BUZZBENCH_BUZZ_SOURCE",
        "gui: there is no pnpm; install pnpm (pnpm.io)",
        "gui: there is no cargo; install Rust (rustup.rs)",
        "gui: there is no rustc; install Rust (rustup.rs)",
        "gui: there is no display; run it in a desktop session (DISPLAY or WAYLAND_DISPLAY)",
    ]


def test_all_of_it_is_the_machine_s_but_a_wrong_checkout(tmp_path: Path) -> None:
    found: list[Problem] = [
        *needs.problems("gui", Settings(), "", {"PATH": ""}, "linux"),
        *needs.problems("gui", Settings(buzz_source=tmp_path), "--source", {"PATH": ""}, "linux"),
    ]
    wrong = [problem for problem in found if not problem.lacks]
    assert [str(problem) for problem in wrong] == [
        f"--source: there is no {tmp_path}/desktop/src-tauri/tauri.conf.json; give a whole checkout of Buzz"
    ]


def test_a_mac_always_has_a_display(tmp_path: Path, programs: dict[str, str]) -> None:
    del programs["WAYLAND_DISPLAY"]
    settings = Settings(buzz_source=checkout.make(tmp_path / "buzz"))
    assert said(settings, programs, "darwin") == []
    assert len(said(settings, programs)) == 1
