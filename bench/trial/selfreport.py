"""What real agents say that they used (kind 44200), held against the gateway's count. Pure.

Receipts are the truth; an agent's own count is a cross-check (public case 23). Buzz's agents publish one event a turn,
encrypted to their owner, with the sums of their session so far: the last one of each session counts, and an agent's
sessions add up (BUZZ.md section 5). Their input counts what was read from and written to a cache. A turn has its event
only when it has ended, so that only turns that ended are due; the one that a trial's end cuts off may have one, too,
with what it had used by then.

    said = read(events, owner, {public: name})
    check = compare(said, {name: metered(calls, stopped_at)})
    check.labels                                 # ("self_report_missing",)
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bench.nostr import Event, Key, tag_values, verified
from bench.trial.calls import Call

METRIC = 44200

TOLERANCE = 0.02
"""The part of the gateway's count by which an agent's own may differ (public case 23)."""

DIFFERS, MISSING = "self_report_differs", "self_report_missing"

REPORT_S = 3.0
"""After a turn's end, how long its event may take: an agent that is stopped within may not have sent it."""

type Verdict = Literal["agrees", "differs", "missing", "unknown", "nothing_due"]


@dataclass(frozen=True)
class SelfReport:
    """What one agent said it used. A sum is None where a session didn't say; `unreadable` events tell nothing."""

    sessions: int = 0
    turns: int = 0
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    unreadable: int = 0


@dataclass(frozen=True)
class Sums:
    """What calls used, both ways of a cache in the input. None is unknown."""

    calls: int = 0
    input_tokens: int | None = 0
    output_tokens: int | None = 0


@dataclass(frozen=True)
class Compared:
    """One agent's own count beside the gateway's.

    `unknown`: one of the two doesn't know a sum. `nothing_due`: no turn of the agent has ended, and it claims none.
    """

    verdict: Verdict
    said: SelfReport
    metered: Sums


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
                "metered_input_tokens": compared.metered.input_tokens,
                "metered_output_tokens": compared.metered.output_tokens,
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


def metered(calls: Sequence[Call], stopped_at: float) -> tuple[Sums, ...]:
    """What the gateway counted of one agent after the last turn that has to be reported on, and after each call since.

    `stopped_at` is when the agent was stopped, in Unix seconds: what ended just before may be reported or not, and a
    turn that is cut off, its token being dead, is reported as far as it came.
    """
    so_far, found = Sums(), [Sums()]
    for call in sorted(calls, key=lambda call: call.began):
        if call.outcome == "refused":
            continue
        so_far = _plus(so_far, call)
        if call.ends_turn and call.ended + REPORT_S <= stopped_at:
            found = [so_far]
        elif call.ends_turn or so_far.output_tokens is not None:
            found.append(so_far)
    return tuple(found)


def compare(reports: Mapping[str, SelfReport], counted: Mapping[str, Sequence[Sums]]) -> Check:
    """The cross-check of what agents said with what the gateway counted (see `metered`), for everybody in either."""
    names = sorted(reports.keys() | counted.keys())
    return Check({name: _compared(reports.get(name, SelfReport()), counted.get(name, (Sums(),))) for name in names})


def _compared(said: SelfReport, counted: Sequence[Sums]) -> Compared:
    due = counted[0]
    if not said.turns:
        return Compared("missing" if due.calls or said.unreadable else "nothing_due", said, due)
    verdicts = {_verdict(said, sums): sums for sums in counted}
    verdict = next(v for v in _FROM_BEST if v in verdicts)
    return Compared(verdict, said, verdicts[verdict])


_FROM_BEST: tuple[Verdict, ...] = ("agrees", "unknown", "differs")


def _verdict(said: SelfReport, sums: Sums) -> Verdict:
    pairs = ((said.input_tokens, sums.input_tokens), (said.output_tokens, sums.output_tokens))
    if any(ours is not None and theirs is not None and _apart(theirs, ours) for theirs, ours in pairs):
        return "differs"
    return "unknown" if any(None in pair for pair in pairs) else "agrees"


def _apart(theirs: int, ours: int) -> bool:
    return abs(theirs - ours) > TOLERANCE * ours


def _plus(sums: Sums, call: Call) -> Sums:
    tokens = call.tokens
    classes = (tokens.input, tokens.cache_read, tokens.cache_write)
    known = [number for number in classes if number is not None]
    shown = sum(known) if len(known) == len(classes) else None
    return Sums(sums.calls + 1, _added(sums.input_tokens, shown), _added(sums.output_tokens, tokens.output))


def _added(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


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
