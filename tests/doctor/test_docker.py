"""Docker: without it only what needs it is out of reach; a cause is told before its symptoms."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from bench.doctor.check import run
from bench.doctor.docker import CHECKS, pools
from tests.doctor.conftest import Make


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `docker` that answers as the test says: a stand-in for the command, which is another's program."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    path = folder / "docker"
    path.touch(mode=0o755)
    return path


def say(program: Path, *, engine: str = "0", compose: str = "2.30.1", networks: int = 3, arch: str = "amd64") -> None:
    program.write_text(f"""#!/bin/sh
case "$1 $2" in
  "version --format") [ {engine} = 0 ] || {{ echo "Cannot connect to the Docker daemon" >&2; exit 1; }}
    echo '{{"Version": "27.1", "Arch": "{arch}"}}' ;;
  "compose version") [ -n "{compose}" ] || {{ echo "no such command" >&2; exit 1; }}; echo {compose} ;;
  "buildx version") echo "github.com/docker/buildx v0.13.1 abc" ;;
  "network ls") seq {networks} ;;
esac
""")


def found(make: Make, program: Path, n_concurrent: int = 4) -> dict[str, tuple[str, str]]:
    context = make(environ={"PATH": str(program.parent)}, n_concurrent=n_concurrent)
    return {result.name: (result.state, result.detail) for result in run(CHECKS, context)}


def test_all_is_well_with_an_engine_and_its_plugins(make: Make, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    say(program)
    assert found(make, program) == {
        "engine": ("ok", "27.1 on amd64"),
        "compose": ("ok", "2.30.1"),
        "buildx": ("ok", "v0.13.1"),
        "networks": ("ok", "3 there, 28 more can be made by default"),
    }


def test_without_an_engine_the_rest_is_skipped_and_the_cause_named(make: Make, program: Path) -> None:
    say(program, engine="1")
    results = found(make, program)
    assert results["engine"][0] == "warn"
    assert results["engine"][1].startswith("it does not answer: Cannot connect to the Docker daemon; without it, ")
    assert {results[name] for name in ("compose", "buildx", "networks")} == {("skip", "it needs engine")}


def test_without_docker_it_is_said_what_runs_all_the_same(make: Make) -> None:
    (engine, *_) = run(CHECKS, make(environ={"PATH": ""}))
    assert (engine.state, engine.fix) == ("warn", "install Docker with its Compose plugin")
    assert engine.detail.startswith("there is no docker command; without it, -e sandbox and the embedded stack run")


@pytest.mark.parametrize(
    ("version", "detail"),
    [("2.19.9", "2.19.9, and 2.20 is the oldest that will do"), ("", "there is no `docker compose`")],
)
def test_a_compose_that_is_too_old_or_missing_is_said(make: Make, program: Path, version: str, detail: str) -> None:
    say(program, compose=version)
    assert found(make, program)["compose"] == ("warn", detail)


def test_an_engine_of_another_architecture_is_said(make: Make, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    say(program, arch="arm64")
    assert "27.1 on arm64, and this machine is amd64" in found(make, program)["engine"][1]


@pytest.mark.parametrize(("used", "n_concurrent", "state"), [(3, 4, "ok"), (26, 40, "warn"), (31, 1, "warn")])
def test_more_trials_than_free_networks_is_a_warning(used: int, n_concurrent: int, state: str) -> None:
    """Case 40."""
    assert pools(used, n_concurrent).state == state


def test_the_number_of_trials_counts(make: Make, program: Path) -> None:
    """Case 40: 40 at once, and 5 free."""
    say(program, networks=26)
    assert found(make, program, n_concurrent=40)["networks"] == (
        "warn",
        "5 more can be made by default, and 40 trials at once need as many",
    )
