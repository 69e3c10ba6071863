"""Whole trials of real agents in a real sandbox: stand-ins for Buzz's programs, everything else as it is."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from harbor.environments.base import HealthcheckError
from harbor.utils.trajectory_validator import TrajectoryValidator

from bench.channel import RelayClient
from tests.trial.conftest import GOOD

pytestmark = pytest.mark.slow

ALONE = "orch:\n  - name: work\n    expect: ['make the file']\n    do:\n"


async def test_a_team_of_real_agents_finishes_a_task(real: Any) -> None:
    trial = await real.trial(real.bench.task("merge", GOOD))
    await trial.run()
    assert (trial.facts["ended"], trial.facts["fault"], trial.facts["labels"]) == ("done", None, [])
    assert await trial.say("cat /app/out") == "1\n2"
    said = [(m["author"], m["text"]) for m in trial.evidence["messages"]]
    assert said[0] == ("user", "make the file")
    assert said[-1] == ("orch", "DONE: merged")
    assert ("worker-2", "REPORT 2") in said
    assert trial.evidence["unexplained"] == []
    assert trial.facts["trust_domain"] == "trial"
    assert set(trial.facts["programs"]["sha256"]) == {"buzz-acp", "buzz-agent", "buzz-dev-mcp"}


async def test_nothing_of_the_agents_is_left_but_what_they_made(real: Any) -> None:
    # With the tool's own output they would keep its call open for five seconds, and its output would be lost.
    script = ALONE + (
        "      - run: 'exec > /dev/null 2>&1; setsid -f sleep 300; (sleep 301 &) ; echo made > made'\n"
        "      - done: there is a service\n"
    )
    trial = await real.trial(real.bench.task("service", script))
    await trial.run()
    assert trial.facts["ended"] == "done"
    assert await trial.processes() == []
    assert await trial.say("cat /app/made; pgrep -c -f 'sleep 300'") == "made\n1"
    assert await trial.say("pgrep -f 'sleep 301'") == ""
    assert await trial.say("ls /opt/buzzbench/team/agents 2>&1 | grep -c 'No such'") == "1"


async def test_what_agents_did_is_a_trajectory_and_no_key_is_in_what_is_kept(real: Any) -> None:
    trial = await real.trial(real.bench.task("atif", GOOD))
    await trial.run()
    path = trial.directory / "agent" / "trajectory.json"
    validator = TrajectoryValidator()
    assert validator.validate(path), validator.get_errors()
    lead = json.loads(path.read_text())["subagent_trajectories"][0]
    calls = [call["arguments"]["command"] for step in lead["steps"] for call in step.get("tool_calls", ())]
    assert calls[1] == "cat part1 part2 > out"
    assert lead["final_metrics"]["total_completion_tokens"] > 0
    results = [r for step in lead["steps"] for r in step.get("observation", {}).get("results", ())]
    assert '"exit_code": 0' in results[1]["content"]
    told = (trial.directory / "agent" / "orch" / "acp.in.jsonl").read_text()
    assert '"session/prompt"' in told
    assert '"[REDACTED]"' in told
    assert await trial.say("grep -c 'turn starting' /logs/agent/worker-1/buzz-acp.log") == "1"


async def test_a_steps_actions_are_carried_out_in_their_order_although_an_agents_calls_are_not(real: Any) -> None:
    script = ALONE + (
        "      - run: 'echo 1 >> order'\n      - send: {mention: [worker-1], text: '- two, @fixture'}\n"
        "      - run: 'echo 3 >> order'\n"
        "      - done: 'in order'\nworker-1:\n  - name: rest\n    do: [{say: heard}]\n"
    )
    trial = await real.trial(real.bench.task("order", script))
    await trial.run()
    assert await trial.say("cat /app/order") == "1\n3"
    assert [m["text"] for m in trial.evidence["messages"]] == ["make the file", "- two, @fixture", "DONE: in order"]


async def test_the_images_variables_reach_the_shells_and_the_agents_own_stay_out(real: Any) -> None:
    script = ALONE + (
        "      - run: 'echo $FLAVOUR,$JAVA_HOME,${ANTHROPIC_API_KEY:-none},${BUZZ_AGENT_MODEL:-none} > seen'\n"
        "      - done: seen\n"
    )
    image = 'ENV FLAVOUR="two words\'s" JAVA_HOME=/opt/java\n'
    trial = await real.trial(real.bench.task("image", script), dockerfile=image)
    await trial.run()
    assert await trial.say("cat /app/seen") == "two words's,/opt/java,none,none"


async def test_an_instruction_may_hold_anything(real: Any) -> None:
    instruction = "make the file\n@pytest.fixture\n" + "x" * 60_000 + "\n@nobody $(touch /app/x) `touch /app/y` 'end"
    script = (
        'orch:\n  - name: work\n    expect: ["@pytest.fixture", "' + "x" * 60_000 + '", "@nobody $("]\n'
        "    do:\n      - done: read\n"
    )
    trial = await real.trial(real.bench.task("any", script, instruction=instruction))
    await trial.run()
    assert trial.facts["ended"] == "done"
    assert await trial.say("ls /app") == ""


async def test_a_script_that_does_not_match_is_a_fault(real: Any) -> None:
    script = "orch:\n  - name: work\n    expect: [something else]\n    do:\n      - done: x\n"
    trial = await real.trial(real.bench.task("mismatch", script))
    with pytest.raises(HealthcheckError, match=r"^script_mismatch: orch: step 'work' of orch expected"):
        await trial.run()
    assert await trial.processes() == []


async def test_a_deadline_ends_every_process_and_keeps_the_tokens(real: Any) -> None:
    script = ALONE + "      - run: 'touch begun; sleep 60; touch late'\n"
    trial = await real.trial(real.bench.task("late", script, agent_timeout_s=11))
    await trial.run()
    assert (trial.facts["ended"], trial.facts["labels"]) == ("deadline", ["agent_timeout"])
    assert trial.context.n_input_tokens > 0
    assert await trial.processes() == []
    assert await trial.say("ls /app; pgrep -f 'sleep 60'") == "begun"


async def test_a_cancel_ends_every_process_and_leaves_the_evidence(real: Any) -> None:
    trial = await real.trial(real.bench.task("cancelled", ALONE + "      - run: 'touch begun; sleep 60'\n"))
    running = asyncio.create_task(trial.run())

    await trial.begun()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await trial.processes() == []
    assert trial.evidence["messages"][0]["text"] == "make the file"
    assert trial.context.n_input_tokens > 0


async def test_a_relay_that_comes_back_costs_nothing_but_a_label(own_real: Any) -> None:
    script = (
        ALONE + "      - run: 'touch begun; until test -e go; do sleep 0.1; done'\n"
        "  - name: finish\n    on: result\n    do:\n      - done: back\n"
    )
    trial = await own_real.trial(own_real.bench.task("restart", script))
    running = asyncio.create_task(trial.run())

    await trial.begun()
    own_real.bench.stack.relay.stop(kill=True)
    await asyncio.to_thread(own_real.bench.stack.relay.start)
    await trial.say("touch /app/go")
    await running
    assert (trial.facts["ended"], trial.facts["labels"]) == ("done", ["relay_restarted"])


async def test_a_person_who_meddles_with_real_agents_taints_the_trial(real: Any) -> None:
    script = (
        ALONE + "      - run: 'touch begun; until test -e go; do sleep 0.1; done'\n"
        "  - name: finish\n    on: result\n    do:\n      - done: all the same\n"
    )
    trial = await real.trial(real.bench.task("meddled", script))
    running = asyncio.create_task(trial.run())

    await trial.begun()
    state, address = real.bench.stack.state, real.bench.stack.address
    tag = state.owner.attest(state.user.public)
    async with RelayClient(address.relay_url, state.user, auth_tag=tag) as person:
        await person.publish(state.user.sign(9, "hurry up", [["h", trial.facts["channel"]]]))
    await trial.say("touch /app/go")
    await running
    assert (trial.facts["ended"], trial.facts["labels"]) == ("done", ["tainted"])
