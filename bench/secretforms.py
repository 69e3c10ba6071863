"""How secrets look: the shapes of the usual providers' keys, and the forms that a known value can take.

One list for all: for what a cassette must not hold (`bench/gateway/redaction.py`), and what a pack is refused for
(`bench/pack/scan.py`).
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from urllib.parse import quote

SHORTEST = 8
"""A shorter value is no secret, and would be found in ordinary words."""

FEWEST_LETTERS = 5
"""Different ones: `--------` and `xxxxxxxx` stand for a value that isn't given."""

LONGEST_WORD, LONGEST_NUMBER = 20, 16
"""What is as long is no word or name, and no date, size or identifier, that turns up by chance."""

BETWEEN_WORDS = re.compile(r"[\s_.,:/-]+")

TOKEN_PREFIX = "bzbtok-"  # noqa: S105  (what all of them begin with)
"""Of the tokens that the gateway gives to agents: it makes them known as such wherever they turn up."""

_DIGIT = r"(?=[A-Za-z_-]{0,60}[0-9])"
"""Keys are random: one without a digit is a word such as `sk-learn-compatible-estimators`.

So many letters are looked at and no more: a text of many beginnings in a row would take for ever.
"""


def _begins(prefix: str) -> str:
    """What a key begins with, and no word ends with. Its letters come first, by which a search is ten times as fast."""
    return rf"{prefix}(?<![A-Za-z0-9]{prefix})"


SHAPES = {
    "an API key (sk-…)": rf"{_begins('sk-')}{_DIGIT}[A-Za-z0-9_-]{{16,}}",
    "a Google key (AIza…)": r"AIza[A-Za-z0-9_-]{35}",
    "an AWS key (AKIA…, ASIA…)": r"A(?:KIA(?<![A-Za-z0-9]AKIA)|SIA(?<![A-Za-z0-9]ASIA))[A-Z0-9]{16}",
    "a GitHub token (gh._…)": r"gh[pousr]_[A-Za-z0-9]{30,}",
    "a GitHub token (github_pat_…)": r"github_pat_[A-Za-z0-9_]{30,}",
    "a Slack token (xox.-…)": r"xox[abprs]-[A-Za-z0-9-]{10,}",
    "a Daytona key (dtn_…)": rf"{_begins('dtn_')}[A-Za-z0-9]{{16,}}",
    "a Hugging Face token (hf_…)": rf"{_begins('hf_')}[A-Za-z0-9]{{30,}}",
    "a gateway token (bzbtok-…)": rf"{TOKEN_PREFIX}[A-Za-z0-9_-]{{40,}}",
    "a Nostr secret key (nsec1…)": rf"{_begins('nsec1')}[02-9ac-hj-np-z]{{58}}(?![0-9a-z])",
    "a key in a header": (
        r"(?i:\b(?:x-api-key|api-key|x-goog-api-key)\\?[\"']?\s*[:=]\s*\\?[\"']?"
        rf"|\bbearer(?:\s|%20|\+)+){_DIGIT}[A-Za-z0-9_./+=-]{{16,}}"
    ),
    "a Groq key (gsk_…)": rf"{_begins('gsk_')}[A-Za-z0-9]{{40,}}",
    "an xAI key (xai-…)": rf"{_begins('xai-')}[A-Za-z0-9]{{40,}}",
    "a GitLab token (glpat-…)": rf"{_begins('glpat-')}{_DIGIT}[A-Za-z0-9_-]{{20,}}",
    "a signed token (JWT)": r"eyJ(?<![A-Za-z0-9_-]eyJ)[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{20,}",
    "an AWS secret key": (r"(?i:aws_?secret_?(?:access_?)?key)[\s\"'\\:=>]{1,8}[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])"),
    "a private key": r"-----BEGIN(?: |%20|\+)(?:[A-Z]+(?: |%20|\+))*PRIVATE(?: |%20|\+)KEY-----",
}
"""By what they are called in a message: regular expressions, for texts and for bytes. The usual ones of case 45."""


def is_weak(value: str) -> bool:
    """Whether a value may turn up by chance in what has nothing to do with it: too short, monotonous, words, a number.

    >>> [is_weak(one) for one in ("test", "disabled", "Not-Required", "20261130", "00000000-0000")]
    [True, True, True, True, True]
    >>> [is_weak(one) for one in ("hunter22", "kXqZvJwPtR", "correct horse battery staple")]
    [False, False, False]
    """
    if len(value) < SHORTEST or len(set(value)) < FEWEST_LETTERS:
        return True
    if not any(one.isalpha() for one in value):
        return len(value) < LONGEST_NUMBER
    return len(value) < LONGEST_WORD and all(map(_is_word, BETWEEN_WORDS.split(value)))


def _is_word(text: str) -> bool:
    """Letters alone: small ones, capitals, or one capital to begin with. Random ones are mixed."""
    return not text or (text.isalpha() and (text.isupper() or text[1:].islower() or len(text) == 1))


def forms(secret: str) -> frozenset[str]:
    """The texts by which a secret can be found whole: as it is, URL-encoded, in hex, in Base64, in JSON's escapes."""
    escaped = {json.dumps(secret, ensure_ascii=pure)[1:-1] for pure in (True, False)}
    found = {secret, quote(secret, safe=""), quote(secret), *escaped, *(one.replace("/", "\\/") for one in escaped)}
    return frozenset(form for form in found | encoded(secret.encode()) if len(form) >= SHORTEST)


def encoded(data: bytes) -> frozenset[str]:
    """The texts by which bytes can be found whole: in hex and in Base64, alone or among other bytes."""
    found = {data.hex(), data.hex().upper()}
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        whole = encode(data).decode()
        found |= {whole, whole.rstrip("="), *(_within(encode, before, data) for before in range(3))}
    return frozenset(form for form in found if len(form) >= SHORTEST)


def halves(secret: str) -> tuple[str, str]:
    """Of a secret that is cut in two, wherever it is cut, one of these is whole."""
    half = -(-len(secret) // 2)
    return secret[:half], secret[-half:]


def _within(encode: Callable[[bytes], bytes], before: int, data: bytes) -> str:
    """What Base64 makes of the data after so many bytes of something: the letters in which no neighbour has a part."""
    letters = encode(b"\0" * before + data).decode()
    shared = {0: 0, 1: 3, 2: 2}[(before + len(data)) % 3]  # at the end, padding included
    return letters[-(-before * 8 // 6) : len(letters) - shared]
