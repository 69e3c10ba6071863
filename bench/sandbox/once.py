"""A sandbox for a plain function: one for a block, and one for a single program. Light: a plan loads this."""

from __future__ import annotations

import os
import select
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from bench.sandbox import fd
from bench.sandbox.launch import TRIES, Launch, LaunchError, Tools
from bench.sandbox.layout import ENVIRON, Layout

_PATIENCE_S = 10.0
_LARGEST_ERRORS_BYTES = 10_000
# Memory and files in KiB, time in seconds of the processor's.
_LIMITED = 'ulimit -c 0; ulimit -v {memory}; ulimit -f {output}; ulimit -t {seconds}; exec "$@"'


@dataclass(frozen=True)
class Limits:
    """What a program may use: time of the clock, memory, and what it writes to each of its outputs."""

    seconds: float
    memory_bytes: int
    output_bytes: int


@dataclass(frozen=True)
class Ran:
    """A program's end: `code` is None where its time was over. Of standard error the last part is kept."""

    code: int | None
    out: bytes
    errors: bytes


@contextmanager
def sandbox(tools: Tools) -> Iterator[int]:
    """The host's number of the first process in a sandbox without network, which ends with the block.

    Raises LaunchError, and tries again where a mount of the host's went away meanwhile.
    """
    launch = _launched(tools)
    try:
        assert launch.pid is not None
        yield launch.pid
    finally:
        launch.abort()


def _launched(tools: Tools) -> Launch:
    for tried in range(1, TRIES + 1):
        launch = Launch(tools, Layout())
        try:
            _await(launch)
        except BaseException as error:
            launch.abort()
            if isinstance(error, LaunchError) and error.passes and tried < TRIES:
                continue
            raise
        return launch
    raise AssertionError("the last try returns or raises")


def _await(launch: Launch) -> None:
    news = select.poll()
    news.register(launch.output, select.POLLIN)
    while not launch.advance():
        if not news.poll(_PATIENCE_S * 1000):
            raise LaunchError(f"it wasn't ready after {_PATIENCE_S:g} seconds")


def run(tools: Tools, program: Sequence[str], given: str, limits: Limits) -> Ran:
    """The program's end in a sandbox of its own, with `given` on standard input. Raises LaunchError."""
    files = fd.memory_file(given), fd.memory_file(""), fd.memory_file("")
    ulimits = _LIMITED.format(
        memory=limits.memory_bytes // 1024, output=limits.output_bytes // 1024, seconds=round(limits.seconds)
    )
    try:
        with sandbox(tools) as pid:
            line = [*tools.enter(pid, cwd="/app", network=False), "/bin/bash", "-c", ulimits, "once", *program]
            process = subprocess.Popen(line, stdin=files[0], stdout=files[1], stderr=files[2], env=ENVIRON)
            try:
                code: int | None = process.wait(limits.seconds)
            except subprocess.TimeoutExpired:
                code = None
                process.kill()
            except BaseException:
                process.kill()
                raise
        process.wait()
        errors_bytes = os.fstat(files[2]).st_size
        errors = os.pread(files[2], _LARGEST_ERRORS_BYTES, max(0, errors_bytes - _LARGEST_ERRORS_BYTES))
        return Ran(code, os.pread(files[1], limits.output_bytes, 0), errors)
    finally:
        fd.close(*files)
