"""Whether a loopback port is free, and who holds it if not (public case 36: on IPv4 and on IPv6)."""

from __future__ import annotations

import errno
import os
import shlex
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.processes import HAS_PROC, command_line

LISTENING = "0A"
"""TCP_LISTEN in /proc/net/tcp."""
ENDED = "the last connections of a process that has ended"
"""The kernel keeps them for a minute, and the port with them if that process didn't ask otherwise."""
LOOPBACKS = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))


@dataclass(frozen=True)
class Holder:
    """The process that listens on a port."""

    pid: int | None
    """None: it is another user's, and this one may not look; or it is gone."""
    command: str = ""
    folder: str = ""

    def __str__(self) -> str:
        if self.pid is None:
            return self.command or "another user's process"
        return (
            f"process {self.pid}"
            + (f" ({_on_one_line(self.command)})" if self.command else "")
            + (f" in {_on_one_line(self.folder)}" if self.folder else "")
        )


def _on_one_line(text: str) -> str:
    """What another program chose to be called, without its line ends and control characters."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def taken(port: int) -> bool:
    """Whether something already listens where we would, on 127.0.0.1 or ::1. A family that is absent is free."""
    for family, host in LOOPBACKS:
        try:
            with socket.socket(family, socket.SOCK_STREAM) as trial:
                trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    trial.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                trial.bind((host, port))
                trial.listen(1)
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                return True
            if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                raise
    return False


def holder(port: int) -> Holder:
    """The process that listens on the port."""
    if HAS_PROC and not any(_listening_inodes(port)):
        return Holder(None, ENDED)
    pid = _pid_from_proc(port) if HAS_PROC else _pid_from_lsof(port)
    if pid is None:
        return Holder(None)
    return Holder(pid, shlex.join(command_line(pid))[:120], _folder(pid))


def _pid_from_proc(port: int) -> int | None:
    sockets = {f"socket:[{inode}]" for inode in _listening_inodes(port)}
    for process in Path("/proc").iterdir():
        if process.name.isdecimal() and not sockets.isdisjoint(_open_files(process)):
            return int(process.name)
    return None


def _listening_inodes(port: int) -> Iterator[str]:
    """Of /proc/net/tcp and tcp6: field 1 is the local address in hex, 3 the state, 9 the inode."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = Path(table).read_text(encoding="ascii").splitlines()[1:]
        except FileNotFoundError:
            continue
        for fields in map(str.split, lines):
            if fields[3] == LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                yield fields[9]


def _open_files(process: Path) -> Iterator[str]:
    try:
        for name in os.listdir(process / "fd"):  # noqa: PTH208  (a Path for each would double the scan's time)
            yield os.readlink(f"{process}/fd/{name}")  # noqa: PTH115
    except OSError:
        return  # it ended, or it is another user's


def _folder(pid: int) -> str:
    try:
        return str(Path(f"/proc/{pid}/cwd").readlink())
    except OSError:
        return ""


def _pid_from_lsof(port: int) -> int | None:
    shown = subprocess.run(
        ["lsof", "-nP", f"-iTCP:{port}", "-sTCP:LISTEN", "-t"], capture_output=True, text=True, check=False
    )
    return int(shown.stdout.split()[0]) if shown.stdout.split() else None
