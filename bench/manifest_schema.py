"""The form of a manifest file (SEED.md row R4), and its faults in a person's words.

Upstream's manifests load unchanged, so their longer names of prices (`input_per_million_usd`), `metadata` and
`generation.extra` are taken as well.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails

from bench import wording, yamlfile
from bench.condition import BUZZ_AGENT_EXTRAS, Limits
from bench.errors import Problem
from bench.nearest import did_you_mean
from bench.prices import USD_MICROS, Price, Tier, rate_usd_micros

CACHE_WRITE_RATIO = Decimal("1.25")
"""A cache write's price over the input's where a manifest gives none: Anthropic's for five minutes. Providers
without such a class of tokens never report one."""

HOUR_RATIO = 2
"""The same for cache writes that stay for an hour."""


MOST_AGENTS = 64
"""Of one roster member."""

LONGEST_S = 30 * 86_400
"""A trial of more than a month is a mistaken unit."""

HIGHEST_USD = 1_000_000
"""Of what a trial, or a member of it, may cost."""


def _rate(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{wording.shown(value)} is no price; give USD per million tokens, such as 0.30")  # noqa: TRY004
    return rate_usd_micros(str(value))


def _usd(value: Any) -> int:
    """A sum in micro-dollars: a price's checks but for its bounds."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise ValueError(f"{wording.shown(value)} is no sum of money; give USD, such as 2.50")
    if value > HIGHEST_USD:
        raise ValueError(f"{wording.shown(value)} USD is over {HIGHEST_USD:,}")
    return int(Decimal(str(value)) * USD_MICROS)


def _in_usd(rate: int) -> str:
    return f"{Decimal(rate) / USD_MICROS:f}"


def _name(value: str) -> str:
    """It is in file names, tables and links: nothing in it may lead elsewhere or break a line."""
    if not re.fullmatch(r"\w[\w .&+-]{0,127}", value):
        form = "letters, digits, blanks and . & + - _, at most 128, the first a letter or a digit"
        raise ValueError(f"{value!r} is no condition's name: {form}")
    return value


type Name = Annotated[str, AfterValidator(_name)]
type Rate = Annotated[int, PlainValidator(_rate)]
type Usd = Annotated[int, PlainValidator(_usd)]
type Count = Annotated[int, Field(ge=1, le=10**12)]
type Seconds = Annotated[int, Field(ge=1, le=LONGEST_S)]
type Cores = Annotated[int, Field(ge=1, le=10_000)]
type Megabytes = Annotated[int, Field(ge=1, le=10**9)]
type Text = Annotated[str, Field(min_length=1)]
type Id = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=64)]


class Strict(BaseModel):
    """Unknown fields and values of another type are errors; an empty field is as good as none."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _without_empty(cls, data: Any) -> Any:
        return {k: v for k, v in data.items() if v is not None} if isinstance(data, dict) else data


class Pinned(Strict):
    """A file whose bytes are part of the condition."""

    path: Text
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Generation(Strict):
    max_output_tokens: Count | None = None
    context_window_tokens: Count | None = None
    compact_at_percent: Annotated[int, Field(ge=1, le=100)] | None = None
    compact_at_tokens: Count | None = None
    thinking_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    extra: dict[str, Any] = {}


class Budget(Strict):
    """Caps. Upstream's split into input and output tokens is read and hashed, but nobody holds to it yet."""

    max_calls: Count | None = None
    max_input_tokens: Count | None = None
    max_output_tokens: Count | None = None
    max_tokens: Count | None = None
    max_cost_usd: Usd | None = None

    @property
    def unenforced(self) -> list[str]:
        return [name for name in ("max_input_tokens", "max_output_tokens") if getattr(self, name)]

    def limits(self) -> Limits:
        return Limits(usd_micros=self.max_cost_usd, tokens=self.max_tokens, calls=self.max_calls)


class TrialBudget(Budget):
    timeout_seconds: Seconds


class Member(Strict):
    id: Id
    kind: Literal["orchestrator", "worker"]
    role: Text
    count: Annotated[int, Field(ge=1, le=MOST_AGENTS)] = 1
    endpoint: Text
    model_revision: Text
    harness: Literal["buzz-agent", "builtin", "goose", "codex"] = "buzz-agent"
    prompt: Pinned
    persona: Pinned | None = None
    skills: list[Pinned] = []
    include_platform_prompt: bool = True
    generation: Generation = Generation()
    budget: Budget = Budget()
    concurrency: Count = 1

    @property
    def unenforced(self) -> list[str]:
        """The settings that a buzz-agent has no variable for."""
        if self.harness != "buzz-agent":
            return []
        compact = [name for name in ("compact_at_percent", "compact_at_tokens") if getattr(self.generation, name)]
        strange = [name for name in self.generation.extra if name not in BUZZ_AGENT_EXTRAS]
        return [f"generation.{name}" for name in (*compact, *(f"extra.{name}" for name in strange))]


