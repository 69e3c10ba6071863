"""Keys, events and attestations: the only module that knows the signature libraries.

buzzkit (Buzz's own crates) verifies events and makes and checks NIP-OA, NIP-42 and NIP-98; nostr-sdk signs any other
event and does NIP-19 and NIP-44. All keys, ids and signatures are lower-case hex; `created_at` is Unix seconds.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Self

import nostr_sdk
import orjson

type Event = dict[str, Any]
"""A signed NIP-01 event: id, pubkey, created_at, kind, tags, content, sig."""


@cache
def buzzkit() -> Any:
    """The library, loaded when it is first needed: it brings along an HTTP client, which nothing here uses.

    That client's command line is an extra of its own that it does without; it would take as long as the rest.
    """
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # None: the import fails at once
    import buzzkit as loaded

    return loaded


class BadKey(ValueError):
    """A key that can't be read. The message never holds the key."""


@dataclass(frozen=True, repr=False)
class Key:
    """A secp256k1 key pair of one identity."""

    secret: str

    @classmethod
    def generate(cls) -> Self:
        return cls(nostr_sdk.Keys.generate().secret_key().to_hex())

    @classmethod
    def parse(cls, text: str) -> Self:
        """The key that `text` holds, as 64 hex digits or as `nsec1…`. Raises BadKey with the reason."""
        given = text.strip()
        if given.lower().startswith("npub1"):
            raise BadKey("this is a public key (npub1…); a secret key is needed (nsec1… or 64 hex digits)")
        if given.lower().startswith("nsec1"):
            if len(given) != 63:
                raise BadKey(f"an nsec1… key has 63 characters, this has {len(given)}")
        elif len(given) != 64 or not all(c in "0123456789abcdefABCDEF" for c in given):
            raise BadKey("neither nsec1… nor 64 hex digits")
        try:
            return cls(nostr_sdk.Keys.parse(given).secret_key().to_hex())
        except nostr_sdk.NostrSdkError:
            raise BadKey("its checksum is wrong, or it is outside the curve's range") from None

    @cached_property
    def _keys(self) -> nostr_sdk.Keys:
        return nostr_sdk.Keys.parse(self.secret)

    @cached_property
    def public(self) -> str:
        return str(self._keys.public_key().to_hex())

    @property
    def nsec(self) -> str:
        return str(self._keys.secret_key().to_bech32())

    @property
    def npub(self) -> str:
        return str(self._keys.public_key().to_bech32())

    def __repr__(self) -> str:
        return f"Key({self.public[:8]}…)"

    def sign(
        self, kind: int, content: str = "", tags: Sequence[Sequence[str]] = (), created_at: int | None = None
    ) -> Event:
        """A signed event of any kind."""
        at = int(time.time()) if created_at is None else created_at
        listed = [list(tag) for tag in tags]
        digest = event_id(self.public, at, kind, listed, content)
        return {
            "id": digest.hex(),
            "pubkey": self.public,
            "created_at": at,
            "kind": kind,
            "tags": listed,
            "content": content,
            "sig": self._keys.sign_schnorr(digest),
        }

    def attest(self, agent_public: str, conditions: str = "") -> list[str]:
        """The NIP-OA tag by which this key owns the agent: ["auth", owner, conditions, signature]."""
        tag: list[str] = json.loads(buzzkit().compute_auth_tag(self.secret, agent_public, conditions))
        return tag

    def answer_challenge(self, challenge: str, relay_url: str, auth_tag: Sequence[str] | None = None) -> Event:
        """The NIP-42 event (kind 22242) that answers a relay's challenge."""
        tag = json.dumps(list(auth_tag)) if auth_tag else None
        event: Event = json.loads(buzzkit().build_auth_event(self.secret, challenge, relay_url, tag))
        return event

    def authorize(self, method: str, url: str, body: bytes | None = None) -> str:
        """The NIP-98 value of an `Authorization` header for one request."""
        return str(buzzkit().sign_nip98(self.secret, method, url, body))

    def decrypt(self, sender_public: str, payload: str) -> str:
        """The plain text of a NIP-44 payload. Raises ValueError."""
        try:
            sender = nostr_sdk.PublicKey.parse(sender_public)
            return str(nostr_sdk.nip44_decrypt(self._keys.secret_key(), sender, payload))
        except nostr_sdk.NostrSdkError as error:
            raise ValueError(f"NIP-44: {error}") from None


def event_id(public: str, created_at: int, kind: int, tags: list[list[str]], content: str) -> bytes:
    """The NIP-01 id, 32 bytes: SHA-256 of the event's canonical JSON."""
    return hashlib.sha256(orjson.dumps([0, public, created_at, kind, tags, content])).digest()


def verified(event: Mapping[str, Any] | str) -> bool:
    """Whether id and signature are right. Anything that isn't a well-formed event is not."""
    try:
        text = event if isinstance(event, str) else orjson.dumps(event).decode()
        return bool(buzzkit().verify_event(text))
    except (ValueError, TypeError):
        return False


def attested_owner(tag: Sequence[str] | str, agent_public: str) -> str | None:
    """The owner that a NIP-OA tag proves for the agent, or None where it proves nothing."""
    try:
        text = tag if isinstance(tag, str) else json.dumps(list(tag))
        return str(buzzkit().verify_auth_tag(text, agent_public))
    except (ValueError, TypeError):
        return None


def tag_value(event: Mapping[str, Any], name: str) -> str | None:
    """The first value of the event's first tag of that name."""
    return next((t[1] for t in event["tags"] if len(t) > 1 and t[0] == name), None)


def tag_values(event: Mapping[str, Any], name: str) -> list[str]:
    """The first values of all the event's tags of that name, in order."""
    return [t[1] for t in event["tags"] if len(t) > 1 and t[0] == name]
