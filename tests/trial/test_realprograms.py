"""The stand-ins held against Buzz's own programs, where these are given."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.channel import RelayClient
from bench.trial import selfreport
from tests.standins.programs import ONLY_WITH_REAL_PROGRAMS, REAL_PROGRAMS

pytestmark = [pytest.mark.slow, ONLY_WITH_REAL_PROGRAMS]

SCRIPT = r"""
orch:
  - name: begin
    expect: ["make the file"]
    do:
      - send: {mention: [worker-1], text: "one: make it"}
      - tool: {create_channel: {name: side, members: [worker-1]}}
  - name: say two things while the worker works
    on: result
    do:
      - send: {mention: [worker-1], text: "two: look"}
      - send: {mention: [worker-1], text: "three: and again\nin two lines"}
  - name: go aside
    expect: ["MADE", "SEEN"]
    do:
      - send: {mention: [worker-1], text: "four: aside", channel: side}
  - name: take the worker out, and go on in a thread
    expect: ["ASIDE"]
    do:
      - tool: {remove_member: {name: worker-1, channel: side}}
      - tool: {list_members: {channel: side}}
      - send: {mention: [worker-1], text: "five: last", reply: "SEEN"}
  - name: finish
    expect: ["LAST"]
    do: [{done: all}]
worker-1:
  - name: make
    expect: ["one: make it"]
    do:
      - run: "sleep 3; echo 1 > made"
  - name: tell
    on: result
    do:
      - send: {mention: [orch], text: "MADE", reply: "one: make it"}
  - name: see
    expect: ["two: look", "three: and again"]
    do:
      - send: {mention: [orch], text: "SEEN", reply: "three: and again"}
  - name: aside
    expect: ["four: aside"]
    do:
      - send: {mention: [orch], text: "ASIDE"}
  - name: last
    expect: ["five: last"]
    do:
      - send: {mention: [orch], text: "LAST", reply: true}
"""

VARYING = (
    (r"npub1[a-z0-9]{58}", "NPUB"),
    (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UUID"),
    (r"\b([0-9a-f]{128}|[0-9a-f]{64})\b", "HEX"),
    (r"\d{4}-\d\d-\d\dT[0-9:.]+(Z|\+00:00)", "TIME"),
    (r"\bses_[0-9a-f]+", "SESSION"),
    (r"\bteam-[01]\b", "TASK"),
)
LABELLED = re.compile(
    r"\[[A-Z].*\]|--- .* ---|(Scope|Channel|Thread root|Parent|Event ID|Kind|From|Time|Content|Tags|Parsed): .*"
)
LOGGED = re.compile(
    r"(buzz_acp|pool::\w+|acp::tool): ((subscribed|presence|membership|created|turn|discovered|tool_call:) ?.*)"
)


def plain(text: str) -> str:
    """A text without what differs from trial to trial."""
    for pattern, word in VARYING:
        text = re.sub(pattern, word, text)
    return text


def form(value: Any) -> Any:
    """A JSON value's keys and types."""
    if isinstance(value, dict):
        return {key: form(part) for key, part in value.items()}
    if isinstance(value, list):
        return [form(part) for part in value]
    return type(value).__name__


def frames(trial: Any, agent: str, way: str) -> Iterator[dict[str, Any]]:
    """What went one way between buzz-acp and buzz-agent, but for what they tell of themselves, and a turn cut off."""
    for line in (trial.directory / "agent" / agent / f"acp.{way}.jsonl").read_text().splitlines():
        frame = json.loads(line)
        if frame.get("id") != 0 and "error" not in frame:
            yield frame


def passed(trial: Any) -> set[tuple[str, str, str]]:
    """The forms of the frames, each once."""
    found = set()
    for agent in ("orch", "worker-1"):
        for way in ("in", "out"):
            for frame in frames(trial, agent, way):
                prompt = frame.get("method") == "session/prompt"
                found.add(
                    (
                        agent,
                        way,
                        json.dumps(form(frame["params"] | {"prompt": []} if prompt else frame), sort_keys=True),
                    )
                )
    return found


def shown(trial: Any) -> list[list[str]]:
    """The lines of the worker's prompts that tell something, without advice."""
    asked = [frame["params"] for frame in frames(trial, "worker-1", "in") if frame["method"] == "session/prompt"]
    texts = ["\n".join(block["text"] for block in params["prompt"]) for params in asked]
    return [[line for line in plain(text).splitlines() if LABELLED.match(line)] for text in texts]


async def logged(trial: Any) -> set[str]:
    """The kinds of lines of the worker's log that tell what it does, each once: the last turn may be cut off."""
    log = await trial.say("cat /logs/agent/worker-1/buzz-acp.log")
    return {found[0] for line in plain(log).splitlines() if (found := LOGGED.search(line))}


def signed(trial: Any) -> list[tuple[str, int, str, str]]:
    """What the agents' keys signed; what takes a reaction back does so beside the work, until its end."""
    people = {person["public"]: person["name"] for person in trial.evidence["roster"]}
    return sorted(
        (people[event["pubkey"]], event["kind"], " ".join(tag[0] for tag in event["tags"]), plain(event["content"]))
        for event in trial.evidence["events"]
        if event["pubkey"] in people and event["kind"] != 5
    )


async def reported(trial: Any, stack: Any) -> set[str]:
    """The forms of the worker's reports on its turns (kind 44200), but of the one that the trial's end may cut off."""
    public = next(person["public"] for person in trial.evidence["roster"] if person["name"] == "worker-1")
    owner = stack.state.owner
    async with RelayClient(stack.address.relay_url, owner) as client:
        events = await client.query([selfreport.wanted(owner.public, [public])])
    told = [json.loads(owner.decrypt(event["pubkey"], event["content"])) for event in events]
    known = ("harness", "model", "stopReason", "deltaReliable")
    return {
        json.dumps(
            [turn["turnSeq"] == 1, [turn[key] for key in known], form(turn["turn"]), form(turn["cumulative"])],
            sort_keys=True,
        )
        for turn in told
        if turn["stopReason"] != "error"
    }


async def test_a_team_of_stand_ins_is_told_says_logs_and_signs_what_one_of_buzzs_own_programs_does(
    real: Any, standins: Path
) -> None:
    trials: list[Any] = []
    for programs in (REAL_PROGRAMS, standins):
        real.use(programs)
        trial = await real.trial(real.bench.task(f"team-{len(trials)}", SCRIPT))
        await trial.run()
        assert (trial.facts["ended"], trial.facts["labels"]) == ("done", []), trial.facts["reason"]
        trials.append(trial)
    own, ours = trials
    assert passed(ours) == passed(own)
    assert shown(ours) == shown(own)
    assert "--- Event 2 (@mention) ---" in shown(own)[1]
    assert await logged(ours) == await logged(own)
    assert signed(ours) == signed(own)
    assert await reported(ours, real.bench.stack) == await reported(own, real.bench.stack)
