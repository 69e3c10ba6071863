"""The form of a manifest file (SEED.md row R4), and its faults in a person's words.

What each field is for is said here alone: `bench/fieldtables.py` makes the tables of manifests/README.md and the
schema for editors from it.

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
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails

from bench.condition import BUZZ_AGENT_EXTRAS, DEFAULT_OUTPUT_TOKENS, Limits
from bench.errors import Problem
from bench.nearest import did_you_mean
from bench.prices import HIGHEST_USD_PER_MILLION, MOST_ANSWER_TOKENS, USD_MICROS, Price, Tier, rate_usd_micros
from bench.reading import wording, yamlfile

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

LONGEST_NAME = 128

RATE_SCHEMA = {"type": ["number", "string"], "minimum": 0, "maximum": int(HIGHEST_USD_PER_MILLION)}
USD_SCHEMA = {"type": "number", "exclusiveMinimum": 0, "maximum": HIGHEST_USD}
"""What `_rate` and `_usd` take, for a JSON schema."""

NAME_FORM = f"letters, digits, blanks and . & + - _, at most {LONGEST_NAME} characters, the first a letter or a digit"


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
    if len(value) > LONGEST_NAME or not re.fullmatch(r"\w[\w .&+-]*", value):
        raise ValueError(f"{value!r} is no condition's name: {NAME_FORM}")
    return value


type Name = Annotated[str, AfterValidator(_name), Field(max_length=LONGEST_NAME)]
type Rate = Annotated[int, PlainValidator(_rate), WithJsonSchema(RATE_SCHEMA)]
type Usd = Annotated[int, PlainValidator(_usd), WithJsonSchema(USD_SCHEMA)]
type Count = Annotated[int, Field(ge=1, le=10**12)]
type Answer = Annotated[int, Field(ge=1, le=MOST_ANSWER_TOKENS)]
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

    path: Text = Field(
        description="The file: a text in UTF-8, relative to the manifest's folder or to the one above it."
    )
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] = Field(
        description="What its bytes must hash to. Where they don't, the message has the line that renews it."
    )


class Generation(Strict):
    """How a member's model is asked."""

    max_output_tokens: Answer | None = Field(
        None,
        description="The most tokens of one answer, thinking among them. By default the harness's own: of `builtin` "
        f"{DEFAULT_OUTPUT_TOKENS:,}, or what the model's price says that it can answer with, where that is less.",
    )
    context_window_tokens: Count | None = Field(
        None,
        description="How long prompt and answer may be together. Agents on the host forget long old results first.",
    )
    compact_at_percent: Annotated[int, Field(ge=1, le=100)] | None = Field(
        None, description="Upstream's. No harness holds to it: it can be dry-run only."
    )
    compact_at_tokens: Count | None = Field(
        None, description="Upstream's. No harness holds to it: it can be dry-run only."
    )
    thinking_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = Field(
        None,
        description="Sent as it is, where the model's API has it: a dial of the model's, and part of what is measured.",
    )
    extra: dict[str, Any] = Field(
        {}, description=f"For `harness: buzz-agent` alone, settings of its own: {', '.join(sorted(BUZZ_AGENT_EXTRAS))}."
    )


class Budget(Strict):
    """Caps. Upstream's split into input and output tokens is read and hashed, but nobody holds to it yet."""

    max_calls: Count | None = Field(None, description="Model calls.")
    max_input_tokens: Count | None = Field(
        None, description="Upstream's. Nobody holds to it: it can be dry-run only. Use `max_tokens`."
    )
    max_output_tokens: Count | None = Field(
        None, description="Upstream's. Nobody holds to it: it can be dry-run only. Use `max_tokens`."
    )
    max_tokens: Count | None = Field(None, description="Tokens of all classes: input, cached or not, and output.")
    max_cost_usd: Usd | None = Field(None, description="USD. A call that might pass a cap is not sent.")

    @property
    def unenforced(self) -> list[str]:
        return [name for name in ("max_input_tokens", "max_output_tokens") if getattr(self, name)]

    def limits(self) -> Limits:
        return Limits(usd_micros=self.max_cost_usd, tokens=self.max_tokens, calls=self.max_calls)


class TrialBudget(Budget):
    timeout_seconds: Seconds = Field(
        description="The team's time, in seconds. Where a task's agent timeout ends earlier, that holds."
    )


