"""A process is never taken for another, nor its remains for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from bench.processes import ProcessId, age_s, command_line, identify, start_time, wait_until


def sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-IS", "-c", "import time; time.sleep(600)"])


def test_a_living_process_is_identified() -> None:
    own = identify(os.getpid())
    assert own is not None
    assert own.alive()
    assert command_line(own.pid)


def test_the_same_pid_with_another_start_is_another_process() -> None:
    other = ProcessId(os.getpid(), "1")
    assert not other.alive()
    other.signal(signal.SIGKILL)  # reaches nobody
    assert not other.stop()


def test_a_zombie_is_gone() -> None:
    with sleeper() as child:
        process = identify(child.pid)
        assert process is not None
        os.kill(child.pid, signal.SIGKILL)
        assert wait_until(lambda: not process.alive(), 10)  # nobody has reaped it yet
        assert identify(child.pid) is None


def test_stopping_goes_on_to_sigkill() -> None:
    with subprocess.Popen(
        [sys.executable, "-IS", "-c", "import signal,sys; signal.signal(15, 1); print(1, flush=True); signal.pause()"],
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        process = identify(child.pid)
        assert process is not None
        assert process.stop((signal.SIGTERM, 0.05))
        assert child.wait() == -signal.SIGKILL


def test_what_is_no_process_has_no_start_and_no_age() -> None:
    with sleeper() as child:
        child.kill()
    assert start_time(child.pid) is None
    assert age_s(child.pid) is None
    assert command_line(child.pid) == []


def test_an_age_is_in_seconds() -> None:
    with sleeper() as child:
        began = time.monotonic()
        age = age_s(child.pid)
        child.kill()
    assert age is not None
    assert 0 <= age <= time.monotonic() - began + 60
