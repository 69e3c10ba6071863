"""Whole trials on the scripted model, over the real relay and the real gateway."""

from __future__ import annotations

import asyncio
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from harbor.environments.base import HealthcheckError
from harbor.utils.trajectory_validator import TrajectoryValidator

from bench.channel import RelayClient
from bench.scoring.outcome import classify, facts_from
from bench.trial.agent import TeamAgent
from tests.trial.conftest import GOOD
from tests.trial.services import appears
from tests.trial.upstream import Upstream, serving


async def test_a_team_finishes_a_task_and_leaves_its_evidence(bench: Any) -> None:
    trial = bench.trial(bench.task("merge"))
    await trial.run()
    assert (trial.facts["ended"], trial.facts["fault"], trial.facts["labels"]) == ("done", None, [])
    assert (trial.workspace.root / "out").read_text() == "1\n2\n"
    kept = (trial.directory / "buzzbench-evidence.json").read_bytes()
    assert trial.facts["evidence_sha256"] == hashlib.sha256(kept).hexdigest()
    assert trial.workspace.uploaded == {"/logs/artifacts/relay_evidence.json": kept}


async def test_the_evidence_tells_the_whole_story_in_order(bench: Any) -> None:
    trial = bench.trial(bench.task("story"))
    await trial.run()
    found = trial.evidence
    assert found["invalid"] == []
    assert found["channels"] == [
        {
            "id": trial.facts["channel"],
            "name": "buzz/story",
            "creator": "user",
            "members": ["user", "orch", "worker-1", "worker-2"],
        }
    ]
    messages = found["messages"]
    assert messages[0]["text"] == "make the file"
    assert (messages[0]["author"], messages[0]["mentions"]) == ("user", ["orch"])
    assert [m["text"] for m in messages[1:3]] == ["please write part 1", "please write part 2"]
    reports = {m["author"]: m for m in messages[3:5]}
    assert reports["worker-1"]["parent"] == messages[1]["id"]
    assert reports["worker-2"]["mentions"] == ["orch"]
    assert (messages[5]["text"], messages[5]["mentions"]) == ("DONE: merged", ["user"])
    profiles = [event for event in found["events"] if event["kind"] == 0]
    assert len(profiles) == 3
    assert all(event["tags"][0][:2] == ["auth", bench.stack.state.owner.public] for event in profiles)


async def test_the_user_is_a_person_and_no_agent(bench: Any) -> None:
    """By the attestation in a profile Buzz's agents tell agents from people, whom they answer otherwise."""
    await bench.trial(bench.task("person")).run()
    address, state = bench.stack.address, bench.stack.state
    tag = state.owner.attest(state.user.public)
    async with RelayClient(address.relay_url, state.user, auth_tag=tag) as person:
        (profile,) = await person.query([{"kinds": [0], "authors": [state.user.public]}])
    assert profile["tags"] == []


async def test_the_trajectory_is_one_that_harbor_takes(bench: Any) -> None:
    trial = bench.trial(bench.task("atif"))
    await trial.run()
    path = trial.directory / "agent" / "trajectory.json"
    validator = TrajectoryValidator()
    assert validator.validate(path), validator.get_errors()
    members = json.loads(path.read_text())["subagent_trajectories"]
    assert [member["trajectory_id"] for member in members] == ["orch", "worker-1", "worker-2"]
    done = members[0]["steps"][-1]
    assert done["tool_calls"][0]["function_name"] == "done"
    assert done["observation"]["results"][0]["content"].startswith("posted, Event ID:")


async def test_a_rehearsal_speaks_the_dialect_of_the_condition_it_rehearses(bench: Any, tmp_path: Path) -> None:
    upstream = Upstream(lambda asked: [])
    async with serving(upstream, tmp_path, workers=2) as terms:
        spoken = {"provider": "openai", "base_url": "http://localhost:9/v1"}
        Path(terms["endpoints"]).write_text(json.dumps({"lead": spoken, "help": spoken}))
        trial = bench.trial(bench.task("openai"), **{**terms, "rehearsal": "good"})
        await trial.run()
    assert trial.facts["ended"] == "done"
    assert (trial.workspace.root / "out").read_text() == "1\n2\n"
    receipts = (bench.job_dir / "buzzbench-receipts.jsonl").read_text().splitlines()
    assert {json.loads(line)["dialect"] for line in receipts} == {"openai"}
    assert upstream.asked == []


async def test_a_team_that_never_ends_runs_into_its_deadline_and_is_judged(bench: Any) -> None:
    waits = GOOD.replace('- done: "merged"', '- run: "sleep 60"')
    trial = bench.trial(bench.task("late", waits, agent_timeout_s=12))
    await trial.run()
    assert (trial.facts["ended"], trial.facts["labels"]) == ("deadline", ["agent_timeout", "silent_turns"])
    assert "task's agent timeout 12 s less 8 s for wind-down and evidence" in trial.facts["reason"]
    assert trial.evidence["messages"]
    assert trial.facts["agents"]["orch"]["calls"] > 0


