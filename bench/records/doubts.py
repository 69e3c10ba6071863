"""Where the records of a job contradict each other: receipts, results, journal, directories. Pure.

Each kind is one line, with the file and the numbers. What is only damaged, `bench/records/` says itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.costs import TOKEN_CLASSES, Spend, usd
from bench.prices import USD_MICROS
from bench.records.planrecord import JobPlanRecord
from bench.scoring.outcome import dig
from bench.scoring.stepoutcomes import step_parts

SHOWN = 3
"""How many trials a line names."""


@dataclass(frozen=True)
class Counted:
    """What a trial's result.json says that the gateway had counted.

    `settled`: these are the gateway's last figures, which each receipt is in; else more calls may have come. `wrong`
    says where Harbor's own fields beside them are other sums.
    """

    calls: int
    tokens: int
    cost_usd_micros: int
    settled: bool
    wrong: str = ""

    @property
    def sums(self) -> tuple[int, int, int]:
        return self.calls, self.tokens, self.cost_usd_micros


@dataclass(frozen=True)
class Told:
    """What one trial's result.json tells beside its outcome.

    `foreign` is why it isn't this trial's. `played` are the `condition_sha256`, `rehearsal` and `replay` of whom it was
    played by.
    """

    readable: bool = False
    foreign: str = ""
    counted: Counted | None = None
    played: tuple[str | None, str | None, str | None] | None = None


def told(result: Mapping[str, Any], trial_dir: Path, plan: JobPlanRecord, job_id: Callable[[], Any]) -> Told:
    """What a result.json says of itself. `job_id` gives Harbor's id of the job, None where nobody knows it."""
    parts = [result, *(part for _, part in step_parts(result))]
    said = [
        (part, ours) for part in parts if isinstance(ours := dig(part, "agent_result", "metadata", "buzzbench"), dict)
    ]
    played = None
    if said and isinstance(said[-1][1].get("condition_sha256"), str):
        last = said[-1][1]
        played = str(last["condition_sha256"]), _text(last.get("rehearsal")), _text(last.get("replay"))
    return Told(True, _foreign(result, trial_dir, plan, job_id), _counted(said), played)


def of_receipts(trials: Iterable[tuple[str, Spend, Told]], retried: frozenset[str]) -> dict[str, str]:
    """The trials whose receipts aren't what their result.json had counted, each with the numbers of both."""
    found = {}
    for name, spend, told in trials:
        counted = told.counted
        if counted is None:
            continue
        booked = spend.calls, spend.tokens, spend.cost_usd_micros
        exact = counted.settled and name not in retried
        pairs = list(zip(booked, counted.sums, strict=True))
        if any(ours != theirs for ours, theirs in pairs) if exact else any(ours < theirs for ours, theirs in pairs):
            found[name] = f"{name} has {_sums(booked)} here, {_sums(counted.sums)} in its result.json"
        elif counted.wrong:
            found[name] = f"{name}'s result.json says {counted.wrong}"
    return found


def of_ends(
    ends: Mapping[str, tuple[str, float | None]], outcomes: Mapping[str, tuple[str, float | None]]
) -> Iterator[str]:
    """The trials whose directory is worth something else than the journal says, or is gone."""
    for name, (outcome, reward) in ends.items():
        if name not in outcomes:
            yield f"{name} ended as {outcome}, and its directory is gone"
        elif outcomes[name] != (outcome, reward):
            now, now_reward = outcomes[name]
            yield f"{name} ended as {_worth(outcome, reward)}, and is {_worth(now, now_reward)} now"


def of_played(plan: JobPlanRecord, trials: Mapping[str, Told]) -> Iterator[str]:
    """The trials that somebody else has played than the plan says."""
    planned = plan.condition_sha256, plan.rehearsal, plan.replay
    for name, told in trials.items():
        if told.played is not None and told.played != planned:
            yield f"{name} was played by {_player(told.played)}, the plan says {_player(planned)}"


def line(path: Path, what: str, each: Sequence[str]) -> str:
    """One warning for all of a kind."""
    more = f"; and {len(each) - SHOWN} more" if len(each) > SHOWN else ""
    return f"{path}: {what}: {'; '.join(each[:SHOWN])}{more}"


def _foreign(result: Mapping[str, Any], trial_dir: Path, plan: JobPlanRecord, job_id: Callable[[], Any]) -> str:
    """Why the result is another trial's or another job's. A job that was copied or renamed keeps its id."""
    name = result.get("trial_name")
    if isinstance(name, str) and name != trial_dir.name:
        return f"its result.json is of {name}"
    place, own = dig(result, "config", "trials_dir"), dig(result, "config", "job_id")
    if not isinstance(place, str) or not plan.known or Path(place).name in (plan.job, trial_dir.parent.name):
        return ""
    is_ours = own is not None and own == job_id()
    return "" if is_ours else f"its result.json is of the job {Path(place).name}"


def _counted(said: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> Counted | None:
    sums, wrong, settled = (0, 0, 0), "", bool(said)
    for part, ours in said:
        agents = ours.get("agents")
        used = [one for one in (agents.values() if isinstance(agents, dict) else ()) if isinstance(one, dict)]
        tokens = [sum(_number(one.get(name)) for one in used) for name in TOKEN_CLASSES]
        cost = sum(_number(one.get("cost_usd_micros")) for one in used)
        sums = sums[0] + sum(_number(one.get("calls")) for one in used), sums[1] + sum(tokens), sums[2] + cost
        settled = settled and all("refused_calls" in one for one in used) and bool(used)
        wrong = wrong or _differs(part, used, tokens, cost)
    return Counted(*sums, settled, wrong) if said else None


def _differs(part: Mapping[str, Any], used: Sequence[Mapping[str, Any]], tokens: Sequence[int], cost: int) -> str:
    """Which of Harbor's own fields of a trial or a step isn't the sum over its agents."""
    if not used:
        return ""
    fresh, cached, written, output = tokens
    unknown = any(one.get("unknown_calls") or one.get("cost_usd_micros") is None for one in used)
    sums = {
        "n_input_tokens": fresh + cached + written,
        "n_cache_tokens": cached,
        "n_output_tokens": output,
        "cost_usd": None if unknown else cost / USD_MICROS,
    }
    for name, ours in sums.items():
        theirs = dig(part, "agent_result", name)
        if theirs is not None and theirs != ours:
            return f"{name} {theirs}, which its agents' {'unknown' if ours is None else ours} contradict"
    return ""


def _sums(sums: tuple[int, int, int]) -> str:
    calls, tokens, cost = sums
    return f"{calls:,} call{'' if calls == 1 else 's'}, {tokens:,} tokens, {usd(cost)}"


def _worth(outcome: str, reward: float | None) -> str:
    return outcome if reward is None else f"{outcome} ({reward:g})"


def _player(played: tuple[str | None, str | None, str | None]) -> str:
    condition, rehearsal, replay = played
    if rehearsal or replay:
        return f"the script {rehearsal}" if rehearsal else f"the cassette {str(replay)[:12]}"
    return f"models of the condition {str(condition)[:12]}"


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _text(value: Any) -> str | None:
    return str(value) if value else None
