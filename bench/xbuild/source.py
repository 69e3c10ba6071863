"""Where Buzz's source comes from, and what names its content (row X4)."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.errors import BuzzbenchError, InvalidInput, MachineLacks
from bench.reading import tomlfile

REPOSITORY = "https://github.com/block/buzz.git"
REVISION = "3e48f1b2365d326ee1c9582448d86a99b44ecd5d"
"""Buzz 0.5.2."""

NAME_ONE = "name a checkout with --source or BUZZBENCH_BUZZ_SOURCE"
FETCH_S = 900.0
NOT_SOURCE = {".git", "target", "node_modules"}
"""Directories that a build makes; they don't count where there is no git to tell what does."""


@dataclass(frozen=True)
class Source:
    """Buzz's source. `directory` is None for the public repository, as long as it isn't fetched.

    `revision` is the commit, None where the directory is no checkout; `changes` is a digest of what differs from the
    commit, of all files where there is none, or None where nothing differs.
    """

    directory: Path | None
    revision: str | None
    changes: str | None = None

    @property
    def name(self) -> str:
        """As people read it: `3e48f1b2365d`, or `3e48f1b2365d with changes 0123456789ab`."""
        named = self.revision[:12] if self.revision else "no commit"
        return f"{named} with changes {self.changes[:12]}" if self.changes else named

    @property
    def digest(self) -> str:
        """Names the content: SHA-256 of both."""
        return hashlib.sha256(f"{self.revision} {self.changes}".encode()).hexdigest()


def public() -> Source:
    """The public repository at the revision that this version of Buzzbench was made for."""
    return Source(None, REVISION)


def require(directory: Path, where: str, needed: tuple[str, ...]) -> None:
    """Raise InvalidInput if a directory that a person named by `where` lacks one of the packages."""
    missing = sorted(set(needed) - set(packages(directory, where)))
    if missing:
        raise InvalidInput.of(where, f"{directory} has no {' and no '.join(missing)}", "give a checkout of Buzz")


def checkout(directory: Path) -> Source:
    """A directory of the person's, as it is now. Raises BuzzbenchError where git can't tell."""
    if not (directory / ".git").exists() or shutil.which("git") is None:
        return Source(directory, None, _digest(directory, _files(directory)))
    revision = _git(directory, "rev-parse", "HEAD").strip().decode()
    if not _git(directory, "status", "--porcelain"):
        return Source(directory, revision)
    untracked = _git(directory, "ls-files", "--others", "--exclude-standard", "-z").split(b"\0")[:-1]
    differs = _git(directory, "diff", "HEAD", "--binary", "--no-ext-diff", "--no-textconv")
    return Source(directory, revision, _digest(directory, map(os.fsdecode, untracked), differs))


def fetch(into: Path) -> Path:
    """The public repository's source, fetched below that directory once. Raises MachineLacks where it can't be."""
    directory = into / REVISION
    if directory.is_dir():
        return directory
    if shutil.which("git") is None:
        raise MachineLacks.of("xbuild", "there is no git to fetch Buzz's source with", f"install it, or {NAME_ONE}")
    print(f"xbuild: fetching {REPOSITORY} at {REVISION[:12]}", file=sys.stderr, flush=True)
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=into, prefix=".fetch-") as parent:
        partial = Path(parent) / "buzz"
        partial.mkdir()
        try:
            _git(partial, "init", "--quiet")
            _git(partial, "fetch", "--quiet", "--depth", "1", REPOSITORY, REVISION)
            _git(partial, "checkout", "--quiet", "--detach", "FETCH_HEAD")
        except BuzzbenchError as error:
            raise MachineLacks.of("xbuild", f"Buzz's source can't be fetched ({error})", NAME_ONE) from None
        partial.rename(directory)
    return directory


def packages(directory: Path, where: str) -> Iterator[str]:
    """The names of the workspace's packages. Raises InvalidInput where it is none."""
    workspace = _table(directory, where).get("workspace", {})
    members = workspace.get("members", []) if isinstance(workspace, dict) else None
    if not isinstance(members, list):
        raise InvalidInput.of(where, f"{directory / 'Cargo.toml'} is no workspace", "give a checkout of Buzz")
    for member in members:
        for path in directory.glob(str(member)):
            yield str(_table(path, where).get("package", {}).get("name"))


def _table(directory: Path, where: str) -> dict[str, Any]:
    file = directory / "Cargo.toml"
    if not file.exists():
        raise InvalidInput.of(where, f"there is no {file}", "give a checkout of Buzz")
    try:
        table: dict[str, Any] = tomlfile.read(file, shown=str(file)).data
    except InvalidInput as error:
        raise InvalidInput.of(where, str(error), "give a checkout of Buzz") from None
    return table


def _git(directory: Path, *arguments: str) -> bytes:
    """What git prints. Raises BuzzbenchError with the last line of its complaint."""
    try:
        done = subprocess.run(
            ["git", "-C", str(directory), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=os.environ | {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"},
            timeout=FETCH_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise BuzzbenchError(f"no end within {FETCH_S:g} s", where=f"git {arguments[0]}") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise BuzzbenchError(said[-1] if said else f"ended with {done.returncode}", where=f"git {arguments[0]}")
    return done.stdout


def _files(directory: Path) -> Iterator[str]:
    for parent, inner, names in os.walk(directory):
        inner[:] = [name for name in inner if name not in NOT_SOURCE]
        yield from (str((Path(parent) / name).relative_to(directory)) for name in names)


def _digest(directory: Path, names: Iterator[str], beside: bytes = b"") -> str:
    """SHA-256 of the files, by name, and of what is given beside them."""
    digest = hashlib.sha256(beside)
    for name in sorted(names):
        path = directory / name
        kind, content = (b"@", os.fsencode(path.readlink())) if path.is_symlink() else (b"=", path.read_bytes())
        digest.update(os.fsencode(name) + kind + hashlib.sha256(content).digest())
    return digest.hexdigest()
