"""`shell`: what a command said, shortened in the middle; its own time limit under its own name (public case 7)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from bench.harness import shell


@dataclass
class Said:
    stdout: str | None = "out\n"
    stderr: str | None = None
    return_code: int = 0


class Environment:
    """Runs nothing: says what the test set, after a while."""

    def __init__(self, said: Said | None = None, *, takes_s: float = 0, error: Exception | None = None) -> None:
        self.said, self.takes_s, self.error = said or Said(), takes_s, error
        self.limits: list[int | None] = []

    async def exec(self, command: str, *, timeout_sec: int | None = None) -> Said:
        self.limits.append(timeout_sec)
        await asyncio.sleep(self.takes_s)
        if self.error:
            raise self.error
        return self.said


async def test_exit_code_and_both_outputs_are_shown() -> None:
    environment = Environment(Said("a\n", "b\n", 3))
    assert await shell.run(environment, "x", None) == "exit code: 3\nstdout:\na\n\nstderr:\nb\n"
    assert environment.limits == [120]


async def test_a_long_output_keeps_its_head_and_its_tail() -> None:
    said = await shell.run(Environment(Said("H" * 20_000 + "T" * 20_000)), "x", None)
    assert "[… 16000 characters left out …]" in said
    assert said.count("H") == shell.HEAD_CHARS
    assert said.count("T") == shell.TAIL_CHARS


@pytest.mark.parametrize(("asked", "given"), [(5.4, 5), (0.01, 1), (10_000, 600)])
async def test_a_limit_is_kept_in_bounds(asked: float, given: int) -> None:
    environment = Environment()
    await shell.run(environment, "x", asked)
    assert environment.limits == [given]


async def test_a_command_that_hits_its_own_limit_says_so_with_both_numbers() -> None:
    environment = Environment(takes_s=1.05, error=RuntimeError("Command timed out after 1 seconds"))
    with pytest.raises(shell.CommandTimeout, match=r"command timeout: stopped after 1\.\d s; its limit was 1 s"):
        await shell.run(environment, "sleep 2", 1)


async def test_another_failure_of_the_environment_is_no_timeout() -> None:
    with pytest.raises(RuntimeError, match="container is gone"):
        await shell.run(Environment(error=RuntimeError("container is gone")), "x", None)
