"""What an upstream's error means for its job: nobody should go on, or try again, and when. Pure.

>>> of(429, {"retry-after": "7"}, b"", now=NOW)
Trouble(kind='busy', retry_after_s=7.0)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Literal

import orjson

REFUSING = frozenset((401, 402, 403))
"""Statuses after which no call of the job would fare better: a wrong key, no money ("Public cases", case 10)."""

NO_MONEY = ("insufficient_quota", "credit balance is too low")
"""How OpenAI (in a 429) and Anthropic (in a 400) say that the account is empty: as good as 402."""


@dataclass(frozen=True)
class Trouble:
    """`refused`: stop. `busy`: try again, not before `retry_after_s` where the upstream says when."""

    kind: Literal["refused", "busy"]
    retry_after_s: float | None = None


def of(status: int, headers: Mapping[str, str], body: bytes, *, now: datetime) -> Trouble | None:
    """The trouble that an answer of this status means, None for any other answer."""
    if status in REFUSING or (status in (400, 429) and _says_no_money(body)):
        return Trouble("refused")
    if status == 429 or status >= 500:
        return Trouble("busy", retry_after_s(headers, now))
    return None


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """How long the upstream asks to wait: seconds, or a date by its own clock; None where it doesn't say.

    OpenAI's `retry-after-ms` is finer, and comes first.
    """
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * unit_s
        except ValueError:
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    at = _date(headers.get("retry-after", ""))
    return None if at is None else max(0.0, (at - (_date(headers.get("date", "")) or now)).total_seconds())


def _date(text: str) -> datetime | None:
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, TypeError):
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _says_no_money(body: bytes) -> bool:
    try:
        error = orjson.loads(body)["error"]
        words = " ".join(str(error.get(name)) for name in ("type", "code", "message"))
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        return False
    return any(phrase in words for phrase in NO_MONEY)
