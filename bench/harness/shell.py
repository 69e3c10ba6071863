"""`shell`: one command in the task's environment, through Harbor's `exec`. Each clock has its own name (case 7)."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

DEFAULT_TIMEOUT_S = 120.0
LONGEST_TIMEOUT_S = 600.0
"""As Buzz's own shell tool has them (BUZZ.md section 6)."""

STOP_GRACE_S = 10.0
"""How much longer than its own limit a command is waited for: environments stop it themselves."""

HEAD_CHARS, TAIL_CHARS = 8_000, 16_000
"""What a model sees of a long output: its beginning and its end."""


class Executed(Protocol):
    """Harbor's ExecResult."""

    @property
    def stdout(self) -> str | None: ...
    @property
    def stderr(self) -> str | None: ...
    @property
    def return_code(self) -> int: ...


class Environment(Protocol):
    """The part of Harbor's BaseEnvironment that commands need."""

    async def exec(self, command: str, *, timeout_sec: int | None = None) -> Executed: ...


class CommandTimeout(Exception):
    """A command ran into its own limit: not the trial's, not the model's."""

    def __init__(self, elapsed_s: float, limit_s: float) -> None:
        self.elapsed_s, self.limit_s = elapsed_s, limit_s
        super().__init__(
            f"command timeout: stopped after {elapsed_s:.1f} s; its limit was {limit_s:g} s "
            f"(`timeout_s` of this call, at most {LONGEST_TIMEOUT_S:g})"
        )


async def run(environment: Environment, command: str, timeout_s: float | None) -> str:
    """What the command said, with its exit code. Raises CommandTimeout, or what the environment raises."""
    limit_s = round(min(max(timeout_s or DEFAULT_TIMEOUT_S, 1.0), LONGEST_TIMEOUT_S))
    began = time.monotonic()
    try:
        async with asyncio.timeout(limit_s + STOP_GRACE_S):
            result = await environment.exec(command, timeout_sec=limit_s)
    except Exception as error:
        elapsed_s = time.monotonic() - began
        # Harbor's environments have no exception of their own for it: Docker raises RuntimeError, others TimeoutError.
        if elapsed_s >= limit_s:
            raise CommandTimeout(elapsed_s, limit_s) from error
        raise
    parts = [f"exit code: {result.return_code}"]
    for name, text in (("stdout", result.stdout), ("stderr", result.stderr)):
        if text:
            parts.append(f"{name}:\n{shorten(text)}")
    return "\n".join(parts)


def shorten(text: str) -> str:
    """The text, or its head and tail with what was left out between them."""
    left_out = len(text) - HEAD_CHARS - TAIL_CHARS
    if left_out <= 0:
        return text
    return f"{text[:HEAD_CHARS]}\n[… {left_out} characters left out …]\n{text[-TAIL_CHARS:]}"
