"""Looks for secrets in what is to leave this machine: those that are ours, by their values, and what looks like one.

A secret that is ours is found in plain, in hex, as `nsec`, in Base64, URL-encoded, and cut in two. Shapes are looked
for in Base64, hex and escapes, too, and both in pieces over several fields of JSON or lines of it (`pieces.py`). A
finding says where and what, and never shows it (public case 45). Archives are looked into (`archives.py`), and Base64
of them; one that can't be is a finding, too. However a file was made, what is done with it has an end: so much is
taken out of it and no more, and so many levels deep.

Other ways to write a secret are not known for one: reversed, in other bases, in dumps of bytes, encrypted, in pictures.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import re
import string
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from bench.nostr import Key
from bench.pack import archives, pieces
from bench.pack.streams import Room, Unreadable
from bench.printable import one_line
from bench.secretforms import SHAPES, SHORTEST, encoded, forms, halves

MOST_BYTES = 200_000_000
"""Of a file, and of all that is in it: what is more is no log of a trial, or is made to fill memory."""

MOST_BYTES_OF_ALL = 1_000_000_000
"""Of what is in the archives of all files."""

DEEPEST = 6
"""Archives and Base64 within each other."""

ENTRY_BYTES = 1000
"""What an entry of an archive counts beside its bytes: a million empty ones take their time, too."""

MOST_FINDINGS = 100
"""In one file: it is refused for one as it is for many."""

MOST_NUMBERS = 100_000
"""Of 64 digits, or of their Base64, in one file: each is tried whether it is somebody's key, which takes 0.1 ms."""

KEY_HEX = re.compile(rb"(?<![0-9A-Fa-f])[0-9A-Fa-f]{64}(?![0-9A-Fa-f])")
KEY_BASE64 = re.compile(rb"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{43}(?![A-Za-z0-9+/_-])")
KEY_BYTES = 32
BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{24,}")
HEX = re.compile(rb"[0-9A-Fa-f]{32,}")
WIDE = re.compile(rb"(?:[ -~]\0{1,3}){8}")
ESCAPED = re.compile(rb"(?:\\u00|\\x|%)([2-7][0-9A-Fa-f])")
"""Letters in JSON's, programs' and URLs' escapes; ends of lines stay as they are, and so do the lines' numbers."""

STANDARD_LETTERS = bytes.maketrans(b"-_", b"+/")
WRAPPED = re.compile(rb"(?<![A-Za-z0-9+/_-])(?:[A-Za-z0-9+/_-]{20,}+(?:\s|\\[nrt])++)+[A-Za-z0-9+/_-]+")
"""Lines of Base64 or hex, as programs break them, also with their ends as JSON escapes them."""

PRIVATE_KEY_CHARACTERS = 16_384
"""More than the longest private key has."""

LONG_HALF = 16
"""Shorter halves are looked for only with a digit in them: else they may be words."""

FINGERPRINT = 12
BATCH, BATCH_BYTES = 4096, 1_000_000

_SHAPES = {what: re.compile(shape.encode()) for what, shape in SHAPES.items()}


@dataclass(frozen=True, order=True)
class Finding:
    """A secret in a file. `mark` tells one that only looks like one from others: the beginning of its SHA-256."""

    place: str
    what: str
    mark: str = ""

    def __str__(self) -> str:
        return f"{self.place}: holds {self.what}" + (f" [{self.mark}]" if self.mark else "")


