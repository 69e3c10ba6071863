"""What real agents say that they used (kind 44200), held against the gateway's count. Pure.

Receipts are the truth; an agent's own count is a cross-check (public case 23). Buzz's agents publish one event a turn,
encrypted to their owner, with the sums of their session so far: the last one of each session counts, and an agent's
sessions add up (BUZZ.md section 5). Their input counts what was read from and written to a cache. A turn that fails or
is killed has no event, so that an agent that was stopped at work says less than it used.

    reports = read(events, owner, {public: name})
    check = compare(reports, usage)              # usage: the gateway's AgentUsage by name
    check.labels                                 # ("self_report_missing",)
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bench.gateway.protocol import AgentUsage
from bench.nostr import Event, Key, tag_values, verified

METRIC = 44200

TOLERANCE = 0.02
"""The part of the gateway's count by which an agent's own may differ (public case 23)."""

DIFFERS, MISSING = "self_report_differs", "self_report_missing"

type Verdict = Literal["agrees", "differs", "missing", "unknown", "no_calls"]


@dataclass(frozen=True)
class SelfReport:
    """What one agent said it used. A sum is None where a session didn't say; `unreadable` events tell nothing."""

    sessions: int = 0
    turns: int = 0
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    unreadable: int = 0


@dataclass(frozen=True)
class Compared:
    """One agent's own count beside the gateway's.

    `unknown`: one of the two doesn't know a sum. `no_calls`: the gateway saw no call, and the agent claims none.
    """

    verdict: Verdict
    said: SelfReport
    metered_input_tokens: int | None
    metered_output_tokens: int | None


@dataclass(frozen=True)
class Check:
    """The cross-check of one trial."""

    agents: Mapping[str, Compared]

    @property
    def labels(self) -> tuple[str, ...]:
        """The trial's labels, sorted."""
        found = {"differs": DIFFERS, "missing": MISSING}
        return tuple(sorted({found[c.verdict] for c in self.agents.values() if c.verdict in found}))

    @property
    def facts(self) -> dict[str, dict[str, Any]]:
        """As the trial's metadata has it, by agent."""
        return {
            name: {
                "verdict": compared.verdict,
                "sessions": compared.said.sessions,
                "turns": compared.said.turns,
                "unreadable": compared.said.unreadable,
                "input_tokens": compared.said.input_tokens,
                "output_tokens": compared.said.output_tokens,
                "metered_input_tokens": compared.metered_input_tokens,
                "metered_output_tokens": compared.metered_output_tokens,
            }
            for name, compared in self.agents.items()
        }


def wanted(owner: str, agents: Iterable[str]) -> dict[str, Any]:
    """The filter for their events, of public keys. Only the owner may ask for it (BUZZ.md section 3)."""
    return {"kinds": [METRIC], "#p": [owner], "authors": sorted(agents)}


def read(events: Sequence[Event], owner: Key, people: Mapping[str, str]) -> dict[str, SelfReport]:
    """What each agent said, by name; `people` maps public keys to names. Events of or to others don't count."""
    last: dict[str, dict[str, Mapping[str, Any]]] = {}
    turns: dict[str, int] = {}
    unreadable: dict[str, int] = {}
    for event in {event["id"]: event for event in events}.values():
        name = people.get(event["pubkey"])
        if name is None or event["kind"] != METRIC or owner.public not in tag_values(event, "p"):
            continue
        turn = _turn(event, owner)
        if turn is None:
            unreadable[name] = unreadable.get(name, 0) + 1
            continue
        turns[name] = turns.get(name, 0) + 1
        sessions = last.setdefault(name, {})
        before = sessions.get(turn["sessionId"])
        if before is None or turn["turnSeq"] > before["turnSeq"]:
            sessions[turn["sessionId"]] = turn
    return {
        name: SelfReport(
            sessions=len(last.get(name, {})),
            turns=turns.get(name, 0),
            input_tokens=_sum(last.get(name, {}).values(), "inputTokens"),
            output_tokens=_sum(last.get(name, {}).values(), "outputTokens"),
            unreadable=unreadable.get(name, 0),
        )
        for name in turns.keys() | unreadable.keys()
    }


def compare(reports: Mapping[str, SelfReport], usage: Mapping[str, AgentUsage]) -> Check:
    """The cross-check of what agents said with what the gateway counted, for everybody in either."""
    names = sorted(reports.keys() | usage.keys())
    return Check({name: _compared(reports.get(name, SelfReport()), usage.get(name, AgentUsage())) for name in names})


def _compared(said: SelfReport, used: AgentUsage) -> Compared:
    classes = (used.input_tokens, used.cache_read_tokens, used.cache_write_tokens)
    known = [number for number in classes if number is not None]
    metered = sum(known) if len(known) == len(classes) else None
    return Compared(_verdict(said, used, metered), said, metered, used.output_tokens)


def _verdict(said: SelfReport, used: AgentUsage, metered_input_tokens: int | None) -> Verdict:
    if not said.turns:
        return "missing" if used.calls or said.unreadable else "no_calls"
    pairs = ((said.input_tokens, metered_input_tokens), (said.output_tokens, used.output_tokens))
    if any(ours is not None and theirs is not None and _apart(theirs, ours) for theirs, ours in pairs):
        return "differs"
    return "unknown" if used.unknown_calls or any(None in pair for pair in pairs) else "agrees"


def _apart(theirs: int, ours: int) -> bool:
    return abs(theirs - ours) > TOLERANCE * ours


def _turn(event: Event, owner: Key) -> Mapping[str, Any] | None:
    """An event's content; None where it can't be read, isn't signed, or doesn't say which turn of which session."""
    try:
        turn = json.loads(owner.decrypt(event["pubkey"], event["content"])) if verified(event) else None
    except ValueError:
        return None
    if not isinstance(turn, dict) or not isinstance(turn.get("sessionId"), str) or not _is_count(turn.get("turnSeq")):
        return None
    return turn


def _sum(turns: Iterable[Mapping[str, Any]], name: str) -> int | None:
    """The sum over sessions of the last turn's cumulative count; None where one doesn't say."""
    total = 0
    for turn in turns:
        cumulative = turn.get("cumulative")
        count: Any = cumulative.get(name) if isinstance(cumulative, dict) else None
        if not _is_count(count):
            return None
        total += count
    return total


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
