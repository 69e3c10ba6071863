"""What must not be in a cassette: the secrets that the gateway knows, in all usual forms, and what looks like one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from bench.gateway.normalise import replaced_in_pieces
from bench.secretforms import SHAPES, SHORTEST, forms

SECRET = "[secret]"  # noqa: S105  (what stands for one)


class Redaction:
    """Replaces secrets in texts. Has no repr that would show them."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._forms: set[str] = set()
        self.learn(*secrets)

    def learn(self, *secrets: str) -> None:
        """Keep these out, too."""
        self._forms |= {form for secret in secrets if len(secret) >= SHORTEST for form in forms(secret)}
        words = [re.escape(form) for form in sorted(self._forms, key=len, reverse=True)]
        self._found = re.compile("|".join([*words, *SHAPES.values()]))

    def __call__(self, text: str) -> str:
        return self._found.sub(SECRET, text)

    def in_pieces(self, pieces: Sequence[str]) -> list[str]:
        """The pieces of one text without secrets, also those that run over several."""
        return replaced_in_pieces(pieces, self._found, lambda _: SECRET)
