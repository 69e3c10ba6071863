"""A build image made on the spot, where none can be pulled: this machine's own Rust, C compiler and shell.

It stands for `rust:1.98-alpine`. Its target is the GNU one: this machine has no library for musl.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.docker.images import REPOSITORY, docker, exists

TRIPLE = "x86_64-unknown-linux-gnu"
PACKAGES = ("coreutils", "dash", "gcc", "libc6-dev")
LEFT_OUT = ("/usr/share/", "/usr/lib/x86_64-linux-gnu/perl")
MERGED = ("bin", "sbin", "lib", "lib64")
"""Directories of the root that are links into /usr."""


def image() -> str:
    """The image's name; made where the engine lacks it. Needs Debian and Rust as rustup installs it."""
    rust = Path(_said("rustc", "--print", "sysroot"))
    installed = _packages()
    versions = _said("dpkg-query", "--show", "--showformat", "${Package} ${Version}\n", *installed)
    made_from = f"{_said('rustc', '-vV')}{versions}{LEFT_OUT}{sorted(_libraries(rust))}"
    name = f"{REPOSITORY}/rust:{hashlib.sha256(made_from.encode()).hexdigest()[:12]}"
    if not exists(name):
        with tempfile.TemporaryDirectory(dir="/var/tmp") as home:
            file = Path(home) / "image.tar"
            with tarfile.open(file, "w") as tar:
                _add_system(tar, installed)
                for part in ("bin/rustc", "bin/cargo", *_libraries(rust)):
                    tar.add(rust / part, f"opt/rust/{part}")
            docker("import", "--change", "ENV PATH=/opt/rust/bin:/usr/bin", str(file), name)
    return name


def _libraries(rust: Path) -> Iterator[str]:
    yield from (str(path.relative_to(rust)) for path in (rust / "lib").glob("*.so*"))
    yield from (f"lib/rustlib/{TRIPLE}/{part}" for part in ("bin", "lib"))


def _packages() -> list[str]:
    """The packages with all that they need."""
    left_out = [f"--no-{kind}" for kind in ("recommends", "suggests", "conflicts", "breaks", "replaces", "enhances")]
    shown = _said("apt-cache", "depends", "--recurse", "--installed", *left_out, *PACKAGES)
    names = sorted({line for line in shown.splitlines() if line[0].isalnum()})
    status = _said("dpkg-query", "--show", "--showformat", "${Package} ${db:Status-Status}\n")
    return [name for name in names if f"{name} installed" in status.splitlines()]


def _add_system(tar: tarfile.TarFile, packages: list[str]) -> None:
    paths = set()
    for path in map(Path, _said("dpkg", "--listfiles", *packages).splitlines()):
        if path.is_absolute() and not path.is_dir():
            paths.add(Path("/usr") / path.relative_to("/") if path.parts[1] in MERGED else path)
    paths.add(Path("/usr/bin/cc"))
    for path in sorted(paths):
        if path.exists() and not str(path).startswith(LEFT_OUT):
            # `cc` goes through a link that no package has.
            tar.add(path.resolve() if path.name == "cc" else path, str(path).lstrip("/"))
    for name in MERGED:
        link = tarfile.TarInfo(name)
        link.type, link.linkname = tarfile.SYMTYPE, f"usr/{name}"
        tar.addfile(link)
    temporary = tarfile.TarInfo("tmp")
    temporary.type, temporary.mode = tarfile.DIRTYPE, 0o1777
    tar.addfile(temporary)


def _said(*command: str) -> str:
    environment = os.environ | {"LC_ALL": "C"}
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.strip()
