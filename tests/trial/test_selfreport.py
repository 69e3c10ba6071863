"""What agents say they used, in real encrypted events, against what the gateway counted."""

from __future__ import annotations

import json

import nostr_sdk
import pytest

from bench.nostr import Event, Key
from bench.prices import UNKNOWN, Tokens
from bench.trial.calls import Call
from bench.trial.selfreport import METRIC, Check, SelfReport, Sums, compare, metered, read, wanted

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
    at: int | None = None,
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
    }
    tags = [["p", to.public], ["agent", sender.public]]
    return sender.sign(METRIC, encrypted(sender, json.dumps(turn), to), tags, at)


COUNTED = (Sums(3, 1000, 50),)
"""What the gateway counted, all of it due: 1000 tokens in, 50 out."""


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
    assert compare(read([event], OWNER, PEOPLE), {"orch": COUNTED}).labels == ("self_report_missing",)


def test_a_forged_event_tells_nothing() -> None:
    event = {**metric(LEAD, "a", 1, 1000, 50), "sig": metric(LEAD, "a", 2, 1, 1)["sig"]}
    assert read([event], OWNER, PEOPLE)["orch"].unreadable == 1


def check(input_tokens: int | None, output_tokens: int | None, *counted: Sums) -> Check:
    said = read([metric(LEAD, "a", 1, input_tokens, output_tokens)], OWNER, PEOPLE)
    return compare(said, {"orch": counted or COUNTED})


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
    found = check(input_tokens, output_tokens)
    assert found.agents["orch"].verdict == verdict
    assert found.labels == (("self_report_differs",) if verdict == "differs" else ())


def test_an_agent_that_says_nothing_is_missing_and_the_gateways_count_is_shown() -> None:
    """Case 23: an adapter without metrics, and a gateway that saw three calls."""
    found = compare({}, {"orch": COUNTED})
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


def test_an_agent_of_which_no_turn_has_ended_owes_nothing() -> None:
    found = compare({}, {"worker-1": (Sums(),)})
    assert (found.agents["worker-1"].verdict, found.labels) == ("nothing_due", ())


def test_a_claim_without_any_call_differs() -> None:
    """Somebody used a key that is not ours, or signed what never was."""
    assert check(1000, 50, Sums()).labels == ("self_report_differs",)


def test_what_the_gateway_does_not_know_is_not_held_against_an_agent() -> None:
    assert check(1000, 50, Sums(2, None, None)).agents["orch"].verdict == "unknown"


def test_a_turn_that_ended_just_before_the_stop_may_be_reported_or_not() -> None:
    for said in (1000, 1500):
        assert check(said, 50, Sums(3, 1000, 50), Sums(4, 1500, 50)).agents["orch"].verdict == "agrees"
    assert check(2000, 50, Sums(3, 1000, 50), Sums(4, 1500, 50)).labels == ("self_report_differs",)


def call(began: float, tools: int | None, tokens: Tokens = Tokens(10, 80, 10, 5), outcome: str = "ok") -> Call:  # noqa: B008
    """A call of a second; one that calls no tool ends its turn."""
    return Call("orch", began, began + 1, outcome, 200, tokens, tools)


def test_only_turns_that_have_ended_are_due_and_one_that_is_cut_off_may_be_reported_as_far_as_it_came() -> None:
    calls = [call(0, 2), call(10, 0), call(20, 1), call(30, 1), call(40, None, UNKNOWN, "unknown")]
    assert metered(calls, stopped_at=100) == (Sums(2, 200, 10), Sums(3, 300, 15), Sums(4, 400, 20))


def test_a_turn_of_the_last_seconds_is_counted_both_ways() -> None:
    calls = [call(0, 0), call(20, 0), call(22, 0)]
    assert metered(calls, stopped_at=23) == (Sums(1, 100, 5), Sums(2, 200, 10), Sums(3, 300, 15))
    assert metered(calls[1:], stopped_at=22) == (Sums(), Sums(1, 100, 5), Sums(2, 200, 10))


def test_refused_calls_never_went_out_and_unknown_ones_make_the_sum_unknown() -> None:
    assert metered([call(0, 0), call(5, 0, outcome="refused")], 100) == (Sums(1, 100, 5),)
    assert metered([call(0, 1, UNKNOWN, "unknown"), call(5, 0)], 100) == (Sums(2, None, None),)


def test_the_filter_is_one_that_the_owner_may_ask() -> None:
    assert wanted(OWNER.public, ["bb", "aa"]) == {"kinds": [44200], "#p": [OWNER.public], "authors": ["aa", "bb"]}
