"""One running sandbox: started, entered by commands, stopped with everything in it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal

from bench.sandbox import fd
from bench.sandbox.capture import Pump
from bench.sandbox.launch import TRIES, Launch, LaunchError, Tools
from bench.sandbox.layout import Layout
from bench.sandbox.waiting import readable

_STOP_LIMIT_S = 10.0


class SandboxLost(RuntimeError):
    """The sandbox isn't there, or not any more."""


class Instance:
    """A sandbox that is up. Its first process has the PID `pid` on the host; when that ends, the kernel ends the rest.

    It ends with `stop`, or with us, since its lifeline breaks (see `launch`). Nothing inside can end its first process.
    """

    def __init__(self, tools: Tools, layout: Layout, launch: Launch) -> None:
        assert launch.pid is not None
        self.tools = tools
        self.layout = layout
        self.pid = launch.pid
        self._process = launch.process
        self._lifeline = launch.lifeline
        self._init = os.pidfd_open(self.pid)
        self._monitor = os.pidfd_open(self._process.pid)
        self._lingering: set[Pump] = set()
        self._killed = False
        self._stopping: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, tools: Tools, layout: Layout) -> Instance:
        """A sandbox, once everything in it is mounted. Raises LaunchError with bubblewrap's own words."""
        tries_left = TRIES
        while True:
            launch = Launch(tools, layout)
            tries_left -= 1
            try:
                while not launch.advance():
                    await readable(launch.output)
                return cls(tools, layout, launch)
            except BaseException as error:
                launch.abort()
                if not (isinstance(error, LaunchError) and error.passes and tries_left):
                    raise

    def check(self) -> None:
        """Raise SandboxLost unless it runs. Its PID is safe to enter only while that is so."""
        if self._killed or self._ended():
            raise SandboxLost("the sandbox has ended: it was stopped, or something outside killed it")

    def _ended(self) -> bool:
        ended = select.poll()
        ended.register(self._init, select.POLLIN)
        return bool(ended.poll(0))

    def linger(self, pump: Pump) -> None:
        """Keep reading for the processes that a command left behind, so that none of them is ended by SIGPIPE."""
        self._lingering = {other for other in self._lingering if other.open} | {pump}

    def kill(self) -> None:
        """End everything in it, now; the kernel may still be at it when this returns."""
        self._killed = True
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._init, signal.SIGKILL)

    async def stop(self) -> None:
        """End everything in it and return when it is gone. Again is a no-op; a cancel doesn't keep it from happening.

        Raises TimeoutError when the kernel hasn't ended the processes within ten seconds.
        """
        if self._stopping is None:
            self.kill()
            os.close(self._lifeline)
            self._stopping = asyncio.create_task(self._stop())
        await asyncio.shield(self._stopping)

    async def _stop(self) -> None:
        try:
            async with asyncio.timeout(_STOP_LIMIT_S):
                await readable(self._init)
                await readable(self._monitor)
            self._process.wait()
        finally:
            for pump in self._lingering:
                pump.close()
            fd.close(self._init, self._monitor)
