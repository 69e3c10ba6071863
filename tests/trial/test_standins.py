"""The stand-ins send what Buzz's own programs sent in the capture of one whole loop: a contract between the two."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from bench.nostr import Key

pytestmark = pytest.mark.slow

CAPTURE = Path(__file__).parent.parent / "conformance" / "data" / "one-loop.jsonl"
WORKER = "47bfab5067a770803cb1a15d09367d766f3c28862e868a6e8d9d8cf6bb6a8aa1"
"""The worker's key in the capture."""

SCRIPT = """
orch:
  - name: delegate
    expect: ["make the file"]
    do:
      - send: {mention: [worker-1], text: "@worker-1 please write"}
  - name: finish
    expect: ["REPORT"]
    do:
      - run: sleep 1
      - done: "all good"
worker:
  - name: write
    expect: ["please write"]
    do:
      - send: {mention: [orch], text: "@orch REPORT"}
"""


def shape(way: str, sent: Any) -> str:
    """What a request is, without its ids and times: kinds, tags, filters."""
    if way == "ws":
        name, *rest = sent
        if name == "REQ":
            return f"REQ {rest[0][:3]} {_filter(rest[1])}"
        return f"{name} {_event(rest[0])}" if name in ("EVENT", "AUTH") else name
    if way == "/query":
        return "query " + " | ".join(map(_filter, sent))
    return f"post {_event(sent)}"


def _filter(wanted: dict[str, Any]) -> str:
    kinds = sorted(wanted.get("kinds", ()))
    return f"{kinds} by {sorted(wanted.keys() - {'kinds'})}"


def _event(event: dict[str, Any]) -> str:
    said = event["content"] if event["kind"] in (20001, 7) else ""
    return f"{event['kind']} {sorted({tag[0] for tag in event['tags']})} {said}".strip()


def captured(public: str) -> list[str]:
    """What the programs of that key sent."""
    sessions: dict[int, str] = {}
    found = []
    for line in map(json.loads, CAPTURE.read_text(encoding="utf-8").splitlines()):
        if line.get("dir") != "c>s":
            continue
        if "ws" in line:
            if line["ws"][0] == "AUTH":
                sessions[line["conn"]] = line["ws"][1]["pubkey"]
            if sessions.get(line["conn"]) == public:
                found.append(shape("ws", line["ws"]))
        elif line.get("http", {}).get("line", "").startswith("POST"):
            proof = json.loads(base64.b64decode(line["http"]["headers"]["authorization"].removeprefix("Nostr ")))
            if proof["pubkey"] == public:
                found.append(shape(line["http"]["line"].split()[1], line["http"]["json"]))
    return found


def until(shapes: Iterable[str], last: str) -> list[str]:
    found = list(shapes)
    return found[: found.index(last) + 1]


async def test_a_stand_ins_requests_are_those_of_the_capture(real: Any, standins: Path) -> None:
    real.use(standins)
    image = "ENV STANDIN_TRACE=/logs/agent/trace\n"
    trial = await real.trial(real.bench.task("wire", SCRIPT), dockerfile=image)
    await trial.run()
    assert trial.facts["ended"] == "done"
    key = next(person["public"] for person in trial.evidence["roster"] if person["name"] == "worker-1")
    lines = [json.loads(line) for line in (await trial.say("cat /logs/agent/trace")).splitlines()]
    sent = [shape(line["way"], line["sent"]) for line in lines if Key(line["by"]).public == key]
    theirs = captured(WORKER)
    profile = theirs.index("AUTH 22242 ['auth', 'challenge', 'relay']")
    theirs = theirs[profile:]  # before it, the capture's harness set the profile by the command line

    ready = "EVENT 20001 [] online"
    assert until(sent, ready) == until(theirs, ready)
    ours, those = sent[sent.index(ready) + 1 :], theirs[theirs.index(ready) + 1 :]
    own = [each for each in ours if "20002" not in each]
    assert sorted(set(own)) == sorted(set(those) - {"EVENT 20001 [] offline"})
    report = "post 9 ['auth', 'h', 'p']"
    assert [each for each in until(own, report) if each[:4] == "post"] == [
        each for each in until(those, report) if each[:4] == "post"
    ]
