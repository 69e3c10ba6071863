"""Sums over receipts that grow as receipts come, so that a job of many calls can be followed.

A later receipt of a call replaces the earlier one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from bench.costs import TOKEN_CLASSES, Spend, call_of, number, went_out
from bench.reading import jsonl

NAMES = ("trial", "agent", "member", "model", "step")

UNNAMED = "none named"
"""What a receipt doesn't say; of a task without steps none does say a step."""

type Key = tuple[str, ...]


@dataclass(frozen=True)
class Used:
    """What calls used. `refused` never went out. `charged_*` is what caps count: None where a call had no bound.

    `open_calls` are those of the unknown ones that have no end: under way, or cut by a gateway that died. `open_*` is
    the bound that each of them reserved, and is charged at: None where one had none.
    `unsure`: receipts are damaged or contradicted, so that these sums may lack something.
    """

    spend: Spend = Spend()  # noqa: RUF009  (frozen)
    refused: int = 0
    charged_usd_micros: int | None = 0
    charged_tokens: int | None = 0
    open_calls: int = 0
    open_usd_micros: int | None = 0
    open_tokens: int | None = 0
    unsure: bool = False

    def __add__(self, other: Used) -> Used:
        def both(name: str) -> int | None:
            mine, others = getattr(self, name), getattr(other, name)
            return None if mine is None or others is None else mine + others

        return Used(
            self.spend + other.spend,
            self.refused + other.refused,
            both("charged_usd_micros"),
            both("charged_tokens"),
            self.open_calls + other.open_calls,
            both("open_usd_micros"),
            both("open_tokens"),
            self.unsure or other.unsure,
        )

    def charged(self, unit: str) -> int | None:
        """What counts against a cap in that unit."""
        if unit == "calls":
            return self.spend.calls
        return self.charged_usd_micros if unit == "usd_micros" else self.charged_tokens


class _Part(NamedTuple):
    """One receipt's part in the sums, or a sum. `*unbounded_*` are calls that had no bound."""

    calls: int = 0
    refused: int = 0
    unknown: int = 0
    input_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    cost_usd_micros: int = 0
    charged_usd_micros: int = 0
    charged_tokens: int = 0
    unbounded_usd_micros: int = 0
    unbounded_tokens: int = 0
    open_calls: int = 0
    open_usd_micros: int = 0
    open_tokens: int = 0
    open_unbounded_usd_micros: int = 0
    open_unbounded_tokens: int = 0

    @property
    def used(self) -> Used:
        tokens = (self.input_tokens, self.cache_read_tokens, self.cache_write_tokens, self.output_tokens)
        return Used(
            Spend(self.calls, *tokens, self.cost_usd_micros, self.unknown),
            self.refused,
            None if self.unbounded_usd_micros else self.charged_usd_micros,
            None if self.unbounded_tokens else self.charged_tokens,
            self.open_calls,
            None if self.open_unbounded_usd_micros else self.open_usd_micros,
            None if self.open_unbounded_tokens else self.open_tokens,
        )


_NOTHING = _Part()


def _add(groups: dict[Key, _Part], key: Key, part: _Part, sign: int = 1) -> None:
    groups[key] = _Part(*(a + sign * b for a, b in zip(groups.get(key, _NOTHING), part, strict=True)))


class Tally:
    """The receipts so far, summed by trial, agent, member and model together."""

    def __init__(self) -> None:
        self._taken = 0
        self._calls: dict[str, tuple[Key, _Part]] = {}
        self._sums: dict[Key, _Part] = {}

    def take(self, line: bytes) -> bool:
        """Count a receipt; False where the line is none."""
        try:
            receipt = jsonl.parse(line)
        except ValueError:
            return False
        if not isinstance(receipt, dict):
            return False
        call = call_of(receipt, self._taken)
        self._taken += 1
        key = tuple(str(receipt.get(name) or UNNAMED) for name in NAMES)
        if call in self._calls:
            _add(self._sums, *self._calls[call], -1)
        self._calls[call] = key, _part(receipt)
        _add(self._sums, *self._calls[call])
        return True

    def by(
        self, *names: str, name: Callable[[Key], Key] = lambda key: key, as_they_came: bool = False
    ) -> dict[Key, Used]:
        """The sums for each combination of these, sorted unless `as_they_came`; `name` makes the key of them."""
        places = [NAMES.index(wanted) for wanted in names]
        groups: dict[Key, _Part] = {}
        for key, part in self._sums.items():
            _add(groups, name(tuple(key[place] for place in places)), part)
        return {key: part.used for key, part in (groups.items() if as_they_came else sorted(groups.items()))}


def _part(receipt: dict[str, Any]) -> _Part:
    if not went_out(receipt):
        return _Part(refused=1)
    known = [number(receipt.get(name)) for name in (*TOKEN_CLASSES, "cost_usd_micros")]
    charged = [number(receipt.get(name)) for name in ("charged_usd_micros", "charged_tokens")]
    bounds = (*(count or 0 for count in charged), *(int(count is None) for count in charged))
    is_open = receipt.get("outcome") == "open"
    return _Part(
        1, 0, int(None in known), *(count or 0 for count in known), *bounds, *((1, *bounds) if is_open else ())
    )
