"""Events and filters as they come from the wire: checked for shape and limits, and matched. Pure.

The limits are those of BUZZ.md section 1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import orjson

from bench.nostr import Event

MAX_FRAME_BYTES = 512 * 1024
MAX_CONTENT_BYTES = 256 * 1024
MAX_BODY_BYTES = 1024 * 1024
MAX_FILTERS = 10
MAX_SUBSCRIPTIONS = 1024
MAX_SUBSCRIPTION_NAME = 256
MAX_STORED_EVENTS = 1000
CLOCK_WINDOW_S = 900

HEX_32 = re.compile(r"[0-9a-f]{64}")
HEX_64 = re.compile(r"[0-9a-f]{128}")
WORD = re.compile(r"\w+")
TAG_FILTER = re.compile(r"#[A-Za-z]")
FAR_FUTURE = 1 << 62
SEARCHED = frozenset({0, 9, 40002, 45001, 45003})
"""Kinds whose content is searched, by whole words."""


class Refused(Exception):
    """Why something is refused, in the words of the wire; `status` is the HTTP bridge's."""

    def __init__(self, text: str, status: int = 400) -> None:
        super().__init__(text)
        self.text, self.status = text, status


def decode(text: str | bytes) -> Any:
    """JSON from the wire. Raises Refused, which names lone surrogates: no signature library can carry those."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if _has_lone_surrogate(text):
            raise Refused("invalid: the text holds a lone surrogate, which is not valid Unicode") from None
        raise Refused(f"invalid: not JSON: {error}") from None


def lenient_event_id(text: str) -> str | None:
    """The id of the event in an EVENT frame that `decode` refuses, so that it can be answered."""
    match _lenient(text):
        case ["EVENT", {"id": str(identity)}] if HEX_32.fullmatch(identity):
            return identity
    return None


def _lenient(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _has_lone_surrogate(text: str | bytes) -> bool:
    found = _lenient(text)
    try:
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def parse_event(given: Any) -> Event:
    """The event with exactly its seven fields, well-formed but not yet verified. Raises Refused."""
    if not isinstance(given, dict):
        raise Refused("invalid: an event is a JSON object")
    match given:
        case {
            "id": str(identity),
            "pubkey": str(public),
            "created_at": int(created_at),
            "kind": int(kind),
            "tags": list(tags),
            "content": str(content),
            "sig": str(signature),
        } if not isinstance(created_at, bool) and not isinstance(kind, bool):
            pass
        case _:
            raise Refused("invalid: an event needs id, pubkey, created_at, kind, tags, content and sig")
    if not (HEX_32.fullmatch(identity) and HEX_32.fullmatch(public) and HEX_64.fullmatch(signature)):
        raise Refused("invalid: id, pubkey and sig are lower-case hex")
    if not 0 <= kind <= 65535:
        raise Refused("invalid: kind is out of range")
    for tag in tags:
        if not (isinstance(tag, list) and tag and all(isinstance(part, str) for part in tag)):
            raise Refused("invalid: a tag is a list of strings that isn't empty")
        if any("\0" in part for part in tag):
            raise Refused("invalid: a tag holds a NUL character")
    if "\0" in content:
        raise Refused("invalid: the content holds a NUL character")
    if len(content) > MAX_CONTENT_BYTES or len(content.encode()) > MAX_CONTENT_BYTES:
        raise Refused(f"invalid: content exceeds {MAX_CONTENT_BYTES} bytes")
    return {
        "id": identity,
        "pubkey": public,
        "created_at": created_at,
        "kind": kind,
        "tags": tags,
        "content": content,
        "sig": signature,
    }


def _says(event: Event, search: str) -> bool:
    words = set(WORD.findall(event["content"].lower()))
    wanted = set(WORD.findall(search.lower()))
    return event["kind"] in SEARCHED and bool(wanted) and wanted <= words


def replaceable_key(event: Event) -> str | None:
    """What stands for one another among events of an author and kind: "" or the d tag; None: nothing (NIP-01)."""
    kind = event["kind"]
    if kind in (0, 3) or 10000 <= kind < 20000:
        return ""
    if 30000 <= kind < 40000:
        return next((tag[1] for tag in event["tags"] if tag[0] == "d" and len(tag) > 1), "")
    return None


@dataclass(frozen=True, slots=True)
class Filter:
    """One filter of a REQ, a query or a count. None means: any."""

    ids: frozenset[str] | None
    authors: frozenset[str] | None
    kinds: frozenset[int] | None
    tags: tuple[tuple[str, frozenset[str]], ...]
    channels: frozenset[str] | None  # of #h
    since: int
    until: int
    limit: int
    before_id: str | None = None
    search: str | None = None

    @classmethod
    def parse(cls, given: Any) -> Self:
        """The filter, its limit capped to what one answer holds. Raises Refused; unknown keys are ignored."""
        if not isinstance(given, dict):
            raise Refused("invalid: a filter is a JSON object")
        tags = []
        channels = None
        for key in given:
            if not key.startswith("#"):
                continue
            if not TAG_FILTER.fullmatch(key):
                continue
            if key == "#h":
                channels = _strings(given, key)
            else:
                tags.append((key[1], _strings(given, key) or frozenset()))
        return cls(
            ids=_hex(given, "ids"),
            authors=_hex(given, "authors"),
            kinds=_kinds(given),
            tags=tuple(tags),
            channels=channels,
            since=_number(given, "since", 0),
            until=_number(given, "until", FAR_FUTURE),
            limit=min(_number(given, "limit", MAX_STORED_EVENTS), MAX_STORED_EVENTS),
            before_id=_string(given, "before_id"),
            search=_string(given, "search"),
        )

    def matches(self, event: Event, channel: str | None) -> bool:
        """Whether an event stored under that channel is asked for; #h means the channel it is stored under."""
        if self.kinds is not None and event["kind"] not in self.kinds:
            return False
        if self.channels is not None and channel not in self.channels:
            return False
        if self.authors is not None and event["pubkey"] not in self.authors:
            return False
        if self.ids is not None and event["id"] not in self.ids:
            return False
        if not self.since <= event["created_at"] <= self.until:
            return False
        if self.search is not None and not _says(event, self.search):
            return False
        return all(
            any(tag[0] == letter and len(tag) > 1 and tag[1] in values for tag in event["tags"])
            for letter, values in self.tags
        )


