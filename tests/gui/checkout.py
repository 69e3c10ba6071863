"""A checkout with what the desktop app's preparation needs, and stand-ins for the programs of others.

`pnpm` stands for the app: it notes how it was called, and `tauri dev` stays until it is told to close. `docker` notes
how it was called. Cargo and rustc are real.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bench import keys
from bench.files import write_private
from tests.pipeline import Installation, wait_until
from tests.xbuild import workspace

PNPM = """#!/bin/sh
here=$(dirname "$0")
printf '%s\\n' "$PWD" "$@" > "$here/pnpm-$1.args"
env > "$here/pnpm-$1.env"
echo "pnpm speaks"
case $1 in
    install) mkdir desktop/node_modules ;;
    exec)
        echo $$ > "$here/app.pid.new"
        mv "$here/app.pid.new" "$here/app.pid"
        while [ ! -e "$here/close" ]; do sleep 0.05; done
        exit "$(cat "$here/close")"
        ;;
esac
"""
DOCKER = """#!/bin/sh
here=$(dirname "$0")
printf '%s\\n' "$@" > "$here/docker.args"
[ ! -e "$here/docker.fails" ] || { echo "relay is not running" >&2; exit 1; }
"""


def make(directory: Path) -> Path:
    """A checkout of Buzz with a desktop app and a command line."""
    buzz = workspace.make(directory, git=False)
    tauri = buzz / "desktop" / "src-tauri"
    tauri.mkdir(parents=True)
    config = {"bundle": {"externalBin": ["binaries/buzz", "binaries/buzz-acp", "binaries/buzz-newer"]}}
    (tauri / "tauri.conf.json").write_text(json.dumps(config))
    crate = buzz / "crates" / "buzz-cli"
    (crate / "src").mkdir(parents=True)
    (crate / "Cargo.toml").write_text(
        '[package]\nname = "buzz-cli"\nversion = "0.1.0"\nedition = "2021"\n'
        '[[bin]]\nname = "buzz"\npath = "src/main.rs"\n'
    )
    (crate / "src" / "main.rs").write_text('fn main() { println!("the command line") }')
    manifest = (buzz / "Cargo.toml").read_text()
    (buzz / "Cargo.toml").write_text(manifest.replace("members = [", 'members = ["crates/buzz-cli", '))
    return buzz


def build_nothing(buzz: Path) -> None:
    """Have the checkout's own command line there, so that the app's preparation builds none."""
    said = subprocess.run(["rustc", "-vV"], cwd=buzz, capture_output=True, text=True, check=True).stdout
    triple = next(line.removeprefix("host: ") for line in said.splitlines() if line.startswith("host: "))
    binaries = buzz / "desktop" / "src-tauri" / "binaries"
    binaries.mkdir()
    (binaries / f"buzz-{triple}").write_text("#!/bin/sh\n")


def address(kind: str) -> dict[str, str]:
    """What stack.json holds."""
    return {"kind": kind, "relay_url": "ws://localhost:3999", "dsn": "", "gateway_url": "", "gateway_control": ""}


def pretend_stack(state_dir: Path) -> keys.State:
    """A state whose compose stack is up, as far as its files say."""
    state = keys.ensure(state_dir)
    write_private(state_dir / "stack.json", json.dumps(address("compose")))
    write_private(state_dir / "compose.json", json.dumps({"name": "buzz-benchmark-test", "bridge": None}))
    return state


@dataclass(frozen=True)
class Desk(Installation):
    """An installation with more in its environment."""

    more: dict[str, str] = field(default_factory=dict, hash=False)

    @property
    def environment(self) -> dict[str, str]:
        return {**super().environment, **self.more}


@dataclass(frozen=True)
class Standins:
    """The directory that is first on PATH."""

    directory: Path

    @classmethod
    def make(cls, directory: Path, *, docker: bool = True) -> Standins:
        if shutil.which("cargo") is None:
            pytest.skip("the app's preparation needs Rust")
        directory.mkdir()
        for name, text in {"pnpm": PNPM, **({"docker": DOCKER} if docker else {})}.items():
            (directory / name).write_text(text)
            (directory / name).chmod(0o755)
        return cls(directory)

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": f"{self.directory}{os.pathsep}{os.environ['PATH']}", "DISPLAY": ":0", "SOME_API_KEY": "secret"}

    def called(self, what: str) -> list[str]:
        """The arguments of the last call, the directory first for pnpm."""
        return (self.directory / f"{what}.args").read_text().splitlines()

    def environment_of(self, what: str) -> dict[str, str]:
        lines = (self.directory / f"{what}.env").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)

    @property
    def app(self) -> int | None:
        """The app's process, None as long as it isn't there."""
        try:
            return int((self.directory / "app.pid").read_text())
        except FileNotFoundError:
            return None

    def wait_for_app(self) -> int:
        wait_until(lambda: self.app is not None)
        assert self.app
        return self.app

    def close(self, code: int = 0) -> None:
        """Have the app end with this code."""
        (self.directory / "close.new").write_text(str(code))
        (self.directory / "close.new").rename(self.directory / "close")
