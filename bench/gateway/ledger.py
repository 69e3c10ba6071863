"""The ledger of one job: what is spent and reserved at job, trial and agent scope. Pure, integers only.

A call reserves its upper bound at all three scopes before it goes out and settles afterwards, so that no
number of parallel calls passes a cap (DESIGN, decision 6). A call whose use stays unknown is charged its
whole reservation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from bench.condition import Limits

type Scope = Literal["job", "trial", "agent"]

NO_LIMITS = Limits()

NEAR_PERCENT = 80
"""From this share of a cap on, people are told."""


@dataclass(slots=True)
class Amount:
    """Money, tokens of all classes, and calls. Only an account changes one, and only its own."""

    usd_micros: int = 0
    tokens: int = 0
    calls: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.usd_micros + other.usd_micros, self.tokens + other.tokens, self.calls + other.calls)

    def grow(self, by: Amount) -> None:
        """Become so much more."""
        self.usd_micros += by.usd_micros
        self.tokens += by.tokens
        self.calls += by.calls

    def shrink(self, by: Amount) -> None:
        """Become so much less."""
        self.usd_micros -= by.usd_micros
        self.tokens -= by.tokens
        self.calls -= by.calls


@dataclass
class Account:
    """One scope's caps and sums. Its sums are this account's own: nobody else keeps them."""

    scope: Scope
    name: str
    limits: Limits
    spent: Amount = field(default_factory=Amount)
    reserved: Amount = field(default_factory=Amount)
    told: set[str] = field(default_factory=set)
    """Units whose cap was said to be near."""
    within: str = ""
    """Of an agent's: the trial, without which nobody could tell it from the agent of that name in another."""

    def near(self) -> Iterator[Near]:
        """The caps that are nearly reached by what is spent, each once."""
        limits, spent = self.limits, self.spent
        rows = (
            ("usd_micros", limits.usd_micros, spent.usd_micros),
            ("tokens", limits.tokens, spent.tokens),
            ("calls", limits.calls, spent.calls),
        )
        for unit, cap, used in rows:
            if cap and used * 100 >= cap * NEAR_PERCENT and unit not in self.told:
                self.told.add(unit)
                yield Near(self.scope, f"{self.name} of {self.within}" if self.within else self.name, unit, cap, used)

    def over(self, wanted: Amount) -> Refusal | None:
        """Why `wanted` doesn't fit any more, or None where it does."""
        limits, spent, reserved = self.limits, self.spent, self.reserved
        rows = (
            ("usd_micros", limits.usd_micros, spent.usd_micros, reserved.usd_micros, wanted.usd_micros),
            ("tokens", limits.tokens, spent.tokens, reserved.tokens, wanted.tokens),
            ("calls", limits.calls, spent.calls, reserved.calls, wanted.calls),
        )
        for unit, cap, used, held, want in rows:
            if cap is not None and used + held + want > cap:
                return Refusal(self.scope, self.name, unit, cap, used, held, want)
        return None


@dataclass(frozen=True)
class Near:
    """A cap that is nearly reached."""

    scope: Scope
    name: str
    unit: str
    cap: int
    spent: int

    def __str__(self) -> str:
        spent, cap = _amount(self.spent, self.unit), _amount(self.cap, self.unit)
        return f"the {self.scope} {self.name} has spent {spent} of {cap}, {self.spent * 100 // self.cap} %"


@dataclass(frozen=True)
class Refusal:
    """A cap that a call would pass."""

    scope: Scope
    name: str
    unit: str
    cap: int
    spent: int
    reserved: int
    wanted: int

    @property
    def passing(self) -> bool:
        """Whether the call may fit once the calls under way have settled."""
        return self.reserved > 0 and self.spent + self.wanted <= self.cap

    def __str__(self) -> str:
        cap, spent, reserved, wanted = (
            _amount(n, self.unit) for n in (self.cap, self.spent, self.reserved, self.wanted)
        )
        return (
            f"the {self.scope} {self.name} has a cap of {cap}: {spent} spent, {reserved} reserved by calls under "
            f"way, and this call may take {wanted}{', more than the whole cap' if self.wanted > self.cap else ''}"
        )


@dataclass(frozen=True)
class Reservation:
    """An upper bound held for one call at each of its scopes."""

    accounts: tuple[Account, ...]
    amount: Amount


class Ledger:
    """The accounts of one job. `spent` is what earlier runs of it were charged, by trial and agent."""

    def __init__(self, job: str, limits: Limits | None, spent: Mapping[tuple[str, str], Amount] | None = None) -> None:
        self.job = Account("job", job, limits or NO_LIMITS)
        self._trials: dict[str, Account] = {}
        self._agents: dict[tuple[str, str], Account] = {}
        for (trial, agent), amount in (spent or {}).items():
            self.open(trial, agent, trial_limits=None, limits=None)
            for account in self.accounts(trial, agent):
                account.spent.grow(amount)

    def open(self, trial: str, agent: str, *, trial_limits: Limits | None, limits: Limits | None) -> None:
        """Make the agent's accounts, or give them these caps; what was spent stays."""
        whole = self._trials.setdefault(trial, Account("trial", trial, NO_LIMITS))
        if trial_limits is not None:
            whole.limits = trial_limits
        own = self._agents.setdefault((trial, agent), Account("agent", agent, NO_LIMITS, within=trial))
        own.limits = limits or NO_LIMITS

    def accounts(self, trial: str, agent: str) -> tuple[Account, ...]:
        """The accounts that a call of the agent is booked on, narrowest first."""
        return (self._agents[trial, agent], self._trials[trial], self.job)

    def bounded(self, trial: str, agent: str) -> bool:
        """Whether any cap in money or tokens holds for the agent, so that each call needs an upper bound."""
        caps = (a.limits for a in self.accounts(trial, agent))
        return any(c.usd_micros is not None or c.tokens is not None for c in caps)

    def reserve(self, trial: str, agent: str, amount: Amount) -> Reservation | Refusal:
        """Hold `amount` at every scope, or at none: then the first cap that it would pass."""
        return self.refusal(trial, agent, amount) or self.hold(trial, agent, amount)

    def refusal(self, trial: str, agent: str, amount: Amount) -> Refusal | None:
        """The first cap that `amount` would pass now."""
        found = (account.over(amount) for account in self.accounts(trial, agent))
        return next((refusal for refusal in found if refusal is not None), None)

    def hold(self, trial: str, agent: str, amount: Amount) -> Reservation:
        """Hold `amount` at every scope, whatever the caps are."""
        accounts = self.accounts(trial, agent)
        for account in accounts:
            account.reserved.grow(amount)
        return Reservation(accounts, amount)

    def settle(self, reservation: Reservation, charge: Amount) -> tuple[Near, ...]:
        """Replace the reservation by what the call is charged; the caps that are nearly reached by that."""
        for account in reservation.accounts:
            account.reserved.shrink(reservation.amount)
            account.spent.grow(charge)
        return tuple(near for account in reservation.accounts for near in account.near())


def usd(micros: int) -> str:
    """Micro-dollars as people read them: `0.600000 USD` without the zeros that say nothing."""
    text = f"{micros // 1_000_000}.{micros % 1_000_000:06d}".rstrip("0")
    whole, _, part = text.partition(".")
    return f"{whole}.{part.ljust(2, '0')} USD"


def _amount(number: int, unit: str) -> str:
    if unit == "usd_micros":
        return usd(number)
    return f"1 {unit.removesuffix('s')}" if number == 1 else f"{number} {unit}"
