"""The programs of real agents on this host, and how they come into a task's environment: mounted, else uploaded."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import shlex
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bench.errors import MachineLacks
from bench.harness.buzz.failures import InstallFailed
from bench.harness.buzz.fixed import AGENTS, FORWARDER, PROGRAMS
from bench.harness.shell import Executed

FOR_ALL = 0o005
"""Any user may read and run it."""

INSTALL_S = 120
"""For the upload's check: about 100 MB are read once."""


class Environment(Protocol):
    """The part of Harbor's BaseEnvironment that real agents need."""

    async def exec(
        self, command: str, *, timeout_sec: int | None = None, user: str | int | None = None
    ) -> Executed: ...
    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None: ...
    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None: ...
    @property
    def default_user(self) -> str | int | None: ...
    def is_path_mounted(self, environment_path: str, host_path: Path) -> bool: ...


@dataclass(frozen=True)
class Programs:
    """A directory that holds the programs, and each one's SHA-256."""

    directory: Path
    sha256: Mapping[str, str]

    @property
    def sums(self) -> str:
        """As `sha256sum --check` reads them."""
        return "".join(f"{digest}  {name}\n" for name, digest in self.sha256.items())


def load(directory: Path, *, forwarder: bool) -> Programs:
    """The programs of a directory. Raises MachineLacks naming those that are missing."""
    wanted = (*AGENTS, *((FORWARDER,) if forwarder else ()))
    missing = [name for name in wanted if not (directory / name).is_file()]
    if missing:
        raise MachineLacks.of(str(directory), f"there is no {' and no '.join(missing)}", "run `inv xbuild`")
    return Programs(directory, {name: _digest(directory / name, _version(directory / name)) for name in wanted})


def _version(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_mtime_ns, found.st_size


@functools.cache
def _digest(path: Path, version: tuple[int, int]) -> str:
    """Read once for each version of the file: every trial of a job asks."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_root(user: str | int | None) -> bool:
    """Whether a user of an environment, as Harbor has it, is root."""
    return user in (None, "root", 0, "0")


async def install(environment: Environment, programs: Programs) -> bool:
    """Have the programs in the environment; whether they had to be uploaded. Raises InstallFailed.

    Read-only mounts of the files themselves need no check: what was hashed here is what runs there, if the user there
    may run it.
    """
    here = programs.directory
    if all(environment.is_path_mounted(f"{PROGRAMS}/{name}", here / name) for name in programs.sha256):
        closed = [name for name in programs.sha256 if (here / name).stat().st_mode & FOR_ALL != FOR_ALL]
        if closed and not is_root(environment.default_user):
            what = f"{environment.default_user}, as whom the task has its agents, may not run {', '.join(closed)}"
            raise InstallFailed(
                what, where=str(here), fix=f"chmod a+rx {' '.join(str(here / name) for name in closed)}"
            )
        return False
    with tempfile.TemporaryDirectory(prefix="bzb-programs-") as home:
        for name in programs.sha256:
            await asyncio.to_thread(shutil.copy, here / name, home)
        await environment.upload_dir(home, PROGRAMS)
    check = (
        f"cd {PROGRAMS} && chmod 755 {shlex.join(programs.sha256)} && "
        f"printf %s {shlex.quote(programs.sums)} | sha256sum -c - 2>&1"
    )
    result = await environment.exec(check, timeout_sec=INSTALL_S, user="root")
    if result.return_code:
        said = (result.stdout or result.stderr or "").strip().replace("\n", "; ")
        raise InstallFailed(f"the agents' programs did not arrive whole: {said}", where=PROGRAMS)
    return True
