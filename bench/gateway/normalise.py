"""What differs between two runs of the same team, mapped to names and back. Pure.

    >>> names = Names({"ab" * 32: "key worker-1"})
    >>> names.shown("From: " + "ab" * 32 + ", 0.31 s, in /tmp/tmp1x9zq_a")
    'From: ⟨key worker-1⟩, ⟨duration⟩, in /tmp/⟨tmp 1⟩'
    >>> names.said("I was told after 0.31 s; see tmp1x9zq_a")
    'I was told after ⟨duration 1⟩; see ⟨tmp 1⟩'

One table belongs to one agent of one trial. What an agent is shown teaches it values; an answer of its model is given
the names of those that it knows, and keeps everything else (what a model made up is the same in every run). Two kinds
of values are named:

- identities (keys, ids, temporary names) by the order in which they first appeared: equal values have equal names;
- times and durations by nothing in a prompt, for two runs agree in their places alone, and by their place in an
  answer that quotes them.

The same steps give the same names in both runs, as long as both show the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_HEX, _HEX_END = "(?<![0-9a-fA-F])", "(?![0-9a-fA-F])"
_WORD = r"(?:(?<=\\[nrt])|(?<![\w.]))"
"""Where a word may begin: also after a line break that is escaped, in JSON within a text."""
_BECH32 = "[02-9ac-hj-np-z]{58}(?![0-9a-z])"
_DAY, _MONTH = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)", "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_CLOCK = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?"
_ZONE = r"(?:\ ?(?:Z|UTC|GMT|[+-]\d{2}:?\d{2}))?"

_VALUES = re.compile(
    rf"""
      (?P<sig>{_HEX}[0-9a-f]{{128}}{_HEX_END})
    | (?P<id>{_HEX}[0-9a-f]{{64}}{_HEX_END})
    | (?P<hash>{_HEX}[0-9a-f]{{40}}{_HEX_END})
    | (?P<uuid>{_HEX}[0-9a-fA-F]{{8}}(?:-[0-9a-fA-F]{{4}}){{3}}-[0-9a-fA-F]{{12}}{_HEX_END})
    | (?P<npub>npub1{_BECH32})
    | (?P<nsec>nsec1{_BECH32})
    | (?P<note>note1{_BECH32})
    | (?P<tmp>(?<=/tmp/)[\w.-]*\w | {_WORD}tmp[._]?\w{{6,}})
    | (?P<address>0x[0-9a-f]{{8,16}}{_HEX_END})
    | (?P<time>
          (?<![\d.:-])\d{{4}}-\d{{2}}-\d{{2}}(?:[T ]{_CLOCK}{_ZONE})?(?![\d-])
        | {_DAY},?\ (?:{_MONTH}\ +\d{{1,2}}|\d{{1,2}}\ {_MONTH}\ \d{{4}})\ {_CLOCK}{_ZONE}(?:\ \d{{4}})?
        | {_MONTH}\ +\d{{1,2}}\ +(?:\d{{1,2}}:\d{{2}}|\d{{4}})\b
        | (?<![\d.:])\d{{1,2}}:\d{{2}}:\d{{2}}(?:[.,]\d+)?(?![\d:])
        | {_WORD}1[5-9]\d{{8}}(?:\.\d+|\d{{3}})?(?![\w.])
      )
    | (?P<duration>
          {_WORD}\d+m\d+(?:\.\d+)?s\b
        | {_WORD}\d+(?:\.\d+)?\ ?(?:ns|us|µs|ms|s|secs?|seconds?|mins?|minutes?)\b
        | (?:(?<=_ms":)|(?<=_ms\\":)|(?<=_ms":\ ))\d+(?:\.\d+)?
      )
    | (?P<hex>{_WORD}(?=\d*[a-f])(?=[a-f]*\d)[0-9a-f]{{7,12}}(?![0-9a-zA-Z]))
    """,
    re.VERBOSE,
)
"""`hex` are short hashes, such as git's: a letter and a digit tell them from words and numbers. `_ms":` is how Buzz's
shell tool reports what a command took (BUZZ.md section 6)."""

PLACED = frozenset({"time", "duration"})
"""The kinds that are named by their place."""

_MEASURED = re.compile(r"\.|[nuµm]s$")
"""Durations that a clock gave: a fraction, or a unit below the second. `5 s` in an answer is a choice, not a quote."""

_PLACEHOLDER = re.compile("⟨([^⟨⟩]*)⟩")
_BRACKET = "⟨"
_ESCAPED = "⟨bracket⟩"

REFERENCES = frozenset(
    {"id", "tool_use_id", "tool_call_id", "call_id", "item_id", "response_id", "previous_response_id"}
)
"""The fields of all dialects whose value is an id that the upstream made, or an answer to one."""

_PREFIX = re.compile("(?:srv)?toolu(?=_)|tooluse(?=_)|(?:msg|call|resp|fc|rs)(?=_)|chatcmpl(?=-)|gen(?=-)")
"""What upstreams begin their ids with: kept, for readers and for clients that look at it."""


class Names:
    """The names of one agent's values. `known` maps values to names that are given, such as members' keys."""

    def __init__(self, known: Mapping[str, str]) -> None:
        self._names = {value: f"⟨{name}⟩" for value, name in known.items()}
        self._values = {name: value for value, name in self._names.items()}
        self._counts: dict[str, int] = {}
        self._places: dict[str, list[str]] = {kind: [] for kind in PLACED}

    def shown(self, text: str) -> str:
        """A text that the agent was shown, with names; its new values are learned."""

        def name(found: re.Match[str]) -> str:
            kind, value = str(found.lastgroup), found[0]
            if kind in PLACED:
                self._places[kind].append(value)
                return f"⟨{kind}⟩"
            return self._names.get(value) or self._learn(value, kind)

        return _VALUES.sub(name, text.replace(_BRACKET, _ESCAPED))

    def said(self, text: str) -> str:
        """A text of a recorded answer: values that the agent was shown have their names, others stay."""
        return self.said_in_pieces([text])[0]

    def said_in_pieces(self, pieces: Sequence[str]) -> list[str]:
        """`said` for a text that came in pieces. A name is whole, in the piece in which its value ends."""
        return replaced_in_pieces([piece.replace(_BRACKET, _ESCAPED) for piece in pieces], _VALUES, self._quoted)

    def _quoted(self, found: re.Match[str]) -> str:
        kind, value = str(found.lastgroup), found[0]
        if kind not in PLACED:
            return self._names.get(value, value)
        chosen = kind == "duration" and not _MEASURED.search(value)
        if chosen or value not in self._places[kind]:
            return value
        return f"⟨{kind} {self._places[kind].index(value) + 1}⟩"

    def spoken(self, text: str) -> str:
        """A recorded answer's text in this run's values. A name that has none here stays, readable."""
        return _PLACEHOLDER.sub(lambda found: self._value(found[0], found[1]), text)

    def reference_shown(self, value: str) -> str:
        """An upstream's id in a request or in a recorded answer."""
        return self._names.get(value) or self._learn(value, self._prefix(value))

    def reference_spoken(self, name: str) -> str:
        """This run's id for one in a recorded answer: made here, and known from now on."""
        found = _PLACEHOLDER.fullmatch(name)
        if found is None:
            return self.spoken(name)
        if name not in self._values:
            kind, _, number = found[1].partition(" ")
            value = f"{kind}_{number}"
            self._values[name], self._names[value] = value, name
            self._counts[kind] = self._counts.get(kind, 0) + 1
        return self._values[name]

    def _prefix(self, value: str) -> str:
        found = _PREFIX.match(value)
        return found[0] if found else "ref"

    def _learn(self, value: str, kind: str) -> str:
        self._counts[kind] = self._counts.get(kind, 0) + 1
        name = f"⟨{kind} {self._counts[kind]}⟩"
        self._names[value], self._values[name] = name, value
        return name

    def _value(self, whole: str, name: str) -> str:
        if whole == _ESCAPED:
            return _BRACKET
        kind, _, number = name.partition(" ")
        if kind in PLACED and number.isdecimal():
            places = self._places[kind]
            return places[int(number) - 1] if int(number) <= len(places) else whole
        return self._values.get(whole, whole)


def replaced_in_pieces(
    pieces: Sequence[str], pattern: re.Pattern[str], replacement: Callable[[re.Match[str]], str]
) -> list[str]:
    """The pieces of a text with what the pattern finds in the whole of it replaced, in the piece where it ends."""
    whole, out, begin, at = "".join(pieces), [], 0, 0
    found = pattern.finditer(whole)
    match = next(found, None)
    for piece in pieces:
        end, text = begin + len(piece), ""
        while match is not None and match.end() <= end:
            text += whole[at : match.start()] + replacement(match)
            at, match = match.end(), next(found, None)
        # What of a match that goes on is here is put with the rest of it.
        until = end if match is None else max(at, min(end, match.start()))
        out.append(text + whole[at:until])
        begin, at = end, until
    return out


type Texts = Callable[[str], str]


def mapped(value: Any, text: Texts, reference: Texts) -> Any:
    """A JSON value with `text` applied to its strings, and `reference` to those that are an upstream's ids.

    The inputs of a tool (`input` with an object) are the tool's own: an `id` there is just a text.
    """
    if isinstance(value, str):
        return text(value)
    if isinstance(value, list):
        return [mapped(part, text, reference) for part in value]
    if isinstance(value, dict):
        return {key: _field(key, part, text, reference) for key, part in value.items()}
    return value


def _field(key: str, part: Any, text: Texts, reference: Texts) -> Any:
    if isinstance(part, str) and key in REFERENCES:
        return reference(part)
    return mapped(part, text, text if key == "input" and isinstance(part, dict) else reference)
