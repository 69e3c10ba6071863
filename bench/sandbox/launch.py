"""bubblewrap on its way up, for an event loop as well as for a plain function.

Two of them, one in the other, because one alone is no boundary to a command that nsenter has given every right over its
namespaces, and doesn't always end with us (all tried):

- With one, `mount -o remount,rw,bind /usr` makes the host's `/usr` writable. Here the outer one makes it read-only in
  a mount namespace that the inner one's root has no rights over, and the kernel locks that.
- Where the driver is root, root inside would be the host's: it could write `/proc/sys/kernel/core_pattern`, and read
  what only root may. Here the inner one runs as `nobody`, and root inside is mapped to that user.
- With `--die-with-parent`, a kill of the driver in the moments of a start leaves bubblewrap's child waiting for ever.
  Here the first process of the outer one's PID namespace reads from a pipe that we hold, its lifeline. Whenever we end,
  and however, that process ends; the kernel then ends all below it. Nobody inside can see it, let alone stop it.

The user namespace that commands run in is always the sandbox's own.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.sandbox import fd, layout
from bench.sandbox.layout import Layout

NOBODY = 65534

# Process 1 outside: starts the inner bubblewrap, and ends when that ends or when we do: then its standard input breaks,
# which nothing inside has, or it could be kept from breaking.
_GUARD = 'exec 3<&0; "$@" 3<&- 7>&1 & inner=$!; (read end <&3; kill -9 $inner) & wait $inner'
_INFO_FD = 7
# Process 1 inside: says that everything is mounted, then only collects orphans. Not even root inside can kill it.
_INIT = "echo ready; while :; do read end <> <(:); done"
_READY = b"ready\n"
_ABORT_LIMIT_S = 5.0


@dataclass(frozen=True)
class Tools:
    """The programs of the host that make sandboxes, by absolute path. `drop` says that we are root and step down."""

    bwrap: Path
    nsenter: str
    setpriv: str
    drop: bool

    def launch(self) -> Iterator[str]:
        """The command line up to the arguments of the inner bubblewrap."""
        yield from (str(self.bwrap), "--unshare-pid", "--as-pid-1", "--dev-bind", "/", "/")
        for path in ("/etc", *layout.programs()):
            yield from ("--ro-bind", path, path)
        inner = self.bwrap
        if not layout.read_only(str(self.bwrap)):
            # The wheel's program and libraries may lie in a home that `nobody` can't look into; and every `ps` in the
            # sandbox shows the path that this is started by.
            packages = self.bwrap.parent.parent.parent
            yield from ("--tmpfs", "/tmp", "--ro-bind", str(packages), "/tmp")  # noqa: S108 - its own, and empty
            inner = Path("/tmp") / self.bwrap.relative_to(packages)  # noqa: S108
        if not self.drop:
            # The inner one writes its own map, by its own numbers. (As root's, this /proc would have parts covered, and
            # where parts are covered the kernel lets no user mount another.)
            yield from ("--unshare-user", "--proc", "/proc")
        yield from ("--", "/bin/sh", "-c", _GUARD, "guard")
        if self.drop:
            yield from (self.setpriv, f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--")
        yield str(inner)

    def enter(self, pid: int, *, cwd: str, network: bool) -> list[str]:
        """The command line up to the program, for one that runs in the sandbox whose first process is `pid`.

        Root needs no care for its own id: nsenter sets group and user to the mapped ones as it enters.
        """
        return [
            *(self.nsenter, "-t", str(pid), "-m", "-u", "-i", "-p", "-U"),
            *(() if network else ("-n",)),
            *(() if self.drop else ("--preserve-credentials",)),
            *(f"--wdns={cwd}", "--"),
        ]


TRIES = 3
"""How often a start is tried that a moving mount of the host's failed."""

_MOVED = "Unable to apply mount flags"


class LaunchError(Exception):
    """bubblewrap ended before the sandbox was there; the text is its own."""

    @property
    def passes(self) -> bool:
        """Whether a mount of the host's went away under bubblewrap, which looks at each in turn: a Docker engine's come
        and go with its containers."""
        return _MOVED in str(self)


