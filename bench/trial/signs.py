"""Signs of life of a real team, from the relay and the gateway, and what their absence means. Pure: time comes in.

While a turn runs buzz-acp says so at the relay every three seconds (kind 20002), so that a team at work is never quiet,
however long its model thinks or its command runs (public case 35).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from bench.scoring.outcome import Fault
from bench.trial.calls import Call
from bench.trial.ends import End

QUIET_S = 45.0
"""Longer than buzz-acp waits before it tries a failed turn again (28 to 30 s measured; REFERENCE.md section 6)."""

SCRIPTED_QUIET_S = 10.0
"""A script fails no turn."""

PROBE_S = 8.0
"""A team that gives no sign for so long is looked at in its environment; then after twice as long, and so on."""

MOST_FAILURES = 6
"""Failed calls of an agent in a row: two turns of three attempts each (BUZZ.md section 5)."""

MOST_REJECTIONS = 2
"""Calls of an agent in a row that the upstream takes for wrong: buzz-acp would send the same ten times."""

_PASSING = frozenset({408, 429, 499})


@dataclass
class Signs:
    """What was heard of a team. `clock` gives seconds that never go back."""

    clock: Callable[[], float]
    quiet_after_s: float
    failures: dict[str, list[Call]] = field(default_factory=dict)
    """By agent, its last calls as far as they failed."""
    _heard_at: float | None = None
    _probe_at: float = 0.0
    _pause_s: float = PROBE_S

    def heard(self) -> None:
        """Somebody of the team did something."""
        self._heard_at = self.clock()
        self._pause_s = PROBE_S
        self._probe_at = self._heard_at + PROBE_S

    @property
    def quiet(self) -> bool:
        """Whether nobody has been heard of for so long that nobody will do anything any more."""
        return self._heard_at is not None and self.clock() - self._heard_at >= self.quiet_after_s

    @property
    def wants_a_look(self) -> bool:
        """Whether it is time to see if the processes still live; asking counts as having looked."""
        if self._heard_at is None or self.clock() < self._probe_at:
            return False
        self._pause_s *= 2
        self._probe_at = self.clock() + self._pause_s
        return True

    def take(self, calls: Iterable[Call]) -> End | None:
        """Note calls, and the end where an agent's model fails it again and again."""
        for call in calls:
            if call.outcome != "refused":
                self.heard()
            if call.again:
                continue
            if call.outcome in ("ok", "refused"):
                self.failures.pop(call.agent, None)
                continue
            row = self.failures.setdefault(call.agent, [])
            row.append(call)
            if end := _of_failures(row):
                return end
        return None


def _of_failures(row: list[Call]) -> End | None:
    last = row[-1]
    what = f"{last.agent}: {len(row)} model calls in a row failed, the last with {last.status}"
    if last.reason:
        what += f" ({last.reason})"
    rejected = [call for call in row if 400 <= call.status < 500 and call.status not in _PASSING]
    if len(rejected) == len(row) >= MOST_REJECTIONS:
        return End("fault", what, Fault("upstream_rejected", what))
    if len(row) >= MOST_FAILURES:
        return End("fault", what, Fault("upstream_failed", what))
    return None
