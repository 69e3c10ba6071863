"""What agents say they used, in real encrypted events, against what the gateway counted."""

from __future__ import annotations

import json
from typing import Any

import nostr_sdk
import pytest

from bench.gateway.protocol import AgentUsage
from bench.nostr import Event, Key
from bench.trial.selfreport import METRIC, Check, SelfReport, compare, read, wanted

OWNER, STRANGER = Key.generate(), Key.generate()
LEAD, WORKER = Key.generate(), Key.generate()
PEOPLE = {LEAD.public: "orch", WORKER.public: "worker-1"}


def encrypted(sender: Key, text: str, to: Key = OWNER) -> str:
    keys, public = nostr_sdk.Keys.parse(sender.secret), nostr_sdk.PublicKey.parse(to.public)
    return str(nostr_sdk.nip44_encrypt(keys.secret_key(), public, text, nostr_sdk.Nip44Version.V2))


def metric(
    sender: Key,
    session: str,
    seq: int,
    input_tokens: int | None,
    output_tokens: int | None,
    to: Key = OWNER,
    **more: Any,
) -> Event:
    """One turn's event in the form that buzz-acp publishes (BUZZ.md section 5)."""
    turn = {
        "harness": "buzz-agent",
        "model": "claude-sonnet-4-6",
        "channelId": "6f1c0f3e-0000-4000-8000-000000000000",
        "sessionId": session,
        "turnId": f"turn-{seq}",
        "turnSeq": seq,
        "timestamp": "2026-01-31T10:00:00Z",
        "turn": None,
        "cumulative": {
            "inputTokens": input_tokens,
            "outputTokens": output_tokens,
            "totalTokens": None,
            "costUsd": None,
        },
        "deltaReliable": False,
        "stopReason": "end_turn",
        **more,
    }
    tags = [["p", to.public], ["agent", sender.public]]
    return sender.sign(METRIC, encrypted(sender, json.dumps(turn), to), tags, created_at=1_700_000_000 + seq)


def used(calls: int = 3, fresh: int = 100, read: int = 800, write: int = 100, output: int = 50) -> AgentUsage:
    return AgentUsage(calls, fresh, read, write, output, 5)


def test_the_last_sum_of_each_session_counts_and_sessions_add_up() -> None:
    events = [
        metric(LEAD, "a", 2, 900, 30),
        metric(LEAD, "a", 1, 400, 10),
        metric(LEAD, "b", 1, 100, 20),
        metric(WORKER, "a", 1, 7, 3),
    ]
    said = read(events, OWNER, PEOPLE)
    assert said == {"orch": SelfReport(2, 3, 1000, 50), "worker-1": SelfReport(1, 1, 7, 3)}


def test_an_event_that_is_delivered_twice_counts_once() -> None:
    event = metric(LEAD, "a", 1, 400, 10)
    assert read([event, event], OWNER, PEOPLE)["orch"].turns == 1


@pytest.mark.parametrize(
    "event",
    [
        metric(STRANGER, "a", 1, 5, 5),
        metric(LEAD, "a", 1, 5, 5, to=STRANGER),
        LEAD.sign(9, "hello", [["p", OWNER.public]]),
    ],
)
def test_what_others_say_or_is_for_others_does_not_count(event: Event) -> None:
    assert read([event], OWNER, PEOPLE) == {}


@pytest.mark.parametrize(
    "content",
    [
        "not encrypted",
        encrypted(LEAD, "no JSON"),
        encrypted(LEAD, '"a text"'),
        encrypted(LEAD, '{"turnSeq": 1, "cumulative": {}}'),
        encrypted(LEAD, '{"sessionId": "a", "turnSeq": "1"}'),
        encrypted(STRANGER, '{"sessionId": "a", "turnSeq": 1}'),
    ],
)
def test_what_cannot_be_read_is_counted_and_tells_nothing(content: str) -> None:
    event = LEAD.sign(METRIC, content, [["p", OWNER.public]])
    assert read([event], OWNER, PEOPLE) == {"orch": SelfReport(unreadable=1)}
    assert compare(read([event], OWNER, PEOPLE), {"orch": used()}).labels == ("self_report_missing",)


def test_a_forged_event_tells_nothing() -> None:
    event = {**metric(LEAD, "a", 1, 1000, 50), "sig": metric(LEAD, "a", 2, 1, 1)["sig"]}
    assert read([event], OWNER, PEOPLE)["orch"].unreadable == 1


def check(input_tokens: int | None, output_tokens: int | None, usage: AgentUsage) -> Check:
    return compare(read([metric(LEAD, "a", 1, input_tokens, output_tokens)], OWNER, PEOPLE), {"orch": usage})


@pytest.mark.parametrize(
    ("input_tokens", "output_tokens", "verdict"),
    [
        (1000, 50, "agrees"),
        (1020, 51, "agrees"),
        (980, 49, "agrees"),
        (1021, 50, "differs"),
        (979, 50, "differs"),
        (1000, 52, "differs"),
        (100, 50, "differs"),
        (None, 50, "unknown"),
        (None, 60, "differs"),
        (1000, None, "unknown"),
    ],
)
def test_up_to_two_per_cent_is_agreement(input_tokens: int | None, output_tokens: int | None, verdict: str) -> None:
    """The input counts fresh tokens and both ways of the cache: 100 + 800 + 100."""
    found = check(input_tokens, output_tokens, used())
    assert found.agents["orch"].verdict == verdict
    assert found.labels == (("self_report_differs",) if verdict == "differs" else ())


def test_an_agent_that_says_nothing_is_missing_and_the_gateways_count_is_shown() -> None:
    """Case 23: an adapter without metrics, and a gateway that saw three calls."""
    found = compare({}, {"orch": used(calls=3)})
    assert found.labels == ("self_report_missing",)
    assert found.facts["orch"] == {
        "verdict": "missing",
        "sessions": 0,
        "turns": 0,
        "unreadable": 0,
        "input_tokens": 0,
        "output_tokens": 0,
        "metered_input_tokens": 1000,
        "metered_output_tokens": 50,
    }


def test_an_agent_that_never_called_owes_nothing() -> None:
    found = compare({}, {"worker-1": AgentUsage()})
    assert (found.agents["worker-1"].verdict, found.labels) == ("no_calls", ())


def test_a_claim_without_any_call_differs() -> None:
    """Somebody used a key that is not ours, or signed what never was."""
    assert check(1000, 50, AgentUsage()).labels == ("self_report_differs",)


def test_what_the_gateway_does_not_know_is_not_held_against_an_agent() -> None:
    cut = AgentUsage(calls=2, input_tokens=None, cache_read_tokens=None, cache_write_tokens=None, unknown_calls=2)
    assert check(1000, 0, cut).agents["orch"].verdict == "unknown"


def test_the_filter_is_one_that_the_owner_may_ask() -> None:
    assert wanted(OWNER.public, ["bb", "aa"]) == {"kinds": [44200], "#p": [OWNER.public], "authors": ["aa", "bb"]}
