"""Looks for secrets in what is to leave this machine: those that are ours, by their values, and what looks like one.

A secret that is ours is found in plain, in hex, as `nsec`, in Base64, URL-encoded, and cut in two (over two fields,
say). Shapes are looked for in Base64 and over two neighbouring strings of JSON, too. A finding says where and what, and
never shows it (public case 45). Archives are looked into; one that can't be is a finding, too.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from bench.nostr import Key
from bench.pack import archives
from bench.secretforms import SHAPES, SHORTEST, encoded, forms, halves

KEY_HEX = re.compile(rb"(?<![0-9A-Fa-f])[0-9A-Fa-f]{64}(?![0-9A-Fa-f])")
KEY_BASE64 = re.compile(rb"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{43}(?![A-Za-z0-9+/_-])")
KEY_BYTES = 32
BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{24,}")
HEX = re.compile(rb"[0-9A-Fa-f]{32,}")
WIDE = re.compile(rb"(?:[ -~]\0{1,3}){8}")
ESCAPED = re.compile(rb"\\u00([2-7][0-9A-Fa-f])|%([2-7][0-9A-Fa-f])")
"""Letters in JSON's and in URLs' escapes; ends of lines stay as they are, and so do the lines' numbers."""

STANDARD_LETTERS = bytes.maketrans(b"-_", b"+/")
BREAK = re.compile(rb"(?:\s|\\[nrt])+")
WRAPPED = re.compile(rb"(?<![A-Za-z0-9+/_-])(?:[A-Za-z0-9+/_-]{20,}+(?:\s|\\[nrt])++)+[A-Za-z0-9+/_-]+")
"""Lines of Base64 or hex, as programs break them, also with their ends as JSON escapes them."""

JOINED_CHARACTERS = 200
"""Of each of two neighbours: longer than any key."""

PRIVATE_KEY_CHARACTERS = 16_384
"""More than the longest private key has."""

LONG_HALF = 16
"""Shorter halves are looked for only with a digit in them: else they may be words."""

FINGERPRINT = 12

_SHAPES_OF_BYTES = {what: re.compile(shape.encode()) for what, shape in SHAPES.items()}
_SHAPES_OF_TEXTS = {what: re.compile(shape) for what, shape in SHAPES.items()}
_ANY_SHAPE_OF_BYTES = re.compile("|".join(SHAPES.values()).encode())
_ANY_SHAPE_OF_TEXTS = re.compile("|".join(SHAPES.values()))


@dataclass(frozen=True, order=True)
class Finding:
    """A secret in a file. `mark` tells one that only looks like one from others: the beginning of its SHA-256."""

    place: str
    what: str
    mark: str = ""

    def __str__(self) -> str:
        return f"{self.place}: holds {self.what}" + (f" [{self.mark}]" if self.mark else "")


