"""Where no sandbox can be made, one line says what is missing and how to go on; nothing runs as a plain process."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench.sandbox import layout, probe
from bench.sandbox.environment import SandboxEnvironment, SandboxUnavailable

Script = Callable[[str, str], Path]


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """What was found before isn't known in these tests, nor later what they pretended."""
    probe.tools.cache_clear()
    yield
    probe.tools.cache_clear()


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    """Puts a program of ours first on the path."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/sbin:/usr/bin:/sbin:/bin")

    def write(name: str, text: str) -> Path:
        file = tmp_path / name
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)
        return file

    return write


def said() -> str:
    found = probe.problem()
    assert found and found.lacks
    assert "\n" not in str(found)
    return str(found)


def test_this_machine_can() -> None:
    assert probe.problem() is None
    assert probe.tools() is probe.tools()


def test_only_on_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert said() == "sandbox: bubblewrap runs on Linux only; use -e docker"


def test_without_nsenter(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert said() == "sandbox: there is no nsenter; install util-linux 2.38 or newer, or use -e docker"


def test_with_an_old_nsenter(script: Script) -> None:
    script("nsenter", "echo '-w, --wd[=<dir>]'")
    assert said() == (
        "sandbox: there is no nsenter that knows --wdns; install util-linux 2.38 or newer, or use -e docker"
    )


def test_root_needs_setpriv(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    nsenter = shutil.which("nsenter")
    assert nsenter
    (tmp_path / "nsenter").symlink_to(nsenter)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(probe, "steps_down", lambda: True)
    assert said() == "sandbox: there is no setpriv, which root needs; install util-linux, or use -e docker"


def test_python_must_be_where_a_sandbox_sees_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("bash", "tar"):
        (tmp_path / name).symlink_to(f"/usr/bin/{name}")
    (tmp_path / "python3").symlink_to(sys.executable)
    monkeypatch.setattr(layout, "PATH", str(tmp_path))
    monkeypatch.setattr(layout, "READ_ONLY", ("/usr/bin", "/bin"))
    assert said() == "sandbox: there is no python3 below /usr; install python3, or use -e docker"


def test_an_old_bubblewrap_is_passed_over(script: Script) -> None:
    script("bwrap", "echo bubblewrap 0.7.9")
    assert probe.tools().bwrap.parent.name == "_bin"


def test_a_bubblewrap_that_fails_is_passed_over(script: Script) -> None:
    script("bwrap", '[ "$1" = --version ] && echo bubblewrap 0.9.0 || exit 1')
    assert probe.tools().bwrap.parent.name == "_bin"


def test_the_systems_bubblewrap_comes_first(script: Script) -> None:
    wheel = probe.tools().bwrap
    probe.tools.cache_clear()
    ours = script("bwrap", f'[ "$1" = --version ] && echo bubblewrap 0.8.0 || exec {wheel} "$@"')
    assert next(iter(probe._candidates())) == ours


@pytest.mark.parametrize(
    ("setting", "value", "fix"),
    [
        ("kernel/unprivileged_userns_clone", 0, "sudo sysctl -w kernel.unprivileged_userns_clone=1"),
        (
            "kernel/apparmor_restrict_unprivileged_userns",
            1,
            "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        ("user/max_user_namespaces", 0, "sudo sysctl -w user.max_user_namespaces=15000"),
        ("", 0, "(in a container: docker run --security-opt seccomp=unconfined --privileged)"),
    ],
)
def test_where_user_namespaces_are_forbidden_the_line_says_how_to_allow_them(
    script: Script, monkeypatch: pytest.MonkeyPatch, setting: str, value: int, fix: str
) -> None:
    denied = script("bwrap", "echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1")
    monkeypatch.setattr(probe, "_candidates", lambda: iter([denied]))
    monkeypatch.setattr(probe, "_sysctl", lambda name: value if name == setting else None)
    assert said() == (
        "sandbox: bubblewrap can't make one (bwrap: setting up uid map: Permission denied);"
        f" allow user namespaces{':' if setting else ''} {fix}, or use -e docker"
    )


def test_without_any_bubblewrap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "_candidates", lambda: iter(()))
    monkeypatch.setattr(probe, "_sysctl", lambda name: None)
    assert said() == (
        "sandbox: bubblewrap can't make one (there is no bubblewrap); install bubblewrap 0.8 or newer, or use -e docker"
    )


def test_harbor_is_stopped_before_the_first_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    SandboxEnvironment.preflight({"network": "none"})
    probe.tools.cache_clear()
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(SandboxUnavailable, match="use -e docker") as stopped:
        SandboxEnvironment.preflight({})
    assert stopped.value.exit_code == 3
    assert isinstance(stopped.value, ValueError)  # what Harbor's command line prints in one line
