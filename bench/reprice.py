"""`inv reprice`: what a job's measured tokens cost at other prices. Receipts stay as they are.

`inv prices` gives a start value for a model's row, from the table that LiteLLM ships.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from bench.costs import TOKEN_CLASSES, calls_of, tokens_of, usd, went_out
from bench.errors import InvalidInput, MachineLacks
from bench.manifest.pricesheet import PriceSheet, load
from bench.nearest import did_you_mean
from bench.prices import cost_usd_micros
from bench.records import RECEIPTS, read_plan
from bench.settings import Settings

LITELLM_TABLE = "model_prices_and_context_window_backup.json"
LITELLM_ROWS = {
    "input": "input_cost_per_token",
    "cached_input": "cache_read_input_token_cost",
    "cache_write": "cache_creation_input_token_cost",
    "cache_write_1h": "cache_creation_input_token_cost_above_1hr",
    "output": "output_cost_per_token",
}
"""Our fields and LiteLLM's, which are USD per token."""

LITELLM_MOST = "max_output_tokens"
"""Of both: the most that the model can answer with."""


@dataclass(frozen=True)
class Repriced:
    """One model's calls at the booked and at the other prices, in micro-dollars.

    `unknown_calls` have tokens that nobody reported: no price makes them known; `unbooked_calls` were booked without a
    cost. `unpriced` says that the sheet lacks
    the model: its cost stays unknown, too.
    """

    model: str
    calls: int
    unknown_calls: int
    booked_usd_micros: int
    other_usd_micros: int | None
    unbooked_calls: int = 0

    @property
    def unpriced(self) -> bool:
        return self.other_usd_micros is None


def cost_anew(receipts: Path, sheet: PriceSheet, warnings: list[str]) -> list[Repriced]:
    """Every model's calls at the sheet's prices, in the order of their first call."""
    calls: dict[str, list[Mapping[str, Any]]] = {}
    for receipt in calls_of(receipts, warnings):
        if went_out(receipt):
            calls.setdefault(str(receipt.get("model")), []).append(receipt)
    return [_model(model, made, sheet) for model, made in calls.items()]


def _model(model: str, made: list[Mapping[str, Any]], sheet: PriceSheet) -> Repriced:
    price = sheet.prices.get(model)
    costs = [None if price is None else cost_usd_micros(price, tokens_of(receipt)) for receipt in made]
    return Repriced(
        model=model,
        calls=len(made),
        unknown_calls=sum(any(receipt.get(name) is None for name in TOKEN_CLASSES) for receipt in made),
        booked_usd_micros=sum(receipt.get("cost_usd_micros") or 0 for receipt in made),
        other_usd_micros=None if price is None else sum(cost or 0 for cost in costs),
        unbooked_calls=sum(receipt.get("cost_usd_micros") is None for receipt in made),
    )


def reprice(settings: Settings, job: str, prices: str, *, as_json: bool) -> None:
    """The task. Raises InvalidInput: no job, no price sheet; once the rest is shown, a model that the sheet lacks."""
    from bench.report import directories_of

    if not prices:
        raise InvalidInput.of("--prices", "no price sheet is named", "give a file with `dated` and `prices`")
    sheet = load(Path(prices))
    (directory,) = directories_of(settings.jobs_dir, [job] if job else [])
    warnings: list[str] = []
    rows = cost_anew(directory / RECEIPTS, sheet, warnings)
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)
    print(json.dumps(_json(directory, sheet, rows), indent=2) if as_json else "\n".join(_lines(directory, sheet, rows)))
    if unpriced := [row.model for row in rows if row.unpriced]:
        raise InvalidInput.of(
            prices, f"has no price for {', '.join(unpriced)}", "`inv prices --model …` gives a start value"
        )


def _lines(directory: Path, sheet: PriceSheet, rows: list[Repriced]) -> list[str]:
    unasked = read_plan(directory).unasked
    kind = f" ({unasked})" if unasked else ""
    lines = [f"{directory.name}{kind} at the prices of {sheet.dated} ({sheet.sha256[:12]}):"]
    for row in rows:
        now = "not in the sheet" if row.other_usd_micros is None else usd(row.other_usd_micros)
        unknown = f", {row.unknown_calls} with unknown tokens" if row.unknown_calls else ""
        made = f"{row.calls} call{'' if row.calls == 1 else 's'}{unknown}"
        lines.append(f"  {row.model}: {usd(row.booked_usd_micros)} -> {now}  ({made})")
    known = sum(row.other_usd_micros or 0 for row in rows)
    more = "+?" if any(row.unpriced or row.unknown_calls for row in rows) else ""
    other = "unknown" if rows and all(row.unpriced for row in rows) else f"{usd(known)}{more}"
    booked = (
        f"{usd(sum(row.booked_usd_micros for row in rows))}{'+?' if any(row.unbooked_calls for row in rows) else ''}"
    )
    return [*lines, f"  all: {booked} -> {other}"]


def _json(directory: Path, sheet: PriceSheet, rows: list[Repriced]) -> dict[str, Any]:
    return {
        "job": directory.name,
        "dated": sheet.dated.isoformat(),
        "prices_sha256": sheet.sha256,
        "models": {
            row.model: {
                "calls": row.calls,
                "unknown_calls": row.unknown_calls,
                "booked_usd_micros": row.booked_usd_micros,
                "cost_usd_micros": row.other_usd_micros,
            }
            for row in rows
        },
    }


def start_value(model: str) -> dict[str, str]:
    """A model's row, in USD per million tokens, with the most that it can answer, from LiteLLM's table.

    Raises InvalidInput for a model that the table lacks.

    The table is read as a file: importing LiteLLM takes seconds.
    """
    spec = importlib.util.find_spec("litellm")
    table = Path(spec.origin).parent / LITELLM_TABLE if spec and spec.origin else None
    if table is None or not table.is_file():
        raise MachineLacks.of(
            "prices", "LiteLLM's price table is not here", "write the model's row from its provider's page"
        )
    known: dict[str, dict[str, Any]] = json.loads(table.read_text(encoding="utf-8"), parse_float=str)
    if model not in known or LITELLM_ROWS["input"] not in known[model]:
        near = did_you_mean(model, known) or "give the name that its provider uses, such as claude-sonnet-4-6"
        raise InvalidInput.of("--model", f"LiteLLM's table has no price for {model!r}", near)
    found = {ours: known[model][theirs] for ours, theirs in LITELLM_ROWS.items() if theirs in known[model]}
    most = known[model].get(LITELLM_MOST)
    return {
        ours: format((Decimal(str(usd_per_token)) * 1_000_000).normalize(), "f")
        for ours, usd_per_token in found.items()
    } | ({LITELLM_MOST: str(most)} if type(most) is int and most > 0 else {})


def prices(model: str) -> None:
    """The task: print a model's row for a manifest or a price sheet."""
    if not model:
        raise InvalidInput.of("--model", "no model is named", "give the name that its provider uses")
    row = ", ".join(f"{name}: {rate}" for name, rate in start_value(model).items())
    print("# A start value from LiteLLM's table; check it against the provider's page, and date it.")
    print(f"{model}: {{{row}}}")
