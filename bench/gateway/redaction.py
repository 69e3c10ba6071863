"""What must not be in a cassette: the secrets that the gateway knows, in all usual forms, and what looks like one."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Sequence
from urllib.parse import quote

from bench.gateway.normalise import replaced_in_pieces

SECRET = "[secret]"  # noqa: S105  (what stands for one)

SHORTEST = 8
"""A shorter value is no secret, and would be found in ordinary words."""

_SHAPES = (
    r"sk-[A-Za-z0-9_-]{16,}",
    r"AIza[A-Za-z0-9_-]{35}",
    r"(?:AKIA|ASIA)[A-Z0-9]{16}",
    r"gh[pousr]_[A-Za-z0-9]{30,}",
    r"github_pat_[A-Za-z0-9_]{30,}",
    r"xox[abprs]-[A-Za-z0-9-]{10,}",
    r"dtn_[A-Za-z0-9]{16,}",
)
"""The usual providers' ("Public cases", case 45)."""


class Redaction:
    """Replaces secrets in texts. Has no repr that would show them."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._forms: set[str] = set()
        self.learn(*secrets)

    def learn(self, *secrets: str) -> None:
        """Keep these out, too."""
        self._forms |= {form for secret in secrets if len(secret) >= SHORTEST for form in _forms(secret)}
        words = [re.escape(form) for form in sorted(self._forms, key=len, reverse=True)]
        self._found = re.compile("|".join([*words, *_SHAPES]))

    def __call__(self, text: str) -> str:
        return self._found.sub(SECRET, text)

    def in_pieces(self, pieces: Sequence[str]) -> list[str]:
        """The pieces of one text without secrets, also those that run over several."""
        return replaced_in_pieces(pieces, self._found, lambda _: SECRET)


def _forms(secret: str) -> set[str]:
    data = secret.encode()
    encoded = {base64.b64encode(data).decode(), base64.urlsafe_b64encode(data).decode()}
    return {secret, quote(secret, safe=""), data.hex(), *encoded, *(text.rstrip("=") for text in encoded)}
