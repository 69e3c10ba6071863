"""What we print, and what happens where it can't be written: the one place for closed pipes, full disks, encodings.

`guard()` is called once, before anything is printed. From then on a failed write ends the command as Invoke's `Exit`
does: without a word for a reader who has seen enough (141, as the shell counts SIGPIPE), else with one line and 1.
What is for a terminal that was closed goes nowhere: its signal (SIGHUP) ends what runs, in order.
Characters that the terminal's encoding lacks are written as `\\u2713`.
"""

from __future__ import annotations

import atexit
import errno
import io
import os
import signal
import sys
from collections.abc import Callable

from invoke import Exit


class Guarded(io.TextIOWrapper):
    """A text stream of the process whose failures end the command."""

    is_terminal = False
    """Noted while it is one: of a terminal that was closed the system says that it is none."""

    def write(self, text: str) -> int:
        self._tried(lambda: super(Guarded, self).write(text))
        return len(text)

    def flush(self) -> None:
        self._tried(super().flush)

    def _tried(self, do: Callable[[], object]) -> None:
        try:
            do()
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        # What is still to be written, also by Python at its end, goes nowhere.
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, self.fileno())
        os.close(null)
        if self.is_terminal and error.errno == errno.EIO:
            return
        if isinstance(error, BrokenPipeError):
            raise Exit(code=128 + signal.SIGPIPE) from None
        raise Exit(f"inv: {self.name.strip('<>')}: can't be written: {error.strerror}", code=1) from None


def guard() -> None:
    """Put guarded streams in the place of the process's own; others, such as a test's, are left alone."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if type(stream) is io.TextIOWrapper:
            setattr(sys, name, _guarded(stream))
    if isinstance(sys.stdout, Guarded):
        atexit.register(_end)


def _guarded(stream: io.TextIOWrapper) -> Guarded:
    stream.flush()
    encoding, line_buffering, write_through = stream.encoding, stream.line_buffering, stream.write_through
    is_terminal = stream.isatty()
    guarded = Guarded(
        stream.detach(),
        encoding=encoding,
        errors="backslashreplace",
        line_buffering=line_buffering,
        write_through=write_through,
    )
    guarded.is_terminal = is_terminal
    return guarded


def _end() -> None:
    """What was printed last is written now, while a failure still has an exit code."""
    try:
        sys.stdout.flush()
    except Exit as error:
        if error.message:
            print(error.message, file=sys.stderr, flush=True)
        os._exit(error.code)
