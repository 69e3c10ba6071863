"""No secret comes onto a cassette, whatever its form (public case 45)."""

from __future__ import annotations

import base64
from urllib.parse import quote

import pytest

from bench.gateway.redaction import Redaction

KEY = "canary+key/5f0c1d7e9b=="


@pytest.mark.parametrize(
    "form",
    [
        KEY,
        quote(KEY, safe=""),
        base64.b64encode(KEY.encode()).decode(),
        base64.urlsafe_b64encode(KEY.encode()).decode().rstrip("="),
        KEY.encode().hex(),
    ],
)
def test_a_known_secret_is_found_in_every_usual_form(form: str) -> None:
    assert Redaction([KEY])(f"a {form} b") == "a [secret] b"


@pytest.mark.parametrize(
    "shape",
    [
        "sk-" + "ant-api03-" + "a1B2" * 6,
        "AIza" + "x" * 35,
        "AKIAIOSFODNN7EXAMPLE",
        "ghp_" + "a" * 36,
        "xoxb-1234567890-abc",
        "dtn_" + "a" * 20,
    ],
)
def test_what_looks_like_a_providers_key_is_taken_for_one(shape: str) -> None:
    assert Redaction([])(f"export KEY={shape}") == "export KEY=[secret]"


@pytest.mark.parametrize(
    "text",
    [
        "ab" * 32,
        "task-force",
        "sketch",
        "an Asian market",
        "skip-this",
        "the disk-usage-of-a-partition",
        "sk-learn-compatible-models",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert Redaction([KEY, "short"])(text) == text


def test_a_secret_that_is_learned_later_is_kept_out_from_then_on() -> None:
    redact = Redaction([])
    redact.learn("token-of-an-agent")
    assert redact("x token-of-an-agent") == "x [secret]"
