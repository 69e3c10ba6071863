"""Keys, ids, signatures and attestations, with coincurve as the oracle that shares no code with our libraries."""

from __future__ import annotations

import base64
import hashlib
import json
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.nostr import (
    BadKey,
    Event,
    Key,
    attested_owner,
    event_id,
    tag_value,
    tag_values,
    verified,
)

oracle = pytest.mark.skipif(sys.version_info >= (3, 14), reason="coincurve has no wheel for this Python")

if sys.version_info < (3, 14):
    import coincurve

SECRET = "67dea2ed018072d675f5415ecfaed7d2597555e202d85b3d65ea4e58d2d92ffa"
NSEC = "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5"
PUBLIC = "7e7e9c42a91bfef19fa929e5fda1b72e0ebc1a4c1141673e2794234d86addf4e"
NPUB = "npub10elfcs4fr0l0r8af98jlmgdh9c8tcxjvz9qkw038js35mp4dma8qzvjptg"
"""The examples of NIP-19."""


def sound(event: Event) -> bool:
    """By the oracle: the id is the SHA-256 of the canonical JSON, and the signature holds for it (NIP-01)."""
    canonical = [0, *(event[name] for name in ("pubkey", "created_at", "kind", "tags", "content"))]
    text = json.dumps(canonical, separators=(",", ":"), ensure_ascii=False)
    digest = hashlib.sha256(text.encode()).digest()
    key = coincurve.PublicKeyXOnly(bytes.fromhex(event["pubkey"]))
    return event["id"] == digest.hex() and key.verify(bytes.fromhex(event["sig"]), digest)


@oracle
@given(content=st.text(st.characters(exclude_categories=["Cs"])), kind=st.integers(0, 65535))
@settings(max_examples=50)
def test_a_signed_event_is_sound_to_the_oracle_and_to_ourselves(content: str, kind: int) -> None:
    event = Key.generate().sign(kind, content, [["t", content], ["e"]])
    assert sound(event)
    assert verified(event)


@oracle
def test_the_public_key_is_the_one_of_the_curve() -> None:
    assert Key(SECRET).public == PUBLIC
    secret = coincurve.PrivateKey(bytes.fromhex(SECRET))
    assert coincurve.PublicKeyXOnly.from_secret(secret.secret).format().hex() == PUBLIC


@oracle
def test_an_event_that_the_oracle_signed_is_verified() -> None:
    digest = event_id(PUBLIC, 1_700_000_000, 9, [["h", "room"]], "hello ✓")
    event = {
        "id": digest.hex(),
        "pubkey": PUBLIC,
        "created_at": 1_700_000_000,
        "kind": 9,
        "tags": [["h", "room"]],
        "content": "hello ✓",
        "sig": coincurve.PrivateKey(bytes.fromhex(SECRET)).sign_schnorr(digest).hex(),
    }
    assert verified(event)
    assert verified(json.dumps(event))


@pytest.mark.parametrize(
    "change",
    [{"content": "other"}, {"sig": "0" * 128}, {"id": "0" * 64}, {"kind": 7}, {"tags": [["p", "x"]]}],
    ids=lambda change: next(iter(change)),
)
def test_a_changed_event_is_not_verified(change: Event) -> None:
    assert not verified({**Key.generate().sign(9, "text"), **change})


@pytest.mark.parametrize("garbage", ["", "{}", "[]", "null", "\ud800", '{"id": 5}'])
def test_what_is_no_event_is_not_verified(garbage: str) -> None:
    assert not verified(garbage)


@oracle
def test_an_attestation_is_the_owners_signature_over_the_agent() -> None:
    owner, agent = Key.generate(), Key.generate()
    for conditions in ("", "kind=9&created_at<2000000000"):
        name, public, stated, signature = owner.attest(agent.public, conditions)
        assert (name, public, stated) == ("auth", owner.public, conditions)
        digest = hashlib.sha256(f"nostr:agent-auth:{agent.public}:{conditions}".encode()).digest()
        oracle_key = coincurve.PublicKeyXOnly(bytes.fromhex(owner.public))
        assert oracle_key.verify(bytes.fromhex(signature), digest)