@pytest.mark.parametrize(
    ("script", "kind", "step"),
    [
        (GOOD.replace('expect: ["REPORT 1", "REPORT 2"]', 'expect: ["SUM"]'), "script_mismatch", "'merge' of orch"),
        (GOOD.split("worker:")[0], "script_exhausted", "no steps for worker-"),
    ],
)
async def test_a_script_that_does_not_fit_has_no_score_and_names_the_step(
    bench: Any, script: str, kind: str, step: str
) -> None:
    trial = bench.trial(bench.task("misfit", script))
    with pytest.raises(HealthcheckError, match=f"^{kind}: ") as caught:
        await trial.run()
    assert step in str(caught.value)
    result = {
        "exception_info": {"exception_type": "HealthcheckError", "exception_message": str(caught.value)},
        "agent_result": {"metadata": trial.context.metadata},
    }
    outcome = classify(facts_from(result))
    assert outcome.outcome == "unscored"
    assert step in outcome.reason


async def test_a_task_without_the_script_has_no_score(bench: Any) -> None:
    trial = bench.trial(bench.task("bare"), rehearsal="other")
    with pytest.raises(HealthcheckError, match=r"other\.yaml: this task has no such script"):
        await trial.run()
    assert trial.facts["fault"]["kind"] == "setup"
    assert trial.facts["ended"] == "fault"


async def test_a_cancelled_trial_leaves_usage_and_evidence_quickly(bench: Any) -> None:
    waits = GOOD.replace('- done: "merged"', '- run: "touch waiting; sleep 60"')
    trial = bench.trial(bench.task("cancelled", waits))
    running = asyncio.create_task(trial.run())
    await appears(trial.workspace.root / "waiting")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert trial.context.n_input_tokens > 0
    assert trial.facts["agents"]["orch"]["calls"] > 0
    assert trial.facts["fault"] is None
    assert trial.evidence["messages"]


async def test_a_person_who_meddles_taints_the_trial(bench: Any) -> None:
    waits = GOOD.replace('- done: "merged"', '- run: "touch waiting; until [ -e go ]; do sleep 0.02; done"')
    waits += '  - name: end\n    on: message\n    do:\n      - say: "x"\n'
    waits = waits.replace("worker:", '  - name: really finish\n    on: result\n    do:\n      - done: "ok"\nworker:')
    trial = bench.trial(bench.task("tainted", waits))
    running = asyncio.create_task(trial.run())
    await appears(trial.workspace.root / "waiting")
    state, address = bench.stack.state, bench.stack.address
    tag = state.owner.attest(state.user.public)
    async with RelayClient(address.relay_url, state.user, auth_tag=tag) as person:
        await person.publish(state.user.sign(9, "hurry up", [["h", trial.facts["channel"]]]))
    (trial.workspace.root / "go").touch()
    await running
    assert (trial.facts["ended"], trial.facts["labels"]) == ("done", ["tainted"])
    assert trial.facts["trust_domain"] == "agent"


CHANNELS = """
orch:
  - name: open a room
    expect: ["make the file"]
    do:
      - tool: {create_channel: {name: "side", members: ["worker-1"]}}
  - name: ask there
    on: result
    expect: ["created side"]
    do:
      - send: {channel: "side", mention: [worker-1], text: "please look in"}
  - name: finish
    expect: ["REPORT"]
    do:
      - tool: {add_member: {name: "worker-2", channel: "side"}}
      - tool: {react: {event_id: "{{event}}", emoji: "+1"}}
      - done: "talked aside"
worker-1:
  - name: answer
    expect: ["please look in"]
    do:
      - send: {channel: "side", mention: [orch], text: "REPORT here", reply: true}
worker-2: []
"""


async def test_agents_hear_each_other_in_channels_that_they_make(bench: Any) -> None:
    trial = bench.trial(bench.task("aside", CHANNELS))
    await trial.run()
    found = trial.evidence
    assert trial.facts["ended"] == "done"
    side = next(channel for channel in found["channels"] if channel["name"] == "side")
    assert side["members"] == ["orch", "worker-1", "worker-2"]
    assert [m["text"] for m in found["messages"] if m["channel"] == side["id"]] == ["please look in", "REPORT here"]
    assert [(r["author"], r["emoji"]) for r in found["reactions"]] == [("orch", "+1")]


def test_the_agent_tells_harbor_what_it_is() -> None:
    assert TeamAgent.name() == "buzzbench-team"
    assert TeamAgent.capabilities.atif