class RateRow(Strict):
    """Per million tokens. What isn't given is priced so that a cost is never understated."""

    input: Rate = Field(validation_alias=AliasChoices("input", "input_per_million_usd"))
    cached_input: Rate | None = Field(
        default=None, validation_alias=AliasChoices("cached_input", "cached_input_per_million_usd")
    )
    cache_write: Rate | None = Field(
        default=None, validation_alias=AliasChoices("cache_write", "cache_write_per_million_usd")
    )
    cache_write_1h: Rate | None = Field(
        default=None, validation_alias=AliasChoices("cache_write_1h", "cache_write_1h_per_million_usd")
    )
    output: Rate = Field(validation_alias=AliasChoices("output", "output_per_million_usd"))

    @field_validator("cache_write_1h")
    @classmethod
    def _dearer(cls, rate: int, info: ValidationInfo) -> int:
        write = info.data.get("cache_write")
        if write is not None and rate < write:
            raise ValueError(
                f"{_in_usd(rate)} is below cache_write {_in_usd(write)}: a write that stays for an hour is never the "
                "cheaper one"
            )
        return rate

    @property
    def classes(self) -> dict[str, int]:
        """All four classes, and cache writes that stay for an hour."""
        write = int(-(-self.input * CACHE_WRITE_RATIO // 1)) if self.cache_write is None else self.cache_write
        hour = max(write, self.input * HOUR_RATIO) if self.cache_write_1h is None else self.cache_write_1h
        return {
            "input": self.input,
            "cache_read": self.input if self.cached_input is None else self.cached_input,
            "cache_write": write,
            "output": self.output,
            "cache_write_1h": hour,
        }


class TierRow(RateRow):
    """The rates of calls whose whole prompt is longer than `above_tokens`."""

    above_tokens: Count


class PriceRow(RateRow):
    """A model's price. `cache_read_rate` is hashed but not used: the gateway measures cache reads."""

    tiers: list[TierRow] = []
    cache_read_rate: Annotated[float, Field(ge=0, le=1)] = 0.0

    @field_validator("tiers")
    @classmethod
    def _rising(cls, tiers: list[TierRow]) -> list[TierRow]:
        edges = [tier.above_tokens for tier in tiers]
        if edges != sorted(set(edges)):
            raise ValueError(f"the tiers' above_tokens are {', '.join(map(str, edges))}; give them rising")
        return tiers

    def rates(self) -> Price:
        """The price that the gateway uses."""
        tiers = tuple(Tier(above_tokens=row.above_tokens, **row.classes) for row in self.tiers)
        return Price(**self.classes, tiers=tiers)


class Environment(Strict):
    override_cpus: Cores | None = None
    override_memory_mb: Megabytes | None = None
    override_storage_mb: Megabytes | None = None


class Manifest(Strict):
    schema_version: Literal["1"] = "1"
    condition: Name
    roster: Annotated[list[Member], Field(min_length=1)]
    prices: dict[str, PriceRow]
    trial_budget: TrialBudget
    environment: Environment = Environment()
    metadata: dict[str, Any] = {}

    @property
    def unenforced(self) -> tuple[str, ...]:
        """The fields, as people write them, that no harness and no gateway can hold to yet."""
        budgets = {f"roster[{n}].budget": member.budget for n, member in enumerate(self.roster)}
        budgets["trial_budget"] = self.trial_budget
        settings = [f"roster[{n}].{name}" for n, member in enumerate(self.roster) for name in member.unenforced]
        return (*(f"{where}.{name}" for where, budget in budgets.items() for name in budget.unenforced), *settings)

    def price_of(self, member: Member) -> PriceRow:
        """The price of a member's model: listed by its revision, or, as upstream does, by its endpoint."""
        key = member.model_revision
        return self.prices[key if key in self.prices else member.endpoint]


def validate(document: yamlfile.Document) -> tuple[Manifest | None, list[Problem]]:
    """The manifest, or None and what is wrong with its fields."""
    try:
        return Manifest.model_validate(document.data), []
    except ValidationError as error:
        return None, [explain(document, details) for details in error.errors(include_url=False)]


def explain(document: yamlfile.Document, details: ErrorDetails, whole: type[Strict] = Manifest) -> Problem:
    """One of pydantic's errors in a person's words; `whole` is the form of the file."""
    field = details["loc"]
    match details["type"]:
        case "extra_forbidden" if "per_token" in str(field[-1]) and field[0] == "prices":
            what = "prices are USD per million tokens, not per token"
            return document.problem(field, what, "give input, cached_input, cache_write and output so")
        case "extra_forbidden":
            return document.problem(field, "unknown field", did_you_mean(str(field[-1]), _known(field, whole)))
        case _:
            return document.problem(field, wording.said(details))


def _known(field: yamlfile.Field, whole: type[Strict]) -> list[str]:
    """The names of the fields that may stand beside the given one."""
    models: dict[tuple[str, ...], type[Strict]] = {
        (): whole,
        ("roster",): Member,
        ("roster", "prompt"): Pinned,
        ("roster", "persona"): Pinned,
        ("roster", "skills"): Pinned,
        ("roster", "generation"): Generation,
        ("roster", "budget"): Budget,
        ("trial_budget",): TrialBudget,
        ("environment",): Environment,
    }
    way = tuple(part for part in field[:-1] if isinstance(part, str))
    if way[:1] == ("prices",):
        return list((TierRow if way[2:] == ("tiers",) else PriceRow).model_fields)
    model = models.get(way)
    return list(model.model_fields) if model else []