def parse_filters(given: Any) -> tuple[Filter, ...]:
    """The filters of one request. Raises Refused."""
    if not isinstance(given, list) or not given:
        raise Refused("invalid: at least one filter is needed")
    if len(given) > MAX_FILTERS:
        raise Refused(f"invalid: at most {MAX_FILTERS} filters")
    return tuple(Filter.parse(each) for each in given)


def parse_query(given: Any) -> tuple[Filter, ...]:
    """The filters of one query over HTTP, of which there may be any number. Raises Refused."""
    if not isinstance(given, list):
        raise Refused("invalid: a query is a list of filters")
    filters = tuple(Filter.parse(each) for each in given)
    for each in filters:
        if each.before_id is not None and not (each.until < FAR_FUTURE and HEX_32.fullmatch(each.before_id)):
            raise Refused("invalid: before_id is an event's id, and needs until beside it")
    return filters


def live_channel(filters: tuple[Filter, ...]) -> str | None:
    """The channel whose live events a REQ gets: that of all its filters, None for none or several (BUZZ.md 0)."""
    named = {each.channels for each in filters}
    if len(named) != 1:
        return None
    channels = next(iter(named))
    return next(iter(channels)) if channels is not None and len(channels) == 1 else None


def named_channels(filters: tuple[Filter, ...]) -> set[str]:
    """Every channel that the filters name."""
    return {channel for each in filters for channel in each.channels or ()}


def _strings(given: Mapping[str, Any], key: str) -> frozenset[str] | None:
    values = given.get(key)
    if values is None:
        return None
    if not isinstance(values, list) or not all(isinstance(v, str) and "\0" not in v for v in values):
        raise Refused(f"invalid: {key} of a filter is a list of strings")
    return frozenset(values)


def _hex(given: Mapping[str, Any], key: str) -> frozenset[str] | None:
    values = _strings(given, key)
    if values is not None and not all(map(HEX_32.fullmatch, values)):
        raise Refused(f"invalid: {key} of a filter are of 64 lower-case hex digits")
    return values


def _kinds(given: Mapping[str, Any]) -> frozenset[int] | None:
    values = given.get("kinds")
    if values is None:
        return None
    if not isinstance(values, list) or not all(type(v) is int and 0 <= v <= 65535 for v in values):
        raise Refused("invalid: kinds of a filter is a list of numbers from 0 to 65535")
    return frozenset(values)


def _number(given: Mapping[str, Any], key: str, default: int) -> int:
    value = given.get(key)
    if value is None:
        return default
    if type(value) is not int or not 0 <= value <= FAR_FUTURE:
        raise Refused(f"invalid: {key} of a filter is a number that isn't negative")
    return value


def _string(given: Mapping[str, Any], key: str) -> str | None:
    value = given.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or "\0" in value:
        raise Refused(f"invalid: {key} of a filter is a string")
    return value