class Scanner:
    """Knows what to look for. Has no repr that would show it.

    `secrets` are the values by their names. `publics` are public keys by the names of whose they are: any 64 hex digits
    that are the secret key of one of them are a finding; an event's id, or a public key, is none.
    """

    def __init__(self, secrets: Mapping[str, str], publics: Mapping[str, str], let_be: Collection[str] = ()) -> None:
        self._needles = {name: (*_wholes(secret), *_halves(secret)) for name, secret in secrets.items()}
        self._publics = dict(publics)
        self._let_be = frozenset(let_be)
        self.strange = set(let_be)
        """The marks to let be that no finding has had yet."""
        self._looked_at: dict[bytes, str] = {}

    def scan(self, data: bytes, shown: str) -> list[Finding]:
        """What is in a file, in what it contains as an archive, and in its name: `shown`, which the findings give.

        A name need not be UTF-8: an agent gave it.
        """
        found = self._scan(data, shown)
        try:
            for name, content in archives.opened(data):
                found += self._scan(content, f"{shown}/{name}")
        except archives.Unreadable as error:
            found.append(Finding(printable(shown), f"{error}, which can't be looked into", _mark(data)))
        for at, inner in _packed_in_base64(data):
            found += (
                replace(one, place=f"{_line(printable(shown), data, at)}, Base64") for one in self.scan(inner, "")
            )
        self.strange -= {finding.mark for finding in found}
        return sorted({finding for finding in found if finding.mark not in self._let_be or not finding.mark})

    def _scan(self, data: bytes, shown: str) -> list[Finding]:
        name, shown = shown.encode(errors="surrogateescape"), printable(shown)
        found = [replace(finding, place=shown) for finding in self._known(name, shown)]
        for text in _readings(data):
            found += self._known(text, shown)
            found += self._keys(text, shown)
            found += self._shapes(text, shown)
            found += self._encoded(text, shown)
        for lines in WRAPPED.finditer(data):
            text = BREAK.sub(b"", lines[0])
            line = _line(shown, data, lines.start())
            found += [replace(one, place=line) for one in (*self._known(text, shown), *self._encoded(text, shown))]
        return [*found, *self._neighbours(data, shown)]

    def _known(self, data: bytes, shown: str) -> Iterator[Finding]:
        """One finding for each secret: where it is whole, if it is, else where half of it is."""
        for name, needles in self._needles.items():
            at, how = next(((at, how) for needle, how in needles if (at := data.find(needle)) >= 0), (-1, ""))
            if at >= 0:
                yield Finding(_line(shown, data, at), how.format(name))

    def _keys(self, data: bytes, shown: str) -> Iterator[Finding]:
        for found in KEY_HEX.finditer(data):
            if whose := self._owner(found[0].lower()):
                yield Finding(_line(shown, data, found.start()), f"the secret key of {whose}")
        for found in KEY_BASE64.finditer(data):
            raw = base64.b64decode(found[0].translate(STANDARD_LETTERS) + b"=")
            if whose := self._owner(raw.hex().encode()):
                yield Finding(_line(shown, data, found.start()), f"the secret key of {whose}, in Base64")
        if len(data) == KEY_BYTES and (whose := self._owner(data.hex().encode())):
            yield Finding(shown, f"the secret key of {whose}, as bytes")

    def _owner(self, digits: bytes) -> str:
        """Whose secret key that is; empty where it is nobody's."""
        if digits not in self._looked_at:
            try:
                public = Key.parse(digits.decode()).public
            except ValueError:
                public = ""
            self._looked_at[digits] = self._publics.get(public, "")
        return self._looked_at[digits]

    def _shapes(self, data: bytes, shown: str) -> Iterator[Finding]:
        for what, shape in _SHAPES_OF_BYTES.items():
            for found in shape.finditer(data):
                yield Finding(_line(shown, data, found.start()), what, _mark(_whole(found[0], data, found.start())))

    def _encoded(self, data: bytes, shown: str) -> Iterator[Finding]:
        for run in BASE64.finditer(data):
            letters = run[0].translate(STANDARD_LETTERS)
            for skipped in range(4):
                whole = letters[skipped:][: (len(letters) - skipped) // 4 * 4]
                decoded = base64.b64decode(whole)
                if not _ANY_SHAPE_OF_BYTES.search(decoded):
                    continue
                for what, shape in _SHAPES_OF_BYTES.items():
                    for found in shape.finditer(decoded):
                        mark = _mark(_whole(found[0], decoded, found.start()))
                        yield Finding(_line(shown, data, run.start()), f"{what}, in Base64", mark)
        for run in HEX.finditer(data):
            for skipped in range(2):
                digits = run[0][skipped:][: (len(run[0]) - skipped) // 2 * 2]
                for one in self._shapes(bytes.fromhex(digits.decode()), shown):
                    yield replace(one, place=_line(shown, data, run.start()), what=f"{one.what}, in hex")

    def _neighbours(self, data: bytes, shown: str) -> Iterator[Finding]:
        for line, value in _values(data, shown):
            for path, first, second in _pairs(value, ""):
                ends = first[-JOINED_CHARACTERS:], second[:JOINED_CHARACTERS]
                if not _ANY_SHAPE_OF_TEXTS.search("".join(ends)):
                    continue
                for what, shape in _SHAPES_OF_TEXTS.items():
                    for found in shape.finditer("".join(ends)):
                        if found.start() < len(ends[0]) < found.end() and not shape.search(ends[0]):
                            text = (ends[0] + second)[found.start() :].encode(errors="surrogatepass")
                            mark = _mark(_whole(found[0].encode(), text, 0))
                            yield Finding(f"{line}, {path}", f"{what}, over two fields", mark)


def _readings(data: bytes) -> Iterator[bytes]:
    """The file, and what it says to whoever reads it as UTF-16 or UTF-32, or undoes JSON's and URLs' escapes."""
    yield data
    if WIDE.search(data):
        data = data.replace(b"\0", b"")
        yield data
    if (plain := ESCAPED.sub(lambda found: bytes.fromhex((found[1] or found[2]).decode()), data)) != data:
        yield plain


def _packed_in_base64(data: bytes) -> Iterator[tuple[int, bytes]]:
    """What was packed before it became Base64, in one line or in many: archives, and Base64 of its own. With where."""
    for run in (*WRAPPED.finditer(data), *BASE64.finditer(data)):
        letters = BREAK.sub(b"", run[0]).translate(STANDARD_LETTERS)
        inner = base64.b64decode(letters[: len(letters) // 4 * 4])
        if archives.is_one(inner) or BASE64.fullmatch(inner.replace(b"\n", b"").rstrip(b"=")):
            yield run.start(), inner


def _wholes(secret: str) -> Iterator[tuple[bytes, str]]:
    """What to look for, with what is said of it."""
    yield secret.encode(), "{}, in plain"
    yield from ((form.encode(), "{}, encoded") for form in sorted(forms(secret) - {secret}))
    if KEY_HEX.fullmatch(secret.encode()):
        raw = bytes.fromhex(secret)
        yield from ((needle, "{}, as bytes") for needle in (raw, *map(str.encode, sorted(encoded(raw)))))


def _halves(secret: str) -> Iterator[tuple[bytes, str]]:
    for half in halves(secret):
        if len(half) >= LONG_HALF or (len(half) >= SHORTEST and any(letter.isdigit() for letter in half)):
            yield from ((form.encode(), "half of {}") for form in sorted(forms(half)))


def _line(shown: str, data: bytes, at: int) -> str:
    return f"{shown}:{data.count(b'\n', 0, at) + 1}"


def printable(name: str) -> str:
    """A name as a message shows it, in one line: what can't be shown is escaped."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in name)


def _whole(found: bytes, text: bytes, at: int) -> bytes:
    """What is marked of what was found at that place: of a private key more than its first line, which many have."""
    if not found.startswith(b"-----BEGIN"):
        return found
    return text[at : at + PRIVATE_KEY_CHARACTERS].partition(b"-----END")[0]


def _mark(found: bytes) -> str:
    return hashlib.sha256(found).hexdigest()[:FINGERPRINT]


def _values(data: bytes, shown: str) -> Iterator[tuple[str, Any]]:
    """The JSON values of a file, each with its place; none where it is no JSON."""
    if shown.endswith(".json"):
        lines = [(shown, data)]
    elif shown.endswith(".jsonl"):
        lines = [(f"{shown}:{number}", line) for number, line in enumerate(data.splitlines(), start=1)]
    else:
        return
    for place, text in lines:
        try:
            yield place, json.loads(text)
        except (ValueError, RecursionError):
            continue  # Its bytes were looked at all the same.


def _pairs(value: Any, path: str) -> Iterator[tuple[str, str, str]]:
    """Strings that are neighbours in an object or a list, with the place of the second."""
    entries = [*value.items()] if isinstance(value, dict) else [*enumerate(value)] if isinstance(value, list) else []
    before: str | None = None
    for name, part in entries:
        place = f"{path}.{name}" if path else str(name)
        if isinstance(part, str):
            if before is not None:
                yield place, before, part
            before = part
        else:
            yield from _pairs(part, place)
