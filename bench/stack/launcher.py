"""Becomes a program of PostgreSQL, which refuses to be root: `python -IS launcher.py MODE PARENT PROGRAM …`.

MODE is `plain`, `userns:UID` (root is that user in an own user namespace: files stay the caller's, and no user is
added to the machine) or `drop:UID` (root becomes that user). PARENT is 0, or the pid whose death ends the
program with SIGINT. Runs in a fresh interpreter with one thread: neither may follow the fork of a threaded one.
Source: MEASURED.md section 1.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(mode: str, parent: int, command: list[str]) -> None:
    """Replace this process with the command. Raises OSError where the machine forbids the mode."""
    kind, _, uid_text = mode.partition(":")
    if kind == "userns":
        uid, gid = os.getuid(), os.getgid()
        os.unshare(os.CLONE_NEWUSER)
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{uid_text} {uid} 1")
        _write("/proc/self/gid_map", f"{uid_text} {gid} 1")
    elif kind == "drop":
        uid = int(uid_text)
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    if parent:
        # After any change of identity, which would clear it; the parent may have died before it was set.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)
        if os.getppid() != parent:
            sys.exit("the parent is gone")
    os.execv(command[0], command)  # noqa: S606  (no shell is the point)


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:  # noqa: PTH123  (pathlib would double this interpreter's start)
        file.write(text)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
