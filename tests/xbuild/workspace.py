"""A small Cargo workspace with packages of the names that Buzz has, to build in Buzz's place."""

from __future__ import annotations

import subprocess
from pathlib import Path

from bench.xbuild.artifacts import AGENTS

MAIN = 'fn main() {{ println!("{name} {word} {{:?}}", std::env::args().skip(1).collect::<Vec<_>>()); }}\n'


def make(directory: Path, *, git: bool = True) -> Path:
    """The workspace, whose programs say their name and `one`; a git checkout of one commit if wanted."""
    members = ", ".join(f'"crates/{name}"' for name in AGENTS)
    (directory / "crates").mkdir(parents=True)
    (directory / "Cargo.toml").write_text(f'[workspace]\nresolver = "2"\nmembers = [{members}]\n')
    locked = "\n".join(f'[[package]]\nname = "{name}"\nversion = "0.1.0"\n' for name in AGENTS)
    (directory / "Cargo.lock").write_text(f"version = 4\n\n{locked}")
    for name in AGENTS:
        crate = directory / "crates" / name
        (crate / "src").mkdir(parents=True)
        (crate / "Cargo.toml").write_text(f'[package]\nname = "{name}"\nversion = "0.1.0"\nedition = "2021"\n')
        say(directory, name, "one")
    (directory / ".gitignore").write_text("target/\n")
    if git:
        commit(directory)
    return directory


def say(directory: Path, name: str, word: str) -> Path:
    """Have the program say this word; its source."""
    path = directory / "crates" / name / "src" / "main.rs"
    path.write_text(MAIN.format(name=name, word=word))
    return path


def commit(directory: Path) -> str:
    """Commit all; the revision."""
    if not (directory / ".git").exists():
        git(directory, "init", "--quiet")
    git(directory, "add", "--all")
    git(directory, "-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "--quiet", "--message", "all")
    return git(directory, "rev-parse", "HEAD")


def git(directory: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(directory), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()