class Member(Strict):
    """One row of the roster: an agent, or several that differ in nothing but their names."""

    id: Id = Field(
        description="Its name in the channel, and in scripts and reports. Of several agents it becomes `worker-1`, "
        "`worker-2` …; `user` is taken. Tasks call on members by these names."
    )
    kind: Literal["orchestrator", "worker"] = Field(
        description="The orchestrator is given the task and ends it; a team has exactly one. One alone is a team, too."
    )
    role: Text = Field(description="What it is, in a word or two; the others are told.")
    count: Annotated[int, Field(ge=1, le=MOST_AGENTS)] = Field(1, description="How many agents of it there are.")
    endpoint: Text = Field(
        description="Where its model is reached: a name in the endpoint file; `scripted` for rehearsals alone."
    )
    model_revision: Text = Field(description="The model, as its provider names it. Name one that doesn't change.")
    harness: Literal["buzz-agent", "builtin", "goose", "codex"] = Field(
        "buzz-agent",
        description="`builtin` runs on the host, needs no Docker, and acts in the task's environment; `buzz-agent` is "
        "Buzz's own program in there. Members can't mix them. The others can be dry-run only.",
    )
    prompt: Pinned = Field(description="The system prompt begins with it.")
    persona: Pinned | None = Field(None, description="A second text, after the prompt.")
    skills: list[Pinned] = Field([], description="More texts, after these.")
    include_platform_prompt: bool = Field(
        True, description="For `harness: buzz-agent` alone: whether Buzz's own guide stands before the prompt."
    )
    generation: Generation = Field(Generation(), description="How its model is asked.")
    budget: Budget = Field(
        Budget(), description="Caps of each of its agents; one that is reached ends the agent's turn, not the trial."
    )
    concurrency: Count = Field(
        1, description="Upstream's, at most `count`. Hashed only: all agents of a member are there at the same time."
    )

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

    input: Rate = Field(
        description="Fresh input tokens.", validation_alias=AliasChoices("input", "input_per_million_usd")
    )
    cached_input: Rate | None = Field(
        None,
        description="Input read from a cache. By default the price of `input`.",
        validation_alias=AliasChoices("cached_input", "cached_input_per_million_usd"),
    )
    cache_write: Rate | None = Field(
        None,
        description=f"Input written to a cache. By default {CACHE_WRITE_RATIO} times `input`.",
        validation_alias=AliasChoices("cache_write", "cache_write_per_million_usd"),
    )
    cache_write_1h: Rate | None = Field(
        None,
        description=f"The same, to stay for an hour. By default {HOUR_RATIO} times `input`, or `cache_write` if that "
        "is more.",
        validation_alias=AliasChoices("cache_write_1h", "cache_write_1h_per_million_usd"),
    )
    output: Rate = Field(
        description="Output tokens, thinking among them.",
        validation_alias=AliasChoices("output", "output_per_million_usd"),
    )

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

    above_tokens: Count = Field(description="From the next token of the prompt on, this row is the whole call's.")


class PriceRow(RateRow):
    """A model's price. `cache_read_rate` is hashed but not used: the gateway measures cache reads."""

    tiers: list[TierRow] = Field([], description="Rows for long prompts, rising in `above_tokens`.")
    max_output_tokens: Answer | None = Field(
        None,
        description="The most that the model can answer with, by its provider. Reserved under a budget for a call that "
        "sets no bound of its own, as OpenAI's clients may; without it such a call is refused.",
    )
    cache_read_rate: Annotated[float, Field(ge=0, le=1)] = Field(
        0.0, description="Upstream's. Hashed only: how much is read from a cache is measured."
    )

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
        return Price(**self.classes, tiers=tiers, max_output_tokens=self.max_output_tokens)


class Environment(Strict):
    """The resources of every task's environment, in the place of the tasks' own. No leaderboard takes such figures."""

    override_cpus: Cores | None = Field(None, description="Processors.")
    override_memory_mb: Megabytes | None = Field(None, description="Memory, in MB.")
    override_storage_mb: Megabytes | None = Field(None, description="Disk, in MB.")


class Manifest(Strict):
    """A condition: a team and the terms on which it plays."""

    schema_version: Literal["1"] = Field("1", description="The version of this form.")
    condition: Name = Field(description=f"What the team is called, in reports and in names of jobs: {NAME_FORM}.")
    roster: Annotated[list[Member], Field(min_length=1)] = Field(description="Who plays.")
    prices: dict[str, PriceRow] = Field(
        description="What models cost, by `model_revision` (or by `endpoint`): one for each of the roster's."
    )
    trial_budget: TrialBudget = Field(
        description="Time and caps of a trial, all agents together. One that is reached ends the team's work, and what "
        "is there is judged."
    )
    environment: Environment = Field(Environment(), description="Resources in the place of the tasks' own.")
    metadata: dict[str, Any] = Field({}, description="Whatever you like. It is part of the condition's hash.")

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
            return document.problem(
                field, wording.UNKNOWN_FIELD, did_you_mean(str(field[-1]), wording.fields_beside(field, whole))
            )
        case _:
            return document.problem(field, wording.said(details))