def test_an_attestation_proves_the_owner_of_that_agent_only() -> None:
    owner, agent, other = Key.generate(), Key.generate(), Key.generate()
    tag = owner.attest(agent.public)
    assert attested_owner(tag, agent.public) == owner.public
    assert attested_owner(json.dumps(tag), agent.public) == owner.public
    assert attested_owner(tag, other.public) is None
    assert attested_owner([*tag[:3], "0" * 128], agent.public) is None
    assert attested_owner("no JSON", agent.public) is None


@oracle
def test_the_answer_to_a_challenge_is_a_sound_event_of_nip_42() -> None:
    key, owner = Key.generate(), Key.generate()
    tag = owner.attest(key.public)
    answer = key.answer_challenge("challenge", "ws://localhost:3600", tag)
    assert sound(answer)
    assert answer["kind"] == 22242
    assert tag_value(answer, "challenge") == "challenge"
    assert tag_value(answer, "relay") == "ws://localhost:3600"
    assert [t for t in answer["tags"] if t[0] == "auth"] == [tag]


@oracle
def test_a_request_is_authorized_by_a_sound_event_of_nip_98_that_is_never_the_same() -> None:
    key, url = Key.generate(), "http://localhost:3600/query"
    first, second = (
        json.loads(base64.b64decode(key.authorize("POST", url, b"[]").removeprefix("Nostr "))) for _ in range(2)
    )
    assert sound(first)
    assert first["kind"] == 27235
    assert tag_value(first, "u") == url
    assert tag_value(first, "method") == "POST"
    assert tag_value(first, "payload") == hashlib.sha256(b"[]").hexdigest()
    assert first["id"] != second["id"]


def test_the_nip_19_forms_of_a_key() -> None:
    key = Key(SECRET)
    assert (key.nsec, key.npub) == (NSEC, NPUB)


@pytest.mark.parametrize(
    "text", [SECRET, SECRET.upper(), NSEC, NSEC.upper(), f"{NSEC}\n", f"  {SECRET}\n"], ids=range(6)
)
def test_a_key_is_read_in_each_form_that_people_paste(text: str) -> None:
    assert Key.parse(text).secret == SECRET


FLIPPED = NSEC[:-1] + ("4" if NSEC[-1] == "5" else "5")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (NPUB, "this is a public key (npub1…); a secret key is needed (nsec1… or 64 hex digits)"),
        (FLIPPED, "its checksum is wrong, or it is outside the curve's range"),
        (NSEC + SECRET, "an nsec1… key has 63 characters, this has 127"),
        (SECRET[:-1], "neither nsec1… nor 64 hex digits"),
        ("", "neither nsec1… nor 64 hex digits"),
        ("0" * 64, "its checksum is wrong, or it is outside the curve's range"),
        ("f" * 64, "its checksum is wrong, or it is outside the curve's range"),
    ],
    ids=["npub", "flipped", "glued", "short", "empty", "zero", "beyond the order"],
)
def test_a_key_that_cannot_be_read_gets_one_line_without_the_secret(text: str, reason: str) -> None:
    with pytest.raises(BadKey) as caught:
        Key.parse(text)
    assert str(caught.value) == reason
    assert text[5:] not in str(caught.value) or not text
    assert "\n" not in str(caught.value)


def test_no_key_shows_its_secret() -> None:
    key = Key(SECRET)
    assert SECRET not in repr(key)
    assert SECRET not in f"{key}"


def test_nip_44_is_read_by_the_receiver_only() -> None:
    nostr_sdk = pytest.importorskip("nostr_sdk")
    sender, receiver = Key.generate(), Key.generate()
    payload = nostr_sdk.nip44_encrypt(
        nostr_sdk.Keys.parse(sender.secret).secret_key(),
        nostr_sdk.PublicKey.parse(receiver.public),
        "metric ✓",
        nostr_sdk.Nip44Version.V2,
    )
    assert receiver.decrypt(sender.public, payload) == "metric ✓"
    with pytest.raises(ValueError, match=r"^NIP-44: "):
        Key.generate().decrypt(sender.public, payload)


def test_tags_are_found_by_name() -> None:
    event = Key.generate().sign(9, "", [["p", "a"], ["p"], ["e", "x", "", "root"], ["p", "b"]])
    assert tag_value(event, "p") == "a"
    assert tag_values(event, "p") == ["a", "b"]
    assert tag_value(event, "q") is None
