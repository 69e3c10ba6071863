"""Finds a secret in bytes: plain, Base64, hex, URL-encoded, in JSON's escapes, and cut in two."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from urllib.parse import quote, quote_plus


def forms(secret: str) -> dict[bytes, str]:
    """What to look for, each with the name of its form. Each half of the secret counts as much as the whole."""
    middle = len(secret) // 2
    found: dict[bytes, str] = {}
    for part, name in ((secret, "whole"), (secret[:middle], "first half"), (secret[middle:], "second half")):
        found.update({form: f"{name}, {how}" for form, how in _forms(part)})
    return found


def search(data: bytes, wanted: dict[bytes, str]) -> list[str]:
    """The forms that are in the data."""
    return sorted({name for form, name in wanted.items() if form in data})


def _forms(text: str) -> Iterator[tuple[bytes, str]]:
    raw = text.encode()
    yield raw, "plain"
    yield text[::-1].encode(), "backwards"
    yield raw.hex().encode(), "hex"
    yield raw.hex().upper().encode(), "hex"
    yield text.replace("/", "\\/").encode(), "JSON"
    yield quote(text).encode(), "URL-encoded"
    yield quote_plus(text).encode(), "URL-encoded"
    yield quote(text, safe="").lower().encode(), "URL-encoded"
    yield "".join(f"%{byte:02X}" for byte in raw).encode(), "URL-encoded"
    # Base64 takes three bytes at a time: what stands before the secret decides on how its letters come out.
    for before in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            letters = encode(b"\0" * before + raw)
            yield letters[-(-before * 8 // 6) : len(letters) - 4], "Base64"