class _Hit(NamedTuple):
    """A secret in a text, between `start` and `end`."""

    start: int
    end: int
    what: str
    mark: str = ""


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
        self._room = Room(MOST_BYTES_OF_ALL, what="in the archives of all files together")
        self._looked_at: dict[bytes, str] = {}
        """Whose the numbers of one file are."""

    def scan(self, data: bytes, shown: str) -> list[Finding]:
        """What is in a file, in what it contains as an archive, and in its name: `shown`, which the findings give.

        They are no more than `MOST_FINDINGS`. A name need not be UTF-8: an agent gave it.
        """
        found: set[Finding] = set()
        self._looked_at.clear()
        for finding in self._all(data, shown, Room(MOST_BYTES, self._room), DEEPEST):
            found.add(finding)
            if len(found) == MOST_FINDINGS:
                break
        return sorted(found)

    def unseen(self, what: str, shown: str, digest: str) -> list[Finding]:
        """The finding for what nobody can look into, unless it is let be. `digest` is its SHA-256, in hex."""
        finding = self._kept(one_line(shown), f"{what}, which can't be looked into", digest[:FINGERPRINT])
        return [finding] if finding else []

    def _kept(self, place: str, what: str, mark: str) -> Finding | None:
        """A finding, unless it is let be."""
        self.strange.discard(mark)
        return None if mark and mark in self._let_be else Finding(place, what, mark)

    def _all(self, data: bytes, shown: str, room: Room, deeper: int) -> Iterator[Finding]:
        """What is in a name, a text and, so many levels deep, in what it contains."""
        name = shown.encode(errors="surrogateescape")
        named = [*self._known(name), *_shapes(name), *_encoded(name)]
        shown = self._without_secrets(name, named) if named else one_line(shown)
        for hit in named:
            if finding := self._kept(shown, f"in its name {hit.what}", hit.mark):
                yield finding
        if not data:
            return
        for text in _readings(data):
            yield from self._placed(text, shown, self._hits(text))
        for lines in WRAPPED.finditer(data):
            text = _unbroken(lines[0])
            hits = (*self._known(text), *_encoded(text))
            yield from self._placed(data, shown, (hit._replace(start=lines.start()) for hit in hits))
        if len(self._looked_at) >= MOST_NUMBERS:
            what = f"more than {MOST_NUMBERS:,} numbers as long as a key"
            yield from self.unseen(what, shown, hashlib.sha256(data).hexdigest())
        for inside in (
            self._in_pieces(_narrow(data), shown),
            self._in_archive(data, shown, room, deeper),
            self._in_base64(data, shown, room, deeper),
        ):
            try:
                yield from inside
            except Unreadable as error:
                yield from self.unseen(str(error), shown, hashlib.sha256(data).hexdigest())

    def _in_archive(self, data: bytes, shown: str, room: Room, deeper: int) -> Iterator[Finding]:
        for inner, content in archives.contents(data, room):
            _refuse_depth(deeper)
            room.book(ENTRY_BYTES)
            yield from self._all(content, f"{shown}/{inner}", room, deeper - 1)

    def _in_base64(self, data: bytes, shown: str, room: Room, deeper: int) -> Iterator[Finding]:
        for at, content in _packed_in_base64(data):
            _refuse_depth(deeper)
            room.book(len(content))
            place = f"{_line(shown, data, at)}, Base64"
            yield from (replace(one, place=place) for one in self._all(content, "", room, deeper - 1))

    def _without_secrets(self, name: bytes, hits: Iterable[_Hit]) -> str:
        """A name as a message may show it: as far as the part in which something is found."""
        needles = (name.find(needle) for needle, _ in itertools.chain(*self._needles.values()))
        first = min(*(hit.start for hit in hits), *(at for at in needles if at >= 0), len(name))
        shown = name[: name.rfind(b"/", 0, first) + 1] + b"[...]"
        return one_line(shown.decode(errors="surrogateescape"))

    def _placed(self, data: bytes, shown: str, hits: Iterable[_Hit]) -> Iterator[Finding]:
        """The findings of what was found in a text, each with its line."""
        number = 0
        for hit in hits:
            # A file may have a million of one that is let be: their lines are not counted.
            if finding := self._kept(shown, hit.what, hit.mark):
                yield replace(finding, place=_line(shown, data, hit.start))
                number += 1
            if number == MOST_FINDINGS:
                break

    def _in_pieces(self, data: bytes, shown: str) -> Iterator[Finding]:
        for batch in _batches(pieces.joined(data)):
            texts = [bytes(joined.text) for joined in batch]
            starts = [*itertools.accumulate((len(text) + 1 for text in texts), initial=0)]
            for hit in self._hits(b"\0".join(texts)):
                number = bisect_right(starts, hit.start) - 1
                joined, begin = batch[number], hit.start - starts[number]
                first, last, stop = joined.over(begin, hit.end - starts[number])
                if first == last:
                    if texts[number][begin : begin + hit.end - hit.start] in data:
                        continue  # It needed no JSON to be found.
                    what = hit.what
                elif any(one.what == hit.what for one in self._hits(texts[number][begin:stop])):
                    continue  # It is in one piece, and goes on by chance.
                else:
                    over = "two fields" if last == first + 1 else f"{last - first + 1} fields"
                    what = f"{hit.what.removesuffix(', in plain')}, over {over}"
                if finding := self._kept(shown + one_line(joined.place(last)), what, hit.mark):
                    yield finding

    def _hits(self, data: bytes) -> Iterator[_Hit]:
        yield from self._known(data)
        yield from self._keys(data)
        yield from _shapes(data)
        yield from _encoded(data)

    def _known(self, data: bytes) -> Iterator[_Hit]:
        """One for each secret: where it is whole, if it is, else where half of it is."""
        for name, needles in self._needles.items():
            for needle, how in needles:
                if (at := data.find(needle)) >= 0:
                    yield _Hit(at, at + len(needle), how.format(name))
                    break

    def _keys(self, data: bytes) -> Iterator[_Hit]:
        """Secret keys whose public ones are known, as far as there are not too many numbers to try."""
        if not self._publics:
            return
        for found in KEY_HEX.finditer(data):
            yield from self._key(found.start(), found.end(), found[0].lower(), "")
        for found in KEY_BASE64.finditer(data):
            digits = base64.b64decode(found[0].translate(STANDARD_LETTERS) + b"=").hex().encode()
            yield from self._key(found.start(), found.end(), digits, ", in Base64")
        if len(data) == KEY_BYTES:
            yield from self._key(0, KEY_BYTES, data.hex().encode(), ", as bytes")

    def _key(self, start: int, end: int, digits: bytes, how: str) -> Iterator[_Hit]:
        if (whose := self._looked_at.get(digits)) is None:
            if len(self._looked_at) >= MOST_NUMBERS:
                return
            whose = self._looked_at[digits] = self._owner(digits)
        if whose:
            yield _Hit(start, end, f"the secret key of {whose}{how}")

    def _owner(self, digits: bytes) -> str:
        """Whose secret key that is; empty where it is nobody's."""
        try:
            return self._publics.get(Key.parse(digits.decode()).public, "")
        except ValueError:
            return ""


