"""Who is who: the host a client dials, its NIP-42 answer, its NIP-98 request, its membership by NIP-OA.

Rules and texts: BUZZ.md sections 1 and 2. The clock comes in as an argument.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import urlsplit

import orjson

from bench.nostr import Event, attested_owner, tag_value, verified
from bench.relay.protocol import Refused, parse_event

UNKNOWN_HOST = "relay: no community is configured for this host"
NOT_A_MEMBER = "restricted: not a relay member"
AUTH_WINDOW_S = 60
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
DEFAULT_PORTS = {"ws": 80, "http": 80, "wss": 443, "https": 443}

proven_owner = lru_cache(maxsize=4096)(attested_owner)
"""`attested_owner`, remembered: the bridge sends the same attestation with every call."""


@dataclass(frozen=True)
class Authority:
    """What the relay answers to: scheme class, host and port of its URL; the loopback names are one."""

    secure: bool
    host: str
    port: int

    @classmethod
    def of(cls, relay_url: str) -> Authority:
        """Of ws://… or wss://…. Raises ValueError."""
        found = _authority(relay_url)
        if found is None or urlsplit(relay_url).scheme not in ("ws", "wss"):
            raise ValueError(f"{relay_url!r} is no relay's address (ws://host:port)")
        return found

    def is_host(self, header: str) -> bool:
        """Whether a Host header names this relay."""
        return _authority(f"{'wss' if self.secure else 'ws'}://{header}") == self

    def is_url(self, url: str, path: str) -> bool:
        """Whether a URL is that path of this relay; a trailing slash doesn't matter."""
        return _authority(url) == self and urlsplit(url).path.rstrip("/") == path.rstrip("/")


def _authority(url: str) -> Authority | None:
    try:
        parts = urlsplit(url)
        port = parts.port or DEFAULT_PORTS[parts.scheme]
    except (ValueError, KeyError):
        return None
    host = parts.hostname or ""
    return Authority(parts.scheme in ("wss", "https"), "localhost" if host in LOOPBACK else host, port)


def check_answer(event: Event, challenge: str, authority: Authority, now: float) -> None:
    """Raise Refused unless the event answers the challenge of this relay (NIP-42)."""
    good = (
        event["kind"] == 22242
        and tag_value(event, "challenge") == challenge
        and authority.is_url(tag_value(event, "relay") or "", "")
        and abs(event["created_at"] - now) <= AUTH_WINDOW_S
        and verified(event)
    )
    if not good:
        raise Refused("auth-required: verification failed")


@dataclass
class RequestProofs:
    """The NIP-98 proofs of the bridge: each is good for one request."""

    authority: Authority
    clock: Callable[[], float] = time.time
    _used: set[str] = field(default_factory=set)
    _order: deque[tuple[float, str]] = field(default_factory=deque)

    def identity(self, header: str | None, method: str, path: str, body: bytes) -> str:
        """The public key that made this request. Raises Refused with status 401."""
        scheme, _, encoded = (header or "").partition(" ")
        if scheme != "Nostr":
            raise Refused("auth-required: the Authorization header needs a NIP-98 event", 401)
        try:
            event = parse_event(orjson.loads(base64.b64decode(encoded, validate=True)))
        except (binascii.Error, orjson.JSONDecodeError, Refused):
            raise Refused("auth-required: NIP-98: not an event in base64", 401) from None
        now = self.clock()
        payload = tag_value(event, "payload")
        problem = (
            "kind is not 27235"
            if event["kind"] != 27235
            else "u is not the URL of this request"
            if not self.authority.is_url(tag_value(event, "u") or "", path)
            else "method is not that of this request"
            if (tag_value(event, "method") or "").upper() != method
            else f"created_at is more than {AUTH_WINDOW_S} s away"
            if abs(event["created_at"] - now) > AUTH_WINDOW_S
            else "payload is not the SHA-256 of the body"
            if payload is not None and payload != hashlib.sha256(body).hexdigest()
            else "bad id or signature"
            if not verified(event)
            else ""
        )
        if problem:
            raise Refused(f"auth-required: NIP-98: {problem}", 401)
        self._use(event["id"], now)
        return str(event["pubkey"])

    def _use(self, identity: str, now: float) -> None:
        while self._order and self._order[0][0] < now:
            self._used.discard(self._order.popleft()[1])
        if identity in self._used:
            raise Refused("auth-required: NIP-98: this event was used before", 401)
        self._used.add(identity)
        self._order.append((now + 2 * AUTH_WINDOW_S, identity))


@dataclass
class Members:
    """Who may use the relay: its owner, and keys that the owner attests. `owners` is what it remembers."""

    owner: str
    owners: dict[str, str] = field(default_factory=dict)

    def admit(self, public: str, attestation: str | None) -> str | None:
        """The owner to remember for the key, if this is its first proof, else None.

        An agent proves it each time anew, also where it is known, as Buzz's relay wants it.
        Raises Refused with status 403 unless the key is a member.
        """
        if public == self.owner:
            return None
        if attestation is None or proven_owner(attestation, public) != self.owner:
            raise Refused(NOT_A_MEMBER, 403)
        return None if public in self.owners else self.owner


def attestation_of(event: Event) -> str | None:
    """The NIP-OA tag of an AUTH event as JSON; more than one is none (BUZZ.md section 2)."""
    tags = [tag for tag in event["tags"] if tag[0] == "auth"]
    return orjson.dumps(tags[0]).decode() if len(tags) == 1 else None
