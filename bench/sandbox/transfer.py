"""Files in and out, as tar through the sandbox: one process each, and never by a path of the host's.

`/proc/PID/root` would be quicker, but a link that an agent has made would lead out of the sandbox there.
"""

from __future__ import annotations

import asyncio
import posixpath
import shutil
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import IO

from harbor.environments.tar_transfer import tar_pack_succeeded

from bench.sandbox import command
from bench.sandbox.capture import Capture
from bench.sandbox.command import Command
from bench.sandbox.context import Member
from bench.sandbox.instance import Instance

LIMIT_BYTES = 1 << 30
"""The most that one download brings out: an agent may leave a sparse file of a terabyte."""


class TransferError(RuntimeError):
    """Files could not be brought in or out; says which, and what tar said."""


async def upload(sandbox: Instance, members: Sequence[Member]) -> None:
    """Bring the members in, in this order; directories above them are made, modes and links kept, owner root."""
    with tempfile.TemporaryFile() as archive:
        await asyncio.to_thread(_pack, archive, members)
        archive.seek(0)
        tar = ("tar", "-xf", "-", "-C", "/", "--no-same-owner", "--no-overwrite-dir", "--keep-directory-symlink")
        code, _, errors = await command.output(sandbox, Command(program=tar), stdin=archive.fileno())
    if code:
        targets = ", ".join(member.target for member in members)
        raise TransferError(f"can't bring {targets} into the sandbox: {errors.strip()}")


async def download_file(sandbox: Instance, source: str, target: Path, *, limit: int = LIMIT_BYTES) -> None:
    """Bring the contents of one file out; a link is followed inside."""
    with tempfile.TemporaryFile() as content:
        code, errors = await _receive(sandbox, ("cat", "--", source), content, limit)
        if code:
            raise TransferError(f"can't bring {source} out of the sandbox: {errors}")
        await asyncio.to_thread(_write, content, target)


async def download_directory(sandbox: Instance, source: str, target: Path, *, limit: int = LIMIT_BYTES) -> list[str]:
    """Bring out what is in a directory, over what is in `target`. Returns what was left behind, and why.

    Devices, pipes and sockets stay, and links that could lead out of `target`.
    """
    with tempfile.TemporaryFile() as archive:
        code, errors = await _receive(sandbox, ("tar", "-cf", "-", "-C", source, "."), archive, limit)
        if not tar_pack_succeeded(code, stderr=errors):
            raise TransferError(f"can't bring {source} out of the sandbox: {errors}")
        return await asyncio.to_thread(_unpack, archive, target)


async def _receive(sandbox: Instance, program: Sequence[str], file: IO[bytes], limit: int) -> tuple[int, str]:
    received = 0

    def take(data: bytes) -> None:
        nonlocal received
        received += len(data)
        if received > limit:
            raise TransferError(f"{program[-1]}: more than {limit} bytes to bring out of the sandbox")
        file.write(data)

    errors = Capture()
    code = await command.run(sandbox, Command(program=program), take, errors.feed)
    file.seek(0)
    return code, errors.text().strip()


def _pack(archive: IO[bytes], members: Sequence[Member]) -> None:
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for member in members:
            inside = posixpath.normpath("/" + member.target).lstrip("/") or "."
            if member.source is None:
                directory = tarfile.TarInfo(inside)
                directory.type, directory.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(directory)
            else:
                tar.add(member.source, arcname=inside, filter=_owned_by_root)


def _owned_by_root(info: tarfile.TarInfo) -> tarfile.TarInfo:
    return info.replace(uid=0, gid=0, uname="root", gname="root", deep=False)


def _write(content: IO[bytes], target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as file:
        shutil.copyfileobj(content, file)


def _unpack(archive: IO[bytes], target: Path) -> list[str]:
    target.mkdir(parents=True, exist_ok=True)
    refused: list[str] = []
    with tarfile.open(fileobj=archive, mode="r:") as tar:
        for info in tar:
            try:
                if (info.issym() or info.islnk()) and not _descends(info.linkname):
                    raise tarfile.LinkOutsideDestinationError(info, info.linkname)
                tar.extract(info, target, filter="data")
            except (tarfile.FilterError, OSError) as error:
                refused.append(f"{info.name}: {error}")
    return refused


def _descends(link: str) -> bool:
    """Whether a link can lead only downwards: no chain of such links leaves the directory they are in.

    Stricter than tarfile's own filter, whose check of links could be fooled in some versions of Python.
    """
    path = PurePosixPath(link)
    return not path.is_absolute() and ".." not in path.parts
