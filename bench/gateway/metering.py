"""What an answer says of its own use: of a whole body at once, of a stream event by event as it passes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import orjson

from bench.gateway import answers
from bench.gateway.sse import Splitter, data_of
from bench.gateway.wire import Progress, Wire
from bench.prices import UNKNOWN, Tokens

_DONE = b"[DONE]"
"""The data of the last event of OpenAI's Chat Completions."""


@dataclass(frozen=True)
class Reported:
    """What an answer reported. `usage` is as the upstream sent it, `tokens` what of it is final.

    `model` and `provider` are who the answer says it is from ("Public cases", case 62), `tool_calls` how many it has.
    `failed` is an error that came in the middle of a stream.
    """

    usage: Any = None
    tokens: Tokens = UNKNOWN
    model: str | None = None
    provider: str | None = None
    tool_calls: int | None = None
    failed: bool = False


NO_REPORT = Reported()


def read_whole(wire: Wire, body: bytes) -> Reported:
    """What a whole body reports, whatever it is."""
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        answer = None
    if not isinstance(answer, dict):
        return Reported(tokens=wire.tokens(None))
    usage = answer.get("usage")
    return Reported(usage, wire.tokens(usage), *_source(answer), answers.tool_calls(answer))


class StreamMeter:
    """Follows a stream. `feed` gives back what to pass on: all of it, unless a report is to be left out."""

    def __init__(self, wire: Wire, *, leave_out_report: bool) -> None:
        self._wire, self._leave_out = wire, leave_out_report
        self._telling = _telling(wire.marks)
        self._events = Splitter()
        self._digest = hashlib.sha256()
        self._usage: Any = None
        self._progress: Progress = "open"
        self._source: tuple[str | None, str | None] | None = None
        self._tools: set[Any] = set()
        self.is_whole = False
        """Whether the dialect's own last event has come: a connection may end without it."""

    def feed(self, chunk: bytes) -> bytes:
        """Take the next chunk. Where a report is to be left out, an event that isn't whole yet is held back."""
        self._digest.update(chunk)
        events = self._events.feed(chunk)
        kept = [event for event in events if not self._follow(event)]
        return b"".join(kept) if self._leave_out else chunk

    def end(self) -> bytes:
        """The stream ended of its own: what it told is final. Gives what was held back."""
        if self._progress == "told":
            self._progress = "final"
        return self._events.rest if self._leave_out else b""

    @property
    def is_between_events(self) -> bool:
        """Whether all that was passed on are whole events."""
        return self._leave_out or not self._events.rest

    @property
    def sha256(self) -> str:
        """The digest of what the upstream has sent."""
        return self._digest.hexdigest()

    @property
    def reported(self) -> Reported:
        """What is known by now. The output is unknown until it is final: it may still grow.

        Some servers begin with a prompt of 0 tokens and tell its length at the end: until then it is unknown, too.
        """
        tokens = self._wire.tokens(self._usage)
        if self._progress != "final":
            tokens = replace(tokens, output=None) if tokens.prompt else UNKNOWN
        tools = len(self._tools) if self.is_whole else None
        return Reported(self._usage, tokens, *(self._source or (None, None)), tools, self._progress == "failed")

    def _follow(self, event: bytes) -> bool:
        """Read an event; whether it is a report alone."""
        if self._source is not None and self._telling(event) is None:
            return False
        data = data_of(event)
        try:
            told = orjson.loads(data)
        except orjson.JSONDecodeError:
            self.is_whole = self.is_whole or data.strip() == _DONE
            return False
        if not isinstance(told, dict):
            return False
        if self._source is None:
            self._source = _source(told)
        seen = self._wire.follow(self._usage, told)
        self._tools.update(seen.tools)
        self.is_whole = self.is_whole or seen.is_last
        if self._progress != "failed":
            self._usage = seen.usage
            self._progress = seen.progress if seen.progress != "open" else self._progress
        return self._wire.is_report_alone(told)


@cache
def _telling(marks: tuple[bytes, ...]) -> Callable[[bytes], re.Match[bytes] | None]:
    """Looks for what an event has that tells anything of its stream's use or end."""
    return re.compile(b"|".join(map(re.escape, (_DONE, *marks)))).search


def _source(answer: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """(model, provider) that an answer, or a stream's first event, names. Only OpenRouter names its provider."""
    inner = answer.get("message") or answer.get("response")
    named = inner if isinstance(inner, dict) else answer
    model, provider = named.get("model"), answer.get("provider")
    return (model if isinstance(model, str) else None, provider if isinstance(provider, str) else None)
