"""The forwarder (row X2): how it is compiled, and built for this very machine where there is a Rust compiler."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from bench.errors import BuzzbenchError, MachineLacks
from bench.settings import ROOT

SOURCE = ROOT / "forwarder" / "relay_forwarder.rs"
NAME = "relay-forwarder"
OPTIONS = ("--edition", "2021", "-O", "-C", "strip=symbols", "-C", "target-feature=+crt-static")
"""Of rustc, on every target: it must run in any image, and symbols would make what a trial uploads larger by MBs."""


def sources() -> list[str]:
    """The texts that it is made of: what changes when it does."""
    return [path.read_text(encoding="utf-8") for path in sorted(SOURCE.parent.glob("*.rs"))]


def build_here(directory: Path) -> Path:
    """Compile it into the directory; its path. Raises MachineLacks without rustc, BuzzbenchError where that fails."""
    if shutil.which("rustc") is None:
        raise MachineLacks.of("forwarder", "there is no rustc", "install Rust (rustup.rs)")
    program = directory / NAME
    done = subprocess.run(
        ["rustc", *OPTIONS, "-D", "warnings", "-o", str(program), str(SOURCE)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise BuzzbenchError(f"rustc failed:\n{done.stderr.strip()}", where=str(SOURCE))
    return program
