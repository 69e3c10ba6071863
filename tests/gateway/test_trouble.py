"""What an upstream's errors mean: stop, or wait, and how long ("Public cases", cases 10 and 34)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from bench.gateway.trouble import Trouble, of, retry_after_s

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize("status", [401, 402, 403])
def test_a_refused_key_or_account_is_final(status: int) -> None:
    assert of(status, {}, b"", now=NOW) == Trouble("refused")


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (429, b'{"error": {"type": "insufficient_quota", "code": "insufficient_quota", "message": "You exceeded"}}'),
        (400, b'{"error": {"type": "invalid_request_error", "message": "Your credit balance is too low to access"}}'),
    ],
)
def test_an_empty_account_is_final_whatever_its_status(status: int, body: bytes) -> None:
    assert of(status, {"retry-after": "1"}, body, now=NOW) == Trouble("refused")


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 529])
def test_a_busy_upstream_passes(status: int) -> None:
    assert of(status, {}, b"<html>", now=NOW) == Trouble("busy")
    assert of(status, {"retry-after": "7"}, b"[]", now=NOW) == Trouble("busy", 7.0)


@pytest.mark.parametrize("status", [200, 302, 400, 404, 413, 422])
def test_other_answers_are_no_trouble(status: int) -> None:
    assert of(status, {"retry-after": "7"}, b'{"error": "x"}', now=NOW) is None


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7200"}, 7200),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "0"}, 0),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": "Mon, 30 Nov 2026 12:01:30 GMT"}, 90),
        ({"retry-after": "Mon, 30 Nov 2026 11:00:00 GMT"}, 0),
        ({"retry-after": "Mon, 30 Nov 2026 13:01:00 GMT", "date": "Mon, 30 Nov 2026 13:00:00 GMT"}, 60),
        ({"retry-after": "Mon, 30 Nov 2026 12:01:30 -0000"}, 90),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
    ],
)
def test_when_to_come_back_is_seconds_or_a_date_by_the_upstreams_clock(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert retry_after_s(headers, NOW) == seconds
