"""A sandbox that doesn't come up leaves nothing; one that is up goes with the process that started it."""

from __future__ import annotations

import asyncio
import gc
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bench.sandbox import launch, probe
from bench.sandbox.instance import Instance
from bench.sandbox.launch import Launch, LaunchError, Tools, steps_down
from bench.sandbox.layout import Layout
from bench.settings import ROOT
from tests.sandbox.conftest import Shell

DRIVER = """
import asyncio
from bench.sandbox import command, probe
from bench.sandbox.command import Command
from bench.sandbox.instance import Instance
from bench.sandbox.layout import Layout

tools = probe.tools()
print("begun", flush=True)

async def main():
    while True:
        async with asyncio.TaskGroup() as group:
            for _ in range(4):
                group.create_task(trial())

async def trial():
    sandbox = await Instance.start(tools, Layout())
    await command.output(sandbox, Command(bash="setsid sleep 300 & (exec setsid sleep 301) & sleep 0.05"))
    await sandbox.stop()

asyncio.run(main())
"""

# Runs the driver for a moment, ends it with a signal, and says what it left that didn't end by itself. Whatever loses
# its parent becomes a child of this process.
WATCHER = """
import ctypes, os, signal, subprocess, sys, time
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
driver = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
driver.stdout.readline()
time.sleep(float(sys.argv[3]))
driver.send_signal(int(sys.argv[2]))
driver.wait()
ends = time.monotonic() + 60
while time.monotonic() < ends:
    try:
        if os.waitpid(-1, os.WNOHANG) == (0, 0):
            time.sleep(0.01)
    except ChildProcessError:
        break
os.execvp("ps", ["ps", "-o", "args=", "--ppid", str(os.getpid())])
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("after_s", [0.004, 0.011, 0.017, 0.05])
def test_nothing_survives_the_driver_whenever_it_ends(number: signal.Signals, after_s: float) -> None:
    """While four sandboxes start, while commands run in them, and while they stop."""
    watched = [sys.executable, "-c", WATCHER, DRIVER, str(int(number)), str(after_s)]
    left = subprocess.run(watched, cwd=ROOT, capture_output=True, text=True, check=False)
    # ps itself is the watcher, so it lists its children: none.
    assert left.stdout == ""


async def test_stop_ends_all_and_is_a_noop_again() -> None:
    sandbox = await Instance.start(probe.tools(), Layout())
    shell = Shell(sandbox)
    await shell.run("setsid sleep 300 & nohup sleep 301 &")
    waiting = asyncio.create_task(shell.run("echo begun > b; exec sleep 302"))
    await shell.run("until [ -s b ]; do sleep 0.01; done")
    first = os.pidfd_open(sandbox.pid)
    await sandbox.stop()
    await sandbox.stop()
    assert select.select([first], [], [], 0)[0]
    os.close(first)
    code, _, _ = await waiting
    assert code


async def test_a_cancelled_stop_stops(shell: Shell) -> None:
    stopping = asyncio.create_task(shell.sandbox.stop())
    await asyncio.sleep(0)
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    assert _ends(shell.sandbox.pid)


def _ends(pid: int) -> bool:
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], 20)[0])
    finally:
        os.close(descriptor)


async def test_a_cancelled_start_leaves_nothing() -> None:
    gc.collect()  # what earlier tests left to it must not close its files meanwhile
    before = set(Path("/proc/self/fd").iterdir())
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    others = set(children.read_text().split())
    for _ in range(4):
        starting = asyncio.create_task(Instance.start(probe.tools(), Layout()))
        await asyncio.sleep(0)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
    assert len(set(Path("/proc/self/fd").iterdir())) == len(before)
    assert set(children.read_text().split()) <= others


async def test_bubblewraps_own_words_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Layout, "arguments", lambda self: ["--unshare-user", "--ro-bind", "/none", "/none"])
    with pytest.raises(LaunchError, match="/none"):
        await Instance.start(probe.tools(), Layout())


MOVED = 'bwrap: Can\'t bind mount /oldroot/ on /newroot/: Unable to apply mount flags: remount "/newroot/x": Invalid'


@pytest.mark.parametrize(("failures", "starts"), [(2, True), (3, False)])
async def test_a_mount_of_the_hosts_that_goes_away_meanwhile_costs_another_try(
    monkeypatch: pytest.MonkeyPatch, failures: int, *, starts: bool
) -> None:
    """As a Docker engine's do. bubblewrap's own words, as they were seen beside one."""
    left = iter(range(failures))
    advance = Launch.advance

    def failing(launch: Launch) -> bool:
        if next(left, None) is not None:
            raise LaunchError(MOVED)
        return advance(launch)

    monkeypatch.setattr(Launch, "advance", failing)
    if starts:
        sandbox = await Instance.start(probe.tools(), Layout())
        assert (await Shell(sandbox).run("echo here"))[1] == "here\n"
        await sandbox.stop()
        left = iter(range(failures))
        probe.tools.cache_clear()
        assert probe.problem() is None
    else:
        with pytest.raises(LaunchError, match="remount"):
            await Instance.start(probe.tools(), Layout())


async def test_a_program_that_is_no_bubblewrap(tmp_path: Path) -> None:
    program = tmp_path / "a" / "b" / "bwrap"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\nexit 7\n")
    program.chmod(0o755)
    with pytest.raises(LaunchError, match="bubblewrap ended with code 7"):
        await Instance.start(Tools(program, "/usr/bin/nsenter", "/usr/bin/setpriv", drop=False), Layout())
    with pytest.raises(OSError, match="none"):
        Launch(Tools(tmp_path / "none", "", "", drop=False), Layout())


@pytest.mark.parametrize(
    ("maps", "stepping"), [("0 0 4294967295\n", True), ("0 1000 1\n1 100000 65535\n", True), ("0 1000 1\n", False)]
)
def test_root_steps_down_where_nobody_is_mapped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, maps: str, *, stepping: bool
) -> None:
    file = tmp_path / "uid_map"
    file.write_text(maps)
    monkeypatch.setattr(launch, "Path", lambda _: file)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert steps_down() is stepping
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert steps_down() is False
