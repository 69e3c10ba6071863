"""The gate for trials that start their containers."""

from __future__ import annotations

import asyncio
import os

import pytest

from bench.docker.starts import Starts, most
from bench.settings import Settings


@pytest.mark.parametrize("ending", ["agent-start", "cancel", "end"])
async def test_never_more_than_so_many_trials_are_starting(ending: str) -> None:
    """Sixteen trials at once, two of them starting (public case 44)."""
    gate, starting, most_seen = Starts(2), 0, 0

    async def trial(name: str) -> None:
        nonlocal starting, most_seen
        await gate.on_event("start", name)
        await gate.on_event("environment-start", name)
        starting += 1
        most_seen = max(most_seen, starting)
        await asyncio.sleep(0)
        starting -= 1
        await gate.on_event(ending, name)
        await gate.on_event("end", name)

    await asyncio.gather(*(trial(f"t{number}") for number in range(16)))
    assert most_seen == 2


async def test_a_trial_that_is_cancelled_while_it_waits_takes_no_place() -> None:
    gate = Starts(1)
    await gate.on_event("environment-start", "first")
    waiting = asyncio.create_task(gate.on_event("environment-start", "second"))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await gate.on_event("cancel", "second")
    await gate.on_event("agent-start", "first")
    async with asyncio.timeout(5):
        await gate.on_event("environment-start", "third")


def test_how_many_is_a_setting_or_the_processors() -> None:
    assert most(Settings(docker_starts=7)) == 7
    assert most(Settings()) == max(2, os.cpu_count() or 1)
