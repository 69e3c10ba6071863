"""Tasks in steps played by real agents: halted between two steps, and the same processes in the next."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from harbor.models.agent.context import AgentContext
from harbor.utils.trajectory_validator import TrajectoryValidator

from tests.trial.test_steps import evidence, in_steps, receipts

pytestmark = pytest.mark.slow

STATES = "for pid in $(pgrep -f 'buzz-(acp|agent|dev-mcp)'); do cut -d' ' -f3 /proc/$pid/stat; done | sort -u"


async def run(trial: Any, instruction: str) -> dict[str, Any]:
    context = AgentContext()
    await trial.agent.run(instruction, trial.environment, context)
    told: dict[str, Any] = context.metadata["buzzbench"]
    return told


async def test_real_agents_stand_still_between_two_steps_and_go_on_as_the_same(real: Any) -> None:
    trial = await real.trial(in_steps(real.bench, "steps"))
    await trial.agent.setup(trial.environment)
    draft = await run(trial, "write it")
    assert (draft["ended"], draft["fault"], draft["labels"]) == ("done", None, [])
    before = await trial.processes()
    assert before
    assert await trial.say(STATES) == "T"
    # Harbor empties the logs before the next step, and what the agents say then must not be lost.
    assert await trial.say("ls /logs/agent") == "orch\nworker-1\nworker-2"
    await trial.environment.exec("rm -rf /logs/agent/*", user="root")
    change = await run(trial, "change it")
    assert (change["ended"], change["fault"], change["channel"]) == ("done", None, draft["channel"])
    assert await trial.say("cat /app/out") == "change"
    assert await trial.processes() == []
    assert await trial.say("grep -c 'turn starting' /logs/agent/worker-1/buzz-acp.log") == "2"
    assert evidence(trial, "change")["unexplained"] == []
    # A call that comes when the token is dead already has a receipt, and is none.
    mine = [r for r in receipts(real.bench) if r["trial"] == trial.directory.name and r["outcome"] != "refused"]
    for told in (draft, change):
        of_step = [r for r in mine if r["step"] == told["step"]["name"]]
        assert sum(used["calls"] for used in told["agents"].values()) == len(of_step) > 0


async def test_what_a_real_agent_did_in_a_step_is_that_steps_trajectory(real: Any) -> None:
    trial = await real.trial(in_steps(real.bench, "atif"))
    await trial.agent.setup(trial.environment)
    path = trial.directory / "agent" / "trajectory.json"
    acts = (("write it", "echo draft > out", "echo change"), ("change it", "echo change > out", "echo draft"))
    for instruction, did, other in acts:
        await run(trial, instruction)
        validator = TrajectoryValidator()
        assert validator.validate(path), validator.get_errors()
        worker = json.loads(path.read_text())["subagent_trajectories"][1]
        commands = [call["arguments"]["command"] for step in worker["steps"] for call in step.get("tool_calls", ())]
        assert any(did in command for command in commands)
        assert not any(other in command for command in commands)


LATE = """
orch:
  - name: end the first step, and go on
    expect: ["write it"]
    do:
      - done: "one"
  - name: take some time
    on: result
    do:
      - run: "sleep 1"
  - name: say it once more
    on: result
    do:
      - done: "one, late"
  - name: work
    expect: ["change it"]
    do:
      - run: "echo two > /app/out"
  - name: end the second step
    on: result
    do:
      - done: "two"
worker: []
"""


async def test_a_done_of_a_turn_that_was_halted_does_not_end_the_next_step(real: Any) -> None:
    trial = await real.trial(in_steps(real.bench, "late", LATE))
    await trial.agent.setup(trial.environment)
    await run(trial, "write it")
    change = await run(trial, "change it")
    assert (change["ended"], await trial.say("cat /app/out")) == ("done", "two")
    said = [m["text"] for m in evidence(trial, "change")["messages"] if m["author"] == "orch"]
    assert said == ["DONE: one", "DONE: one, late", "DONE: two"]
    assert change["done"]["event"] == evidence(trial, "change")["messages"][-1]["id"]


SLOW = """
orch:
  - name: think for longer than there is time
    expect: ["write it"]
    think_s: [60, 60]
    do:
      - done: "too late"
worker: []
"""


async def test_real_agents_stay_halted_in_steps_for_which_no_time_is_left(real: Any) -> None:
    task = in_steps(real.bench, "time-is-up", SLOW)
    (task / "task.toml").write_text((task / "task.toml").read_text() + '[[steps]]\nname = "third"\n')
    manifest = real.manifest()
    manifest.write_text(re.sub(r"timeout_seconds: \d+", "timeout_seconds: 2", manifest.read_text()))
    trial = await real.trial(task, manifest_path=manifest)
    await trial.agent.setup(trial.environment)
    draft = await run(trial, "write it")
    assert (draft["ended"], draft["labels"]) == ("deadline", ["agent_timeout"])
    before = await trial.processes()
    change = await run(trial, "change it")
    assert (change["ended"], change["labels"]) == ("deadline", ["agent_timeout", "never_played"])
    assert await trial.processes() == before
    assert await trial.say(STATES) == "T"
    third = await run(trial, "once more")
    assert third["labels"] == ["agent_timeout", "never_played"]
    assert await trial.processes() == []
    assert [m["text"] for m in evidence(trial, "third")["messages"]] == ["write it"]
