"""How much one key may ask of the relay in a time, by Buzz's own variables (BUZZ.md section 1). Unset there is none.

Frames are EVENT, REQ and COUNT of all connections of a key, messages the EVENTs among them, calls those of the HTTP
bridge. A key whose owner is proven is an agent. The clock comes in as an argument.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

PREFIX = "BUZZ_RATE_LIMIT_"
MINUTE_S, BURST_S = 60, 5
MOST_WINDOWS = 10_000
"""Of keys that asked lately; those that are over are forgotten beyond it."""

type What = Literal["frame", "message", "call"]

VARIABLES: Mapping[tuple[What, bool], str] = {
    ("frame", False): "HUMAN_WS_EVENTS_PER_SEC",
    ("frame", True): "HUMAN_WS_EVENTS_PER_SEC",
    ("message", False): "HUMAN_MESSAGES_PER_MIN",
    ("message", True): "AGENT_STANDARD_MESSAGES_PER_MIN",
    ("call", False): "HUMAN_API_CALLS_PER_MIN",
    ("call", True): "AGENT_STANDARD_API_CALLS_PER_MIN",
}
"""By what is asked and whether an agent asks. Frames are counted over five seconds, for all alike."""


def refusal(seconds: int) -> str:
    """The text that tells a client to wait."""
    return f"rate-limited: quota exceeded; retry in {seconds}s"


@dataclass
class _Window:
    until: float
    count: int = 0


@dataclass
class Limits:
    """The limits in force, and what was asked in the windows that are open. `most` lacks what has none."""

    most: Mapping[tuple[What, bool], int] = field(default_factory=dict)
    clock: Callable[[], float] = time.monotonic
    _windows: dict[tuple[str, What], _Window] = field(default_factory=dict)

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Limits:
        """As the variables say. Raises ValueError naming one that is no whole number above zero."""
        most: dict[tuple[What, bool], int] = {}
        for key, name in VARIABLES.items():
            given = environ.get(PREFIX + name)
            if given is None:
                continue
            if not given.isdecimal() or int(given) < 1:
                raise ValueError(f"{PREFIX}{name} is {given!r}, and no whole number above zero")
            most[key] = int(given) * (BURST_S if key[0] == "frame" else 1)
        return cls(most)

    def wait_s(self, public: str, what: What, *, agent: bool) -> int:
        """In how many whole seconds the key may ask again; 0 where it may now, which is counted."""
        most = self.most.get((what, agent))
        if most is None:
            return 0
        now = self.clock()
        window = self._windows.get((public, what))
        if window is None or window.until <= now:
            self._forget(now)
            window = self._windows[public, what] = _Window(now + (BURST_S if what == "frame" else MINUTE_S))
        if window.count >= most:
            return max(1, math.ceil(window.until - now))
        window.count += 1
        return 0

    def _forget(self, now: float) -> None:
        if len(self._windows) > MOST_WINDOWS:
            self._windows = {key: window for key, window in self._windows.items() if window.until > now}
