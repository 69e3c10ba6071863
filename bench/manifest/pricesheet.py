"""A dated price sheet as people write it, for costing measured tokens anew.

    dated: 2026-07-01
    prices:
      claude-sonnet-4-6: {input: 3, cached_input: 0.3, cache_write: 3.75, cache_write_1h: 6, output: 15}

USD per million tokens, with the same rows, checks and tiers as in a manifest.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from bench.errors import raise_problems
from bench.manifest.schema import PriceRow, Strict, explain
from bench.prices import Price, sheet_sha256
from bench.reading import yamlfile


class Sheet(Strict):
    """The form of the file."""

    dated: datetime.date = Field(description="The day on which these were the prices.")
    prices: Annotated[dict[str, PriceRow], Field(min_length=1)] = Field(
        description="What models cost, by the names that receipts have; each as in a manifest."
    )


@dataclass(frozen=True)
class PriceSheet:
    """Prices by model, the day they were true, and the hash that receipts name."""

    dated: datetime.date
    prices: Mapping[str, Price]

    @property
    def sha256(self) -> str:
        return sheet_sha256(self.prices)


def load(path: Path) -> PriceSheet:
    """The sheet in a file. Raises InvalidInput with every fault, each with its line and field."""
    document = yamlfile.read(path, what="price sheet")
    try:
        sheet = Sheet.model_validate(document.data)
    except ValidationError as error:
        raise_problems(explain(document, details, Sheet) for details in error.errors(include_url=False))
        raise
    return PriceSheet(sheet.dated, {model: row.rates() for model, row in sheet.prices.items()})
