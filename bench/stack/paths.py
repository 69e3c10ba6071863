"""Where the stack keeps things: logs in the state directory, sockets in a short private one."""

from __future__ import annotations

import contextlib
import json
import os
import re
from pathlib import Path

from bench.errors import MachineLacks
from bench.places import door_dir, socket_name

LONGEST_SOCKET_PATH = 103
"""Bytes: Linux takes 107, macOS 103."""
PLAIN = r"[\w./+-]*"
"""What neither libpq nor PostgreSQL's settings would need quoted."""
LONGEST_SOCKET_NAME = "/.s.PGSQL.5432"


def socket_dir(state_dir: Path) -> Path:
    """The directory of the state's unix sockets; that of a stack left running, if one was.

    XDG_RUNTIME_DIR differs between a login and, say, cron: two of them must still find one stack.
    """
    name = socket_name(state_dir)
    used = _in_use(state_dir)
    if used is not None and used.name == name and used.is_dir():
        return used
    given = os.environ.get("XDG_RUNTIME_DIR", "")
    fits = (
        re.fullmatch(PLAIN, given) and len(os.fsencode(f"{given}/{name}{LONGEST_SOCKET_NAME}")) <= LONGEST_SOCKET_PATH
    )
    if given and fits and os.access(given, os.W_OK | os.X_OK):
        return Path(given) / name
    return Path("/tmp") / name  # noqa: S108  (made private and checked by `make_own`)


def make_door_dir(state_dir: Path) -> Path:
    """`door_dir`, which containers' users may enter, below one that other users of this host may not.

    Raises MachineLacks where that is somebody else's.
    """
    inner = door_dir(state_dir)
    make_own(inner.parent)
    return make_own(inner, mode=0o755)


def remove_door_dir(state_dir: Path) -> None:
    """Remove it with the sockets that killed jobs left, when no job runs."""
    inner = door_dir(state_dir)
    with contextlib.suppress(OSError):
        for path in inner.glob("*.sock"):
            path.unlink()
        inner.rmdir()
        inner.parent.rmdir()


def _in_use(state_dir: Path) -> Path | None:
    """Where stack.json says that the gateway's control socket is."""
    try:
        known = json.loads((state_dir / "stack.json").read_text(encoding="utf-8"))
        return Path(known["gateway_control"]).parent
    except (OSError, ValueError, RecursionError, LookupError, TypeError):
        return None


def database_places(state_dir: Path, mode: str) -> tuple[Path, Path]:
    """PostgreSQL's data directory and its sockets' one; see `pgprograms.launch_mode` for the mode.

    In the state directory, except where root must run it as another user, who can't reach that.
    """
    sockets = socket_dir(state_dir)
    if not mode.startswith("drop:"):
        return state_dir / "pg18", sockets
    home = Path("/var/tmp") / sockets.name  # noqa: S108  (made private and checked by `make_own`)
    return home / "pg18", home / "s"


def make_own(path: Path, *, mode: int = 0o700) -> Path:
    """The directory, made if missing, where others can make some too. Raises MachineLacks if it is theirs."""
    try:
        path.mkdir(mode=mode)
    except FileExistsError:
        found = path.lstat()
        if not path.is_dir() or path.is_symlink() or found.st_uid != os.getuid():
            raise MachineLacks.of(
                str(path), "it isn't a directory of yours, and the stack needs it", "remove it"
            ) from None
    path.chmod(mode)
    return path


def log(state_dir: Path, service: str) -> Path:
    """The service's log."""
    return state_dir / "logs" / f"{service}.log"
