"""Waiting for file descriptors in asyncio, without a thread and without a transport."""

from __future__ import annotations

import asyncio


async def readable(descriptor: int, or_set: asyncio.Event | None = None) -> None:
    """Return when the descriptor can be read, or the event is set.

    A pidfd can be read when its process has ended, whoever else may still hold the process's files.
    """
    loop = asyncio.get_running_loop()
    ready = or_set or asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)
