"""How a job stands with its upstreams: which calls may go out, which wait, and when nobody should go on."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from bench.gateway.backoff import Backoff, Patience
from bench.gateway.protocol import JobNotice
from bench.gateway.refusals import Refused
from bench.gateway.trouble import Trouble

MENTIONED_STEPS = 3
MENTIONED_WAIT_S = 10.0
"""People hear of trouble that lasts for so many steps of the back-off, or has calls wait for so long."""


@dataclass(frozen=True)
class _Reset:
    """When an endpoint is asked again, by the monotonic clock, and why not sooner."""

    at: float
    reason: str


class Standing:
    """One job's. `tell` gets what the whole job should know."""

    def __init__(
        self,
        patience: Patience,
        tell: Callable[[JobNotice], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.patience = patience
        self._tell, self._clock = tell, clock
        self._backoffs: defaultdict[str, Backoff] = defaultdict(lambda: Backoff(patience, clock))
        self._mentioned: set[str] = set()
        self._resets: dict[str, _Reset] = {}
        self._stopped: Refused | None = None

    def backoff(self, endpoint: str) -> Backoff:
        """The endpoint's, shared by all calls of the job."""
        return self._backoffs[endpoint]

    def check(self, endpoint: str) -> None:
        """Raise Refused while no call may go out to the endpoint, and none is kept waiting."""
        if self._stopped is not None:
            raise Refused(self._stopped.status, self._stopped.kind, str(self._stopped))
        if reason := self.limit(endpoint):
            left_s = self._resets[endpoint].at - self._clock()
            raise Refused(429, "upstream_limit", reason, retry_after_s=left_s)

    def limit(self, endpoint: str) -> str:
        """Why the endpoint isn't waited for, empty where it is."""
        reset = self._resets.get(endpoint)
        return reset.reason if reset is not None and reset.at > self._clock() else ""

    def met(self, endpoint: str, step: int, status: int, what: str, trouble: Trouble | None) -> bool:
        """Note how a call that went out at `step` of the back-off ended; whether to make it again.

        `what` is one phrase for people, `status` what the client gets.
        """
        backoff = self.backoff(endpoint)
        if trouble is None:
            backoff.fine(step)
            if not backoff.streak:
                self._mentioned.discard(endpoint)
            return False
        if trouble.kind == "refused":
            self._stop(status, f"{what}: the job is stopped")
            return False
        wait_s, longest_s = trouble.retry_after_s, self.patience.longest_wait_s
        if wait_s is not None and wait_s > longest_s:
            self._wait(endpoint, wait_s, f"{what} and asks to wait longer than longest_wait_s {longest_s:g}")
            return False
        backoff.trouble(step, wait_s)
        if backoff.troubled_s > longest_s:
            self._wait(endpoint, longest_s, f"{what}, and nothing else for longest_wait_s {longest_s:g}")
            return False
        if backoff.streak >= MENTIONED_STEPS or backoff.left_s >= MENTIONED_WAIT_S:
            self._mention(endpoint, f"{what}; its calls wait {math.ceil(backoff.left_s)} s")
        return True

    def _stop(self, status: int, reason: str) -> None:
        if self._stopped is None:
            self._stopped = Refused(status, "upstream_refused", reason)
            self._tell(JobNotice("stopped", reason))

    def _wait(self, endpoint: str, wait_s: float, reason: str) -> None:
        if self.limit(endpoint):
            return
        until = datetime.now(UTC) + timedelta(seconds=math.ceil(wait_s))
        reason = f"{reason}: not before {until:%Y-%m-%d %H:%M:%S} UTC"
        self._resets[endpoint] = _Reset(self._clock() + wait_s, reason)
        self._tell(JobNotice("waiting", reason, until.isoformat(timespec="seconds").replace("+00:00", "Z")))

    def _mention(self, endpoint: str, reason: str) -> None:
        if endpoint not in self._mentioned:
            self._mentioned.add(endpoint)
            self._tell(JobNotice("note", reason))
