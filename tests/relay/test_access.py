"""Hosts, answers to challenges, requests of the bridge, memberships: who gets in, and with what words others don't."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import pytest

from bench.nostr import Key
from bench.relay.access import Authority, Members, RequestProofs, attestation_of, check_answer
from bench.relay.protocol import Refused

URL = "ws://localhost:3600"
HTTP_URL = "http://localhost:3600/query"
HERE = Authority.of(URL)


@pytest.mark.parametrize(
    "host", ["localhost:3600", "LOCALHOST:3600", "127.0.0.1:3600", "[::1]:3600"], ids=lambda host: host
)
def test_the_loopback_names_with_the_right_port_are_one_host(host: str) -> None:
    assert HERE.is_host(host)


@pytest.mark.parametrize("host", ["", "localhost", "localhost:3601", "relay.example:3600", "localhost:x", "::1"])
def test_any_other_authority_is_another_host(host: str) -> None:
    assert not HERE.is_host(host)


def test_the_default_port_needs_not_be_given() -> None:
    assert Authority.of("wss://relay.example").is_host("relay.example")
    assert Authority.of("wss://relay.example").is_host("relay.example:443")
    assert not Authority.of("wss://relay.example").is_host("relay.example:80")


@pytest.mark.parametrize("url", ["", "http://localhost:1", "ws://localhost:99999"])
def test_what_is_no_relays_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="is no relay's address"):
        Authority.of(url)


def test_a_right_answer_to_the_challenge_is_taken_with_and_without_a_trailing_slash() -> None:
    key = Key.generate()
    for url in (URL, f"{URL}/", "ws://127.0.0.1:3600"):
        check_answer(key.answer_challenge("c", url), "c", HERE, time.time())


@pytest.mark.parametrize(
    "change",
    [
        {"challenge": "other"},
        {"url": "ws://localhost:1"},
        {"url": "wss://localhost:3600"},
        {"late": 61},
        {"kind": 9},
        {"sig": "0" * 128},
    ],
    ids=str,
)
def test_a_wrong_answer_is_refused(change: dict[str, Any]) -> None:
    key = Key.generate()
    tags = [["relay", change.get("url", URL)], ["challenge", change.get("challenge", "c")]]
    event = key.sign(change.get("kind", 22242), "", tags)
    if "sig" in change:
        event["sig"] = change["sig"]
    with pytest.raises(Refused, match=r"^auth-required: verification failed$"):
        check_answer(event, "c", HERE, time.time() + change.get("late", 0))


def header(key: Key, kind: int = 27235, created_at: int | None = None, **tags: str) -> str:
    event = key.sign(kind, "", [[name, value] for name, value in tags.items()], created_at)
    return "Nostr " + base64.b64encode(json.dumps(event).encode()).decode()


def test_a_request_tells_its_author_once() -> None:
    proofs, key = RequestProofs(HERE), Key.generate()
    proof = key.authorize("POST", HTTP_URL, b"[]")
    assert proofs.identity(proof, "POST", "/query", b"[]") == key.public
    with pytest.raises(Refused, match=r"^auth-required: NIP-98: this event was used before$"):
        proofs.identity(proof, "POST", "/query", b"[]")


def test_used_proofs_are_forgotten_when_their_time_has_passed() -> None:
    now = [time.time()]
    proofs, key = RequestProofs(HERE, lambda: now[0]), Key.generate()
    proofs.identity(key.authorize("POST", HTTP_URL, b""), "POST", "/query", b"")
    now[0] += 30
    proofs.identity(key.authorize("POST", HTTP_URL, b""), "POST", "/query", b"")
    assert len(proofs._used) == 2
    now[0] += 95
    fresh = header(key, u=HTTP_URL, method="POST", created_at=int(now[0]))
    proofs.identity(fresh, "POST", "/query", b"")
    assert len(proofs._used) == 2


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (None, "the Authorization header needs a NIP-98 event"),
        ("Bearer x", "the Authorization header needs a NIP-98 event"),
        ("Nostr !!!", "NIP-98: not an event in base64"),
        ("Nostr e30=", "NIP-98: not an event in base64"),
        ({"kind": 1}, "NIP-98: kind is not 27235"),
        ({"u": "http://localhost:3600/events"}, "NIP-98: u is not the URL of this request"),
        ({"u": HTTP_URL, "method": "GET"}, "NIP-98: method is not that of this request"),
        (
            {"u": HTTP_URL, "method": "POST", "created_at": 1_700_000_000},
            "NIP-98: created_at is more than 60 s away",
        ),
        (
            {"u": HTTP_URL, "method": "POST", "payload": "0" * 64},
            "NIP-98: payload is not the SHA-256 of the body",
        ),
    ],
)
def test_a_bad_request_is_refused_with_status_401(given: str | dict[str, Any] | None, reason: str) -> None:
    # Signed now, not when the tests were collected: a request is good for a minute.
    sent = header(Key.generate(), **given) if isinstance(given, dict) else given
    with pytest.raises(Refused) as caught:
        RequestProofs(HERE).identity(sent, "POST", "/query", b"[]")
    assert (caught.value.text, caught.value.status) == (f"auth-required: {reason}", 401)


def test_a_request_with_a_wrong_signature_is_refused() -> None:
    key = Key.generate()
    event = {**key.sign(27235, "", [["u", HTTP_URL], ["method", "POST"]]), "sig": "0" * 128}
    proof = "Nostr " + base64.b64encode(json.dumps(event).encode()).decode()
    with pytest.raises(Refused, match="bad id or signature"):
        RequestProofs(HERE).identity(proof, "POST", "/query", b"")


OWNER = Key.generate()


def test_the_owner_needs_no_attestation_and_an_agent_needs_it_each_time() -> None:
    members, agent = Members(OWNER.public), Key.generate()
    assert members.admit(OWNER.public, None) is None
    with pytest.raises(Refused, match=r"^restricted: not a relay member$"):
        members.admit(agent.public, None)
    attestation = json.dumps(OWNER.attest(agent.public))
    assert members.admit(agent.public, attestation) == OWNER.public
    members.owners[agent.public] = OWNER.public
    assert members.admit(agent.public, attestation) is None
    with pytest.raises(Refused, match=r"^restricted: not a relay member$"):
        members.admit(agent.public, None)


@pytest.mark.parametrize("case", ["stranger's", "another agent's", "stale", "garbage"])
def test_an_attestation_that_proves_nothing_is_no_membership(case: str) -> None:
    members, agent = Members(OWNER.public), Key.generate()
    tag = {
        "stranger's": json.dumps(Key.generate().attest(agent.public)),
        "another agent's": json.dumps(OWNER.attest(Key.generate().public)),
        "stale": json.dumps(OWNER.attest(Key.generate().public)),
        "garbage": "[",
    }[case]
    if case == "stale":
        members.owners[agent.public] = OWNER.public
    with pytest.raises(Refused, match=r"^restricted: not a relay member$"):
        members.admit(agent.public, tag)


def test_two_attestations_are_none() -> None:
    agent = Key.generate()
    tag = OWNER.attest(agent.public)
    assert json.loads(attestation_of(agent.sign(22242, "", [tag])) or "") == tag
    assert attestation_of(agent.sign(22242, "", [tag, tag])) is None
    assert attestation_of(agent.sign(22242, "", [])) is None
