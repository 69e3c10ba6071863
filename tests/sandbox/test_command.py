"""A command gives back what it printed and how it ended; what it leaves behind lives on, unless it was cut short."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from bench.sandbox import command, reaper
from bench.sandbox.command import Command, CommandTimeout
from bench.sandbox.instance import SandboxLost
from bench.sandbox.layout import ENVIRON
from tests.sandbox.conftest import Shell

# Ways in which a process gets away from its parent, its session, its environment and its PID namespace.
ESCAPES = "(setsid bash -c 'sleep 301 & env -i sleep 302 & disown' &) ; unshare -pf sleep 303 & nohup sleep 304 &"


async def test_output_and_code(shell: Shell) -> None:
    assert await shell.run("echo out; echo err >&2; exit 3") == (3, "out\n", "err\n")


async def test_a_signal_counts_as_128_and_its_number(shell: Shell) -> None:
    code, _, _ = await shell.run("kill -TERM $$")
    assert code == 143


async def test_lines_keep_their_numbers(shell: Shell) -> None:
    _, _, errors = await shell.run("nonsense-1\n\nnonsense-3")
    assert [line.split(":")[1] for line in errors.splitlines()] == [" line 1", " line 3"]


async def test_a_broken_command_line_is_bashs_to_explain(shell: Shell) -> None:
    code, _, errors = await shell.run("echo (")
    assert code == 2
    assert "syntax error" in errors


async def test_standard_streams_can_be_opened_by_name(shell: Shell) -> None:
    assert await shell.run("echo a > /dev/stdout; echo b >&2; echo c > /dev/stderr") == (0, "a\n", "b\nc\n")


async def test_standard_input_is_empty(shell: Shell) -> None:
    assert await shell.say("cat | wc -c") == "0"


async def test_a_directory_that_is_missing_is_named(shell: Shell) -> None:
    code, _, errors = await command.output(shell.sandbox, Command(bash="true", cwd="/none", environ=ENVIRON))
    assert code
    assert "No such file or directory" in errors


async def test_the_hosts_nsenter_never_sees_what_would_make_it_load_code(shell: Shell, tmp_path: Path) -> None:
    evil = tmp_path / "evil.so"
    evil.write_text("not a library")
    asked = Command(bash="echo $LD_PRELOAD-$LD_LIBRARY_PATH-$A", environ={**ENVIRON, "LD_PRELOAD": str(evil), "A": "1"})
    assert "LD_PRELOAD" not in asked.outside()
    _, out, errors = await command.output(shell.sandbox, asked)
    assert out == f"{evil}--1\n"
    # The shell inside complains. On the host the file is there, and would have been found invalid.
    assert set(errors.splitlines()) == {
        f"ERROR: ld.so: object '{evil}' from LD_PRELOAD cannot be preloaded (cannot open shared object file): ignored."
    }


async def test_what_a_command_leaves_in_the_background_lives_on(shell: Shell) -> None:
    code, out, _ = await shell.run("(while sleep 0.01; do echo tick; echo tick >> /app/ticks; done) & echo started")
    assert (code, out.split()[0]) == (0, "started")
    # It still writes to the pipe that nobody waits for, and isn't ended by that.
    await shell.say("until [ -e ticks ] && [ $(wc -l < ticks) -gt 3 ]; do sleep 0.01; done")


@pytest.mark.parametrize("ending", ["true", "sleep 300", "kill -STOP $$"])
async def test_after_a_timeout_nothing_of_the_command_is_left(shell: Shell, ending: str) -> None:
    await shell.say("setsid sleep 200 >/dev/null 2>&1 &")
    line = f"{ESCAPES} echo partial; {ending}; sleep 305"
    with pytest.raises(CommandTimeout) as late:
        await shell.run(line, timeout_s=0.5)
    assert str(late.value) == "Command timed out after 0.5 seconds"
    assert late.value.limit_s == 0.5 <= late.value.elapsed_s
    assert shell.living() == ["sleep 200"]


async def test_the_time_is_told_in_whole_seconds_as_harbor_does() -> None:
    assert str(CommandTimeout(30, 30.1)) == "Command timed out after 30 seconds"


async def test_after_a_cancel_nothing_of_the_command_is_left(shell: Shell) -> None:
    await shell.say("setsid sleep 200 >/dev/null 2>&1 &")
    running = asyncio.create_task(shell.run(f"{ESCAPES} touch /app/begun; sleep 305"))
    await shell.say("until [ -e /app/begun ]; do sleep 0.01; done")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert shell.living() == ["sleep 200"]


async def test_a_command_cancelled_as_it_starts_is_gone_as_well(shell: Shell) -> None:
    for _ in range(5):
        running = asyncio.create_task(shell.run("sleep 305"))
        await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert shell.living() == []


async def test_what_cannot_be_killed_in_time_takes_the_sandbox_along(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a fork bomb couldn't, which nobody wants to have on the machine that runs the tests."""
    limits = [0.0]
    end = reaper.end

    async def impatient(parent: int, parent_fd: int, mark: int, *, limit_s: float) -> bool:
        return await end(parent, parent_fd, mark, limit_s=limits.pop() if limits else limit_s)

    monkeypatch.setattr(reaper, "end", impatient)
    with pytest.raises(CommandTimeout):
        await shell.run("sleep 305", timeout_s=0.1)
    with pytest.raises(SandboxLost):
        await shell.run("true")


async def test_commands_run_side_by_side(shell: Shell) -> None:
    await shell.say("mkfifo a b")
    first, second = await asyncio.gather(shell.say("echo 1 > a; cat b"), shell.say("cat a; echo 2 > b"))
    assert (first, second) == ("2", "1")


async def test_a_sink_that_raises_ends_the_command(shell: Shell) -> None:
    def full(data: bytes) -> None:
        raise ValueError("full")

    with pytest.raises(ValueError, match="full"):
        await command.run(shell.sandbox, Command(bash="yes", environ=ENVIRON), full, full)
    assert shell.living() == []


async def test_no_descriptor_of_ours_is_left(shell: Shell) -> None:
    await shell.say("true")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        await shell.run("echo x; false")
        with pytest.raises(CommandTimeout):
            await shell.run("sleep 305", timeout_s=0.05)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


async def test_no_command_can_end_the_sandbox(shell: Shell) -> None:
    await shell.run("kill -9 1; kill -STOP 1; kill -9 -1; echo x > /proc/1/fd/63")
    assert await shell.say("cat /proc/1/comm") == "bash"


async def test_killed_from_outside_the_sandbox_is_lost(shell: Shell) -> None:
    os.kill(shell.sandbox.pid, signal.SIGKILL)
    with pytest.raises(SandboxLost) as lost:
        for _ in range(100):
            await shell.run("true")
    assert str(lost.value) == "the sandbox has ended: it was stopped, or something outside killed it"


async def test_orphans_are_collected(shell: Shell) -> None:
    await shell.run("for i in 1 2 3; do (setsid sh -c 'sleep 0.02 & exit' &); done")
    await shell.run("while pgrep -x sleep; do sleep 0.01; done", timeout_s=20)
    assert await shell.say("cut -d' ' -f3 /proc/[0-9]*/stat | grep -c Z || true") == "0"