def _refuse_depth(deeper: int) -> None:
    if not deeper:
        raise Unreadable(f"archives within archives, more than {DEEPEST} deep")


def _shapes(data: bytes) -> Iterator[_Hit]:
    for what, shape in _SHAPES.items():
        for found in shape.finditer(data):
            yield _Hit(found.start(), found.end(), what, _mark(_whole(found[0], data, found.start())))


def _encoded(data: bytes) -> Iterator[_Hit]:
    """Shapes in Base64 and in hex, with where these are."""
    for how, runs, decoded, skips in (("Base64", BASE64, _of_base64, range(4)), ("hex", HEX, _of_hex, range(2))):
        # Many at a time: most are short, and a search in each would take most of all time.
        for batch in itertools.batched(runs.finditer(data), BATCH):
            for skipped in skips:
                texts = [decoded(run[0][skipped:]) for run in batch]
                starts = [*itertools.accumulate((len(text) + 1 for text in texts), initial=0)]
                for one in _shapes(b"\0".join(texts)):
                    run = batch[bisect_right(starts, one.start) - 1]
                    yield _Hit(run.start(), run.end(), f"{one.what}, in {how}", one.mark)


def _of_base64(letters: bytes) -> bytes:
    return base64.b64decode(letters[: len(letters) // 4 * 4].translate(STANDARD_LETTERS))


def _of_hex(digits: bytes) -> bytes:
    return bytes.fromhex(digits[: len(digits) // 2 * 2].decode())


def _batches(texts: Iterable[pieces.Joined]) -> Iterator[list[pieces.Joined]]:
    """Many short ones at a time: a search in each would take most of all time."""
    batch: list[pieces.Joined] = []
    number_bytes = 0
    for one in texts:
        batch.append(one)
        number_bytes += len(one.text)
        if number_bytes >= BATCH_BYTES or len(batch) >= BATCH:
            yield batch
            batch, number_bytes = [], 0
    if batch:
        yield batch


def _readings(data: bytes) -> Iterator[bytes]:
    """The file, and what it says to whoever reads it as UTF-16 or UTF-32, or undoes JSON's and URLs' escapes."""
    yield data
    if (narrow := _narrow(data)) is not data:
        yield narrow
    if ESCAPED.search(narrow):
        yield _plain(narrow)


def _narrow(data: bytes) -> bytes:
    """A text in UTF-16 or UTF-32 as bytes of its letters."""
    return data.replace(b"\0", b"") if b"\0" in data and WIDE.search(data) else data


def _plain(data: bytes) -> bytes:
    """A text without escapes. In one piece: `sub` would keep a hundred bytes for each."""
    plain, at = bytearray(), 0
    for found in ESCAPED.finditer(data):
        plain += data[at : found.start()]
        plain.append(int(found[1], 16))
        at = found.end()
    return bytes(plain + data[at:])


def _unbroken(lines: bytes) -> bytes:
    """Lines as one."""
    text = lines.translate(None, string.whitespace.encode())
    for escape in (b"\\n", b"\\r", b"\\t"):
        text = text.replace(escape, b"")
    return text


def _packed_in_base64(data: bytes) -> Iterator[tuple[int, bytes]]:
    """What was packed before it became Base64, in one line or in many: archives, and Base64 of its own. With where."""
    for run in itertools.chain(WRAPPED.finditer(data), BASE64.finditer(data)):
        letters = _unbroken(run[0]).translate(STANDARD_LETTERS)
        inner = base64.b64decode(letters[: len(letters) - (len(letters) % 4 == 1)] + b"==")
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


def _whole(found: bytes, text: bytes, at: int) -> bytes:
    """What is marked of what was found at that place: of a private key more than its first line, which many have."""
    if not found.startswith(b"-----BEGIN"):
        return found
    return text[at : at + PRIVATE_KEY_CHARACTERS].partition(b"-----END")[0]


def _mark(found: bytes) -> str:
    return hashlib.sha256(found).hexdigest()[:FINGERPRINT]