def steps_down() -> bool:
    """Whether we are root and `nobody` is a user that we can become (in some containers only one user is mapped)."""
    if os.geteuid() != 0:
        return False
    for line in Path("/proc/self/uid_map").read_text().splitlines():
        inside, _, length = map(int, line.split())
        if inside <= NOBODY < inside + length:
            return True
    return False


class Launch:
    """A sandbox that is starting. `advance` until it is ready, then take `process`, `pid` and `lifeline`; or `abort`.

    `output` is what to wait on between two calls of `advance`. When `lifeline` is closed, the sandbox ends.
    """

    def __init__(self, tools: Tools, layout: Layout) -> None:
        self.pid: int | None = None
        self._received = b""
        self._drop = tools.drop
        self.output, told = os.pipe()
        alive, self.lifeline = os.pipe()
        go, self._go = os.pipe()
        # The guard has numbers of one digit for its own use, and would shut what lies there.
        go = fd.out_of_the_way(go)
        self._errors = os.memfd_create("bwrap-errors")
        self._open = {self.output, self.lifeline, self._go, self._errors}
        os.set_blocking(self.output, False)
        files = {path: fd.memory_file(text) for path, text in layout.files.items()}
        inner = [
            *layout.arguments(),
            *(word for path, file in files.items() for word in ("--perms", "0644", "--file", str(file), path)),
            *("--info-fd", str(_INFO_FD)),
            *(("--userns-block-fd", str(go)) if tools.drop else ()),
        ]
        # Not on the command line: every `ps` inside would show all of it, to a model that pays by the token.
        arguments = fd.memory_file("\0".join(inner))
        try:
            self.process = subprocess.Popen(
                [*tools.launch(), "--args", str(arguments), "--", "/bin/bash", "-c", _INIT],
                stdin=alive,
                stdout=told,
                stderr=self._errors,
                # Ours would be readable inside, as the environment of process 1: keys of model providers among it.
                env={},
                pass_fds=(go, arguments, *files.values()),
                start_new_session=True,
            )
        except BaseException:
            fd.close(*self._open)
            raise
        finally:
            fd.close(told, alive, go, arguments, *files.values())

    def advance(self) -> bool:
        """Take in what bubblewrap has said; True when the sandbox is there. Raises LaunchError if it won't be."""
        while True:
            try:
                news = os.read(self.output, 4096)
            except BlockingIOError:
                return False
            if not news:
                raise LaunchError(self._why())
            self._received += news
            if self.pid is None and b"}" in self._received:
                self.pid = self._first_inside()
                if self._drop:
                    self._map(self.pid)
            if self._received.endswith(_READY):
                fd.close(*self._open - {self.lifeline})
                self._open = {self.lifeline}
                return True

    def abort(self) -> None:
        """Undo whatever was started; blocks for the moment that it takes to end."""
        fd.close(*self._open)
        with contextlib.suppress(subprocess.TimeoutExpired):  # on a machine that stands still; it will end
            self.process.wait(_ABORT_LIMIT_S)

    def _first_inside(self) -> int:
        """The host's number of process 1 inside: bubblewrap tells the one that its PID namespace has for it."""
        pid = self.process.pid
        for _ in ("the guard", "the inner bubblewrap, its elder child", "process 1"):
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            if not children:
                raise LaunchError(self._why())
            pid = int(children[0])
        return pid

    def _map(self, pid: int) -> None:
        """Map root inside to `nobody` outside. Written by us, the map leaves setgroups allowed, which nsenter calls."""
        try:
            for name in ("uid_map", "gid_map"):
                Path(f"/proc/{pid}/{name}").write_text(f"0 {NOBODY} 1\n")
        except OSError as error:
            raise LaunchError(f"root can't be mapped to user {NOBODY}: {error.strerror}") from error
        os.write(self._go, b"1")

    def _why(self) -> str:
        code = self.process.wait()
        os.lseek(self._errors, 0, os.SEEK_SET)
        text = os.read(self._errors, 4096).decode(errors="replace").strip()
        return text or f"bubblewrap ended with code {code}"
