"""Ends everything that one command started, whatever it did to get away: `setsid`, double forks, an empty environment.

Each command runs under a limit that nothing in it can raise again: RLIMIT_LOCKS, which Linux has ignored since 2.4.25,
set to a random number of 62 bits. Every descendant inherits it, and no other process of the machine has it. So the
descendants of *this* command can be told from background processes that an earlier one left, and which must live on.
(A PID namespace for each command would end those as well; a cgroup needs rights that a user rarely has; sessions and
parents are what a daemon sheds.) A process can only lower the limit, and so hide until the sandbox ends: that is how
long any background process may live.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import secrets
import signal
from collections.abc import Iterator
from pathlib import Path

from bench.sandbox import fd
from bench.sandbox.waiting import readable

_RLIMIT_LOCKS = 10  # the resource module has no name for it
_ROUND_S = 0.02


def new_mark() -> int:
    """A limit that no other process has. Where ours is finite (nobody sets it), below that."""
    _, ceiling = resource.getrlimit(_RLIMIT_LOCKS)
    return secrets.randbelow(ceiling - 1 if ceiling != resource.RLIM_INFINITY else 1 << 62) + 1


def marked(command: str, mark: int) -> str:
    """The bash command under the mark; lines keep their numbers. Code 126 where the mark can't be set."""
    return f"ulimit -x {mark} || exit 126; {command}"


async def end(parent: int, parent_fd: int, mark: int, *, limit_s: float) -> bool:
    """Kill what bears the mark, and the children of `parent`, until `parent` (its pidfd) and all of them are gone.

    False when that took longer than `limit_s`, as with a fork bomb: only the sandbox's end ends that.
    """
    deadline = asyncio.get_running_loop().time() + limit_s
    while asyncio.get_running_loop().time() < deadline:
        victims = list(_pinned(parent, mark))
        try:
            for victim in victims:
                _signal(victim, signal.SIGKILL)
            # It stops itself along with a child that was stopped, and would then never reap.
            _signal(parent_fd, signal.SIGCONT)
            async with asyncio.timeout(_ROUND_S):
                for process in (*victims, parent_fd):
                    await readable(process)
        except TimeoutError:
            continue
        finally:
            fd.close(*victims)
        if not victims:
            return True
    return False


def _signal(process: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(process, number)


def _pinned(parent: int, mark: int) -> Iterator[int]:
    """pidfds of the living victims. Looked at again once pinned: a number alone may change hands."""
    for pid in _victims(parent, mark):
        try:
            pinned = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        if pid in _children(parent) or _bears(pid, mark):
            yield pinned
        else:
            os.close(pinned)


def _victims(parent: int, mark: int) -> set[int]:
    pids = (int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit())
    return {pid for pid in pids if _bears(pid, mark)} | _children(parent)


def _bears(pid: int, mark: int) -> bool:
    # prlimit would need a capability that root in a container lacks; this file anybody may read.
    try:
        limits = Path(f"/proc/{pid}/limits").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    line = next((line for line in limits.splitlines() if line.startswith("Max file locks")), "")
    return line.split()[-2:-1] == [str(mark)]


def _children(parent: int) -> set[int]:
    try:
        return {int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()}
    except (FileNotFoundError, ProcessLookupError):
        return set()
