"""What model calls cost: sums over a job's receipts, by trial. What nobody reported is unknown, never zero."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.prices import Tokens, hour_writes
from bench.reading import jsonl

TOKEN_CLASSES = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")

LARGEST = 2**63 - 1


def went_out(receipt: Mapping[str, Any]) -> bool:
    """Whether a receipt's call was sent to a model, as retries are, each by itself: only that is counted as a call.

    What the gateway itself refused is none: in no report, no budget and no figure of the database.
    """
    return receipt.get("outcome") != "refused"


@dataclass(frozen=True)
class Spend:
    """Model calls summed from receipts. `unknown_calls` are those whose tokens or cost nobody reported: never zero."""

    calls: int = 0
    input_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    cost_usd_micros: int = 0
    unknown_calls: int = 0

    @property
    def tokens(self) -> int:
        """All four classes; they are disjoint."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens + self.output_tokens

    def plus(self, receipt: Mapping[str, Any]) -> Spend:
        """With one more receipt."""
        if not went_out(receipt):
            return self
        known = {name: number(receipt.get(name)) for name in (*TOKEN_CLASSES, "cost_usd_micros")}
        return Spend(
            calls=self.calls + 1,
            unknown_calls=self.unknown_calls + (None in known.values()),
            **{name: getattr(self, name) + (value or 0) for name, value in known.items()},
        )

    def __add__(self, other: Spend) -> Spend:
        return Spend(**{name: getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__})


NOTHING = Spend()


def total(spends: Iterable[Spend]) -> Spend:
    """The sum."""
    return sum(spends, NOTHING)


def calls_of(receipts: Path, warnings: list[str]) -> list[dict[str, Any]]:
    """One receipt for each call in a receipts file: the later one where a call has two.

    A call whose only one is `open` was under way when the gateway died: it is unknown, charged at its bound.
    """
    latest: dict[str, dict[str, Any]] = {}
    for place, receipt in enumerate(jsonl.read(receipts, warnings)):
        latest[call_of(receipt, place)] = receipt
    return list(latest.values())


def call_of(receipt: Mapping[str, Any], place: int) -> str:
    """What a receipt's call goes by: its id, else its place among the receipts."""
    return str(receipt.get("call_id") or f"{place} of the file")


def tokens_of(receipt: Mapping[str, Any]) -> Tokens:
    """A receipt's tokens. How many of the cache writes stay for an hour, only the upstream's own report tells."""
    fresh, read, write, output = (number(receipt.get(name)) for name in TOKEN_CLASSES)
    return Tokens(fresh, read, write, output, hour_writes(receipt.get("usage")) or 0)


def by_trial(calls: Iterable[Mapping[str, Any]]) -> dict[str, Spend]:
    """The spend of every trial among these calls' receipts."""
    spends: dict[str, Spend] = {}
    for receipt in calls:
        name = str(receipt.get("trial"))
        spends[name] = spends.get(name, NOTHING).plus(receipt)
    return spends


def by_step(calls: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Spend]]:
    """The spend of every step of a trial's task, by trial; calls of tasks without steps are in none."""
    spends: dict[str, dict[str, Spend]] = {}
    for receipt in calls:
        if step := receipt.get("step"):
            of_trial = spends.setdefault(str(receipt.get("trial")), {})
            of_trial[str(step)] = of_trial.get(str(step), NOTHING).plus(receipt)
    return spends


def mixed(calls: Iterable[Mapping[str, Any]]) -> set[str]:
    """The trials in which one model of one endpoint was served by more than one upstream, or as more than one model.

    Such a trial measures no one condition (public case 62). Answers that don't say who they are from tell nothing.
    """
    served: dict[tuple[str, str, str, str], set[str]] = {}
    for receipt in calls:
        for field in ("served_provider", "served_model"):
            if isinstance(by := receipt.get(field), str):
                asked = str(receipt.get("trial")), str(receipt.get("endpoint")), str(receipt.get("model")), field
                served.setdefault(asked, set()).add(by)
    return {trial for (trial, *_), names in served.items() if len(names) > 1}


def usd(micros: int) -> str:
    """Micro-dollars as people read them."""
    return f"${micros / 1_000_000:.4f}"


def percent(share: float) -> str:
    """A share in whole per cent: 100 % is all of it, and 0 % nothing.

    >>> percent(1), percent(444 / 445), percent(0.5), percent(1 / 445), percent(0)
    ('100%', '>99%', '50%', '<1%', '0%')
    """
    if 0.995 <= share < 1:
        return ">99%"
    return "<1%" if 0 < share < 0.005 else f"{share:.0%}"


def number(value: Any) -> int | None:
    """A count in a receipt; None where it is none, or more than a database holds."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST else None
