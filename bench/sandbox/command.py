"""One command in a sandbox: from the spawn to its end, in time or not, and with nothing left of it if not."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic

from bench.sandbox import reaper
from bench.sandbox.capture import Capture, Pump
from bench.sandbox.instance import Instance
from bench.sandbox.layout import PATH
from bench.sandbox.waiting import readable

_END_LIMIT_S = 5.0

# The host's nsenter reads these before it enters: a task must not choose what code it loads. `env` sets them inside.
_LOADER = ("LD_", "GLIBC_", "MALLOC_", "GCONV_", "LOCPATH", "NLSPATH", "LIBMOUNT_")


class CommandTimeout(RuntimeError):
    """A command's own limit passed; everything that it started is gone. The text is that of Harbor's environments."""

    def __init__(self, limit_s: float, elapsed_s: float) -> None:
        super().__init__(f"Command timed out after {limit_s:g} seconds")
        self.limit_s = limit_s
        self.elapsed_s = elapsed_s
        self.stdout = self.stderr = ""


@dataclass(frozen=True)
class Command:
    """What to run: `bash` is a command line, `program` is run as it stands."""

    bash: str | None = None
    program: Sequence[str] = ()
    cwd: str = "/"
    environ: Mapping[str, str] = field(default_factory=lambda: {"PATH": PATH})
    timeout_s: float | None = None

    def line(self, sandbox: Instance, mark: int) -> list[str]:
        """The command line on the host."""
        enter = sandbox.tools.enter(sandbox.pid, cwd=self.cwd, network=sandbox.layout.network)
        inside = [f"{name}={value}" for name, value in self.environ.items() if name.startswith(_LOADER)]
        program = self.program if self.bash is None else ["/bin/bash", "-c", reaper.marked(self.bash, mark)]
        return [*enter, *(("/usr/bin/env", *inside) if inside else ()), *program]

    def outside(self) -> dict[str, str]:
        """The environment of the command line on the host."""
        return {name: value for name, value in self.environ.items() if not name.startswith(_LOADER)}


async def run(
    sandbox: Instance,
    command: Command,
    out: Callable[[bytes], None],
    err: Callable[[bytes], None],
    *,
    stdin: int | None = None,
) -> int:
    """The command's exit code (128 + N where signal N ended it). Its processes in the background live on.

    Raises CommandTimeout after `timeout_s` seconds. Then, and when this is cancelled or a sink raises, everything
    that the command started is killed and gone, background and all, before this returns.
    """
    sandbox.check()
    mark = reaper.new_mark()
    ready = asyncio.Event()
    pumps = Pump(out, ready), Pump(err, ready)
    began = monotonic()
    process = _spawn(command.line(sandbox, mark), command.outside(), stdin, pumps)
    ended = os.pidfd_open(process.pid)
    for pump in pumps:
        pump.begin()
    try:
        async with asyncio.timeout(command.timeout_s) as clock:
            await readable(ended, ready)
        _raise_errors(pumps)
    except BaseException as error:
        await asyncio.shield(asyncio.create_task(_end(sandbox, process, ended, mark, pumps)))
        if isinstance(error, TimeoutError) and clock.expired():
            assert command.timeout_s is not None
            raise CommandTimeout(command.timeout_s, monotonic() - began) from None
        raise
    code = process.wait()
    os.close(ended)
    for pump in pumps:
        if pump.finish():
            sandbox.linger(pump)
    _raise_errors(pumps)
    return code if code >= 0 else 128 - code


def _spawn(
    line: Sequence[str], environ: Mapping[str, str], stdin: int | None, pumps: tuple[Pump, Pump]
) -> subprocess.Popen[bytes]:
    """Start it. No asyncio transport, which would wait for the pipes' ends; no preexec_fn, which would fork slowly."""
    try:
        return subprocess.Popen(
            line,
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            stdout=pumps[0].write,
            stderr=pumps[1].write,
            env=environ,
            start_new_session=True,
        )
    except BaseException:
        for pump in pumps:
            pump.discard()
        raise


def _raise_errors(pumps: Sequence[Pump]) -> None:
    for pump in pumps:
        if pump.error:
            raise pump.error


async def _end(
    sandbox: Instance, process: subprocess.Popen[bytes], ended: int, mark: int, pumps: Sequence[Pump]
) -> None:
    if not await reaper.end(process.pid, ended, mark, limit_s=_END_LIMIT_S):
        sandbox.kill()
        if not await reaper.end(process.pid, ended, mark, limit_s=_END_LIMIT_S):
            process.kill()
            await readable(ended)
    process.wait()
    os.close(ended)
    for pump in pumps:
        pump.finish()
        pump.close()


async def output(sandbox: Instance, command: Command, *, stdin: int | None = None) -> tuple[int, str, str]:
    """Exit code, standard output and standard error, the middle of each left out where it is too long."""
    out, err = Capture(), Capture()
    code = await run(sandbox, command, out.feed, err.feed, stdin=stdin)
    return code, out.text(), err.text()
