"""A fresh checkout is prepared for the app, once, and the app gets its key where nobody else sees it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from bench.errors import BuzzbenchError
from bench.gui import app
from bench.gui.appstate import IDENTIFIER, forget
from tests.gui import checkout
from tests.gui.checkout import Standins


@pytest.fixture
def buzz(tmp_path: Path) -> Path:
    return checkout.make(tmp_path / "buzz")


@pytest.fixture
def standins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Standins:
    made = Standins.make(tmp_path / "bin")
    monkeypatch.setenv("PATH", made.environment["PATH"])
    return made


def test_a_fresh_checkout_gets_packages_sidecars_and_the_real_command_line(buzz: Path, standins: Standins) -> None:
    app.prepare(buzz)
    assert standins.called("pnpm-install") == [str(buzz), "install"]
    shown = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    triple = next(line.split()[1] for line in shown.splitlines() if line.startswith("host:"))
    binaries = buzz / "desktop" / "src-tauri" / "binaries"
    names = {*app.SIDECARS, "buzz-newer"}
    assert {path.name for path in binaries.iterdir()} == {f"{name}-{triple}" for name in names}
    assert [path.name for path in binaries.iterdir() if path.stat().st_size] == [f"buzz-{triple}"]
    said = subprocess.run([binaries / f"buzz-{triple}"], capture_output=True, text=True, check=True)
    assert said.stdout == "the command line\n"


def test_what_is_prepared_already_is_left_alone(buzz: Path, standins: Standins) -> None:
    app.prepare(buzz)
    (standins.directory / "pnpm-install.args").unlink()
    binaries = buzz / "desktop" / "src-tauri" / "binaries"
    real = next(path for path in binaries.iterdir() if path.name.startswith("buzz-acp-"))
    real.write_text("a real one")
    shutil.rmtree(buzz / "crates" / "buzz-cli" / "src")
    app.prepare(buzz)
    assert not (standins.directory / "pnpm-install.args").exists()
    assert real.read_text() == "a real one"


def test_a_step_that_fails_is_named(buzz: Path, standins: Standins, capfd: pytest.CaptureFixture[str]) -> None:
    (buzz / "crates" / "buzz-cli" / "src" / "main.rs").write_text("nonsense")
    with pytest.raises(BuzzbenchError, match=r"^cargo build: ended with 101$"):
        app.prepare(buzz)
    assert "error: expected one of" in capfd.readouterr().err
    (buzz / "desktop" / "src-tauri" / "tauri.conf.json").write_text("{")
    with pytest.raises(BuzzbenchError, match=r"tauri\.conf\.json: it is no JSON: "):
        app.prepare(buzz)


@pytest.mark.parametrize(
    ("platform", "places"),
    [
        ("darwin", [f"Library/{part}/{IDENTIFIER}" for part in ("WebKit", "Caches", "Application Support")]),
        ("linux", [f".local/share/{IDENTIFIER}", f".cache/{IDENTIFIER}"]),
    ],
)
def test_only_this_app_s_own_state_is_forgotten(tmp_path: Path, platform: str, places: list[str]) -> None:
    for place in places:
        (tmp_path / place / "more").mkdir(parents=True)
        (tmp_path / place).with_name("xyz.block.buzz.app").mkdir()
    assert forget(tmp_path, {}, platform) == [tmp_path / place for place in places]
    assert all((tmp_path / place).with_name("xyz.block.buzz.app").is_dir() for place in places)
    assert forget(tmp_path, {}, platform) == []


def test_places_that_the_environment_names_are_meant(tmp_path: Path) -> None:
    (tmp_path / "data" / IDENTIFIER).mkdir(parents=True)
    environ = {"XDG_DATA_HOME": str(tmp_path / "data")}
    assert forget(tmp_path / "home", environ, "linux") == [tmp_path / "data" / IDENTIFIER]
