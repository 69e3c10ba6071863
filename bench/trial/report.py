"""`agent_result.metadata["buzzbench"]` of a trial's result.json, filled as things happen (ARCHITECTURE, "Harbor")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bench.condition import trust_domain
from bench.scoring.outcome import NEVER_PLAYED
from bench.trial.ends import End
from bench.trial.meter import Meter
from bench.trial.provision import Cast
from bench.trial.steps import TaskStep
from bench.trial.terms import Terms
from bench.trial.timings import Timings

if TYPE_CHECKING:
    from harbor.models.agent.context import AgentContext

    from bench.condition import Condition
    from bench.gateway.protocol import AgentUsage
    from bench.trial.selfreport import Check


KEY = "buzzbench"
"""Where in the agent's metadata ours is."""


def unstarted(terms: Terms, end: End, timings: Timings) -> dict[str, Any]:
    """The metadata of a trial that had no session: all that is known is why."""
    facts: dict[str, Any] = {
        "condition": None,
        "condition_sha256": terms.condition_sha256,
        "rehearsal": terms.rehearsal,
        "replay": terms.replay_sha256,
        "channel": None,
        "labels": [],
        "fault": asdict(end.fault) if end.fault else None,
        "ended": end.ended,
        "reason": end.reason,
        "evidence_sha256": None,
        "agents": {},
        "timings": timings.seconds,
    }
    return {KEY: facts}


class Report:
    """The facts of one trial, or of one step of its task, in Harbor's context from the first moment: a cancel or a
    timeout keeps them.
    """

    def __init__(
        self,
        context: AgentContext,
        condition: Condition,
        terms: Terms,
        timings: Timings,
        step: TaskStep | None = None,
        before: Mapping[str, AgentUsage] | None = None,
    ) -> None:
        """`before` is what the agents had used in earlier steps of the task."""
        self.meter = Meter(context, condition, before)
        self._facts: dict[str, Any] = {
            "condition": condition.name,
            "condition_sha256": condition.sha256,
            "rehearsal": terms.rehearsal,
            "replay": terms.replay_sha256,
            "trust_domain": trust_domain(condition.harnesses),
            "step": step and asdict(step),
            "channel": None,
            "labels": [],
            "fault": None,
            "ended": None,
            "reason": "",
            "done": None,
            "programs": None,
            "evidence_sha256": None,
            "agents": self.meter.agents,
            "timings": timings.seconds,
        }
        context.metadata = {**(context.metadata or {}), KEY: self._facts}

    def cast(self, cast: Cast) -> None:
        """Who plays, and where."""
        self._facts["channel"] = cast.channel

    def programs(self, brought: Mapping[str, Any]) -> None:
        """What real agents run, and from what it was built."""
        self._facts["programs"] = dict(brought)

    def end(self, end: End) -> None:
        """How the work ended; the fault comes first, for whatever follows may fail, too."""
        self._facts["fault"] = asdict(end.fault) if end.fault else None
        self._facts["ended"], self._facts["reason"] = end.ended, end.reason
        self.label(*end.labels)

    def booked(self, used: Mapping[str, AgentUsage], before: Mapping[str, AgentUsage]) -> None:
        """What the gateway has counted by now, and had before: where no call went out, nobody has played."""
        sent, sent_before = (sum(one.sent_calls for one in counted.values()) for counted in (used, before))
        if self._facts["fault"] is None and sent == sent_before:
            self.label(NEVER_PLAYED)

    def done(self, event_id: str, seen_at: float) -> None:
        """The event that said that the work is done, and when it was seen (Unix seconds)."""
        self._facts["done"] = {"event": event_id, "seen_at": seen_at}

    def label(self, *labels: str) -> None:
        """Add labels, each once."""
        known: list[str] = self._facts["labels"]
        known += [label for label in labels if label not in known]

    def self_report(self, check: Check) -> None:
        """What real agents say that they used, beside what the gateway counted."""
        self._facts["self_report"] = check.facts
        self.label(*check.labels)

    def evidence(self, sha256: str) -> None:
        """The hash of the host's copy of the evidence."""
        self._facts["evidence_sha256"] = sha256
