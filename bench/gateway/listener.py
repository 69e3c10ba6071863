"""One agent's requests as a cassette compares them: what doesn't bear on the answer is out, what differs has names."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from bench.gateway.cassette import conversation_of
from bench.gateway.normalise import Names, mapped
from bench.gateway.redaction import Redaction

CACHE_MARK = "cache_control"
"""Left out: it moves along with the end of a conversation."""

LONGEST_WORD = 2_000
"""A longer text without a blank is data, such as an image: its digest stands for it."""

_BLANK = re.compile(r"\s")


class Listener:
    """Names the values in an agent's requests, one after the other.

    A request repeats most of the one before. What is repeated is not looked at again: a time in it would count twice.
    """

    def __init__(self, names: Names, redact: Redaction) -> None:
        self._names, self._redact = names, redact
        self._raw: dict[str, Any] = {}
        self._named: dict[str, Any] = {}

    def listen(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The request, named. It is what the agent was shown last."""
        raw = {key: _without_marks(value) for key, value in body.items()}
        talk = conversation_of(raw)
        named = {key: self._field(key, value) for key, value in raw.items() if key != talk}
        named[talk] = self._messages(raw.get(talk) or [], self._raw.get(talk) or [], self._named.get(talk) or [])
        self._raw, self._named = raw, named
        return named

    def _field(self, key: str, value: Any) -> Any:
        known = key in self._raw and self._raw[key] == value
        return self._named[key] if known else self._name(value)

    def _messages(self, raw: list[Any], raw_before: list[Any], named_before: list[Any]) -> list[Any]:
        named = []
        for number, message in enumerate(raw):
            known = number < len(raw_before) and raw_before[number] == message
            named.append(named_before[number] if known else self._name(message))
        return named

    def _name(self, value: Any) -> Any:
        return mapped(value, self._text, self._names.reference_shown)

    def _text(self, text: str) -> str:
        if len(text) > LONGEST_WORD and not _BLANK.search(text):
            return f"⟨data {hashlib.sha256(text.encode()).hexdigest()}⟩"
        return self._names.shown(self._redact(text))


def _without_marks(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_marks(part) for part in value]
    if isinstance(value, dict):
        return {key: _without_marks(part) for key, part in value.items() if key != CACHE_MARK}
    return value
