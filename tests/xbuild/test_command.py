"""What `inv xbuild` refuses, and when it has nothing to do, told before an engine is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import xbuild
from bench.errors import InvalidInput, MachineLacks
from bench.settings import ROOT
from bench.xbuild.options import triple_of

BUILTIN = str(ROOT / "manifests" / "builtin-solo.yaml")


@pytest.fixture(autouse=True)
def no_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("BUZZBENCH_STATE_DIR", str(tmp_path / "state"))


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        xbuild.check(manifest="no.yaml", source=str(tmp_path), arch="sparc")
    assert str(caught.value).splitlines() == [
        "no.yaml: no such manifest",
        f"--source: there is no {tmp_path}/Cargo.toml; give a checkout of Buzz",
        "--arch: no agents can be built for 'sparc'; give amd64 or arm64, or a target triple of theirs",
    ]


def test_a_setting_is_complained_of_by_its_own_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUZZBENCH_BUZZ_SOURCE", str(tmp_path))
    monkeypatch.setenv("BUZZBENCH_XBUILD_ARCH", "vax")
    with pytest.raises(InvalidInput) as caught:
        xbuild.check()
    said = str(caught.value)
    assert said.startswith(f"BUZZBENCH_BUZZ_SOURCE: there is no {tmp_path}/Cargo.toml")
    assert "\nBUZZBENCH_XBUILD_ARCH: no agents can be built for 'vax'" in said


def test_a_condition_without_real_agents_needs_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert xbuild.xbuild(manifest=BUILTIN, force=True) is None
    said = "xbuild: the condition builtin-solo-sonnet46 has no real agents, nothing to build\n"
    assert capfd.readouterr() == ("", said)
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("arch", ["", "arm64"])
def test_without_docker_one_line_says_so(arch: str) -> None:
    with pytest.raises(MachineLacks) as caught:
        xbuild.xbuild(arch=arch)
    assert str(caught.value) == "xbuild: there is no docker command; install Docker with its Compose plugin"


@pytest.mark.parametrize(
    ("arch", "triple"),
    [
        ("amd64", "x86_64-unknown-linux-musl"),
        ("x86_64", "x86_64-unknown-linux-musl"),
        ("arm64", "aarch64-unknown-linux-musl"),
        ("aarch64", "aarch64-unknown-linux-musl"),
        ("aarch64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"),
    ],
)
def test_the_target_follows_the_architecture(arch: str, triple: str) -> None:
    assert triple_of(arch, "--arch") == triple
