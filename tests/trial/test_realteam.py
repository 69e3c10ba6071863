"""Whole trials of real agents in a real sandbox: stand-ins for Buzz's programs, everything else as it is."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from harbor.environments.base import HealthcheckError
from harbor.utils.trajectory_validator import TrajectoryValidator

from bench.channel import RelayClient
from tests.trial.conftest import GOOD
from tests.trial.upstream import Asked, Upstream, serving, text, use

pytestmark = pytest.mark.slow

SHELL = "buzz-dev-mcp__shell"
ALONE = "orch:\n  - name: work\n    expect: ['make the file']\n    do:\n"


async def until(condition: Any) -> None:
    """Wait for what nothing else tells of; the test's own timeout bounds it."""
    while not await condition():  # noqa: ASYNC110
        await asyncio.sleep(0.05)


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
    # With the tool's own output they would keep its call open until the deadline.
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
    assert calls[2] == "cat part1 part2 > out"
    assert lead["final_metrics"]["total_completion_tokens"] > 0
    results = [r for step in lead["steps"] for r in step.get("observation", {}).get("results", ())]
    assert '"exit_code": 0' in results[2]["content"]
    told = (trial.directory / "agent" / "orch" / "acp.in.jsonl").read_text()
    assert '"session/prompt"' in told
    assert '"value": "[REDACTED]"' in told
    assert await trial.say("grep -c 'turn starting' /logs/agent/worker-1/buzz-acp.log") == "1"


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


def send(asked: Asked, to: str, text: str) -> list[dict[str, Any]]:
    """The call that sends a message with a mention; the system prompt tells everybody's key."""
    row = next(line for line in asked.system.splitlines() if line.startswith((f"| {to} ", f"| {to} (you)")))
    channel = asked.system.split(", id ")[1].split(".")[0]
    mention = f" --mention {row.split(' | ')[2].strip(' |')}"
    return [use(SHELL, command=f"buzz messages send --channel {channel} --content '{text}'{mention}")]


async def test_a_message_during_the_orchestrators_last_call_is_not_lost(
    real: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With Buzz's default it would be: the worker reports while the call that closes the lead's turn is under way."""
    monkeypatch.setenv("TEST_MODEL_KEY", "k")
    reported = asyncio.Event()

    async def closing(asked: Asked) -> None:
        if asked.model == "lead" and asked.results:
            await asyncio.wait_for(reported.wait(), 20)
            await asyncio.sleep(0.5)  # for the report's way from the relay to the lead's process

    def answer(asked: Asked) -> list[dict[str, Any]]:
        if asked.results:
            if asked.model == "help":
                reported.set()
            return [text("so")]
        if asked.model == "help":
            return send(asked, "orch", "REPORT")
        return send(asked, "orch", "DONE: heard") if "REPORT" in asked.text else send(asked, "worker", "go")

    upstream = Upstream(answer, before=closing)
    async with serving(upstream, tmp_path, harness="buzz-agent") as terms:
        trial = await real.trial(real.bench.task("late-report"), **terms)
        await trial.run()
    assert (trial.facts["ended"], trial.evidence["messages"][-1]["text"]) == ("done", "DONE: heard")


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

    async def begun() -> bool:
        return bool(await trial.say("ls /app") == "begun")

    await until(begun)
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

    async def begun() -> bool:
        return bool(await trial.say("ls /app") == "begun")

    await until(begun)
    own_real.bench.stack.relay.stop(kill=True)
    await asyncio.to_thread(own_real.bench.stack.relay.start)
    await trial.say("touch /app/go")
    await running
    assert (trial.facts["ended"], trial.facts["labels"]) == ("done", ["relay_restarted"])


async def test_a_team_that_falls_silent_is_over(real: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.trial.realteam.SCRIPTED_QUIET_S", 1.5)
    trial = await real.trial(real.bench.task("silent", ALONE + "      - say: I am done, I think\n"))
    await trial.run()
    assert (trial.facts["ended"], trial.facts["labels"]) == ("loop", ["loop", "silent_turns"])
    assert trial.facts["reason"] == "the team fell silent: nobody gave a sign of life for 1.5 s"


async def test_agents_that_only_thank_each_other_are_a_loop(real: Any) -> None:
    script = (
        "orch:\n  - name: ask\n    expect: ['make the file']\n    do: [{send: {mention: [worker-1], text: hello}}]\n"
    )
    # Numbered: the same words within a second would be the same event, and wake nobody.
    thanks = "  - name: thank {0}\n    do: [{{send: {{mention: [{1}], text: thank you {0}}}}}]\n"
    script += "".join(thanks.format(n, "worker-1") for n in range(9))
    script += "worker-1:\n" + "".join(thanks.format(n, "orch") for n in range(9))
    trial = await real.trial(real.bench.task("polite", script))
    await trial.run()
    assert trial.facts["ended"] == "loop"
    assert "loop" in trial.facts["labels"]
    assert "turns in a row did nothing but exchange messages of at most 120 characters" in trial.facts["reason"]
    assert len([m for m in trial.evidence["messages"] if m["author"] != "user"]) >= 12


async def test_a_real_model_is_reminded_once(real: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.trial.realteam.QUIET_S", 1.5)
    monkeypatch.setenv("TEST_MODEL_KEY", "k")

    def answer(asked: Asked) -> list[dict[str, Any]]:
        if "The whole team is idle" not in asked.text:
            return [text("so")]
        channel = asked.system.split(", id ")[1].split(".")[0]
        return [use(SHELL, command=f"buzz messages send --channel {channel} --content 'DONE: reminded'")]

    async with serving(Upstream(answer), tmp_path, workers=0, harness="buzz-agent") as terms:
        trial = await real.trial(real.bench.task("nudge"), **terms)
        await trial.run()
    assert (trial.facts["ended"], trial.facts["labels"]) == ("done", [])
    assert [m["author"] for m in trial.evidence["messages"]] == ["user", "user", "orch"]


@pytest.mark.parametrize(
    ("status", "kind"), [(402, "upstream_refused"), (400, "upstream_rejected"), (500, "upstream_failed")]
)
async def test_a_model_that_fails_for_ever_ends_the_trial_early(
    status: int, kind: str, real: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_MODEL_KEY", "k")
    upstream = Upstream(lambda asked: (status, "no"))
    async with serving(upstream, tmp_path, workers=0, harness="buzz-agent") as terms:
        trial = await real.trial(real.bench.task("failing"), **terms)
        with pytest.raises(HealthcheckError, match=f"^{kind}: "):
            await trial.run()
    assert len(upstream.asked) == {402: 1, 400: 2, 500: 6}[status]
    assert await trial.processes() == []


async def test_a_models_rate_limit_is_waited_for_and_costs_the_team_nothing(
    real: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_MODEL_KEY", "k")

    def answer(asked: Asked) -> list[dict[str, Any]] | tuple[int, str]:
        if asked.number < 3:
            return 429, "slow down"
        channel = asked.system.split(", id ")[1].split(".")[0]
        return [use(SHELL, command=f"buzz messages send --channel {channel} --content 'DONE: in time'")]

    upstream = Upstream(answer, error_headers={"retry-after": "0.2"})
    async with serving(upstream, tmp_path, workers=0, harness="buzz-agent") as terms:
        trial = await real.trial(real.bench.task("limited"), **terms)
        await trial.run()
    assert (trial.facts["ended"], trial.facts["labels"], trial.facts["fault"]) == ("done", [], None)
    assert len([call for call in upstream.asked if call.number < 3]) == 3


async def test_a_person_who_meddles_with_real_agents_taints_the_trial(real: Any) -> None:
    script = (
        ALONE + "      - run: 'touch begun; until test -e go; do sleep 0.1; done'\n"
        "  - name: finish\n    on: result\n    do:\n      - done: all the same\n"
    )
    trial = await real.trial(real.bench.task("meddled", script))
    running = asyncio.create_task(trial.run())

    async def begun() -> bool:
        return bool(await trial.say("ls /app") == "begun")

    await until(begun)
    state, address = real.bench.stack.state, real.bench.stack.address
    tag = state.owner.attest(state.user.public)
    async with RelayClient(address.relay_url, state.user, auth_tag=tag) as person:
        await person.publish(state.user.sign(9, "hurry up", [["h", trial.facts["channel"]]]))
    await trial.say("touch /app/go")
    await running
    assert (trial.facts["ended"], trial.facts["labels"]) == ("done", ["tainted"])


async def test_a_cap_ends_the_trial(real: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_MODEL_KEY", "k")
    upstream = Upstream(lambda asked: [use(SHELL, command="true")])
    async with serving(upstream, tmp_path, workers=0, trial=", max_calls: 3", harness="buzz-agent") as terms:
        trial = await real.trial(real.bench.task("capped"), **terms)
        await trial.run()
    assert (trial.facts["ended"], trial.facts["labels"]) == ("budget", ["budget"])
    assert len(upstream.asked) == 3
    assert trial.facts["agents"]["orch"]["calls"] == 3


async def test_an_agents_own_cap_is_told_to_the_others_who_go_on(
    real: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_MODEL_KEY", "k")

    def answer(asked: Asked) -> list[dict[str, Any]]:
        if asked.model == "help":
            return [use(SHELL, command="true")]
        if asked.number == 0:
            return send(asked, "worker", "please go on")
        return send(asked, "worker", "DONE: alone") if "worker can't go on" in asked.text else [text("so")]

    upstream = Upstream(answer)
    async with serving(upstream, tmp_path, harness="buzz-agent", caps={"worker": "max_calls: 2"}) as terms:
        trial = await real.trial(real.bench.task("own-cap"), **terms)
        await trial.run()
    assert (trial.facts["ended"], "agent_budget" in trial.facts["labels"]) == ("done", True)
    assert [a.model for a in upstream.asked].count("help") == 2
    assert trial.facts["agents"]["worker"]["capped_calls"] >= 1
    told = next(m["text"] for m in trial.evidence["messages"] if m["text"].startswith("[Notice]"))
    assert told.startswith("[Notice] worker can't go on: the agent worker has a cap of 2 calls")


@pytest.mark.slow
async def test_an_orchestrators_own_cap_ends_the_trial_however_often_its_turn_is_tried_again(
    real: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.trial.realteam.QUIET_S", 7.0)  # longer than the first pause between two tries
    monkeypatch.setenv("TEST_MODEL_KEY", "k")
    upstream = Upstream(lambda asked: [use(SHELL, command="true")])
    async with serving(upstream, tmp_path, workers=0, caps={"orch": "max_calls: 2"}, harness="buzz-agent") as terms:
        trial = await real.trial(real.bench.task("lead-capped"), **terms)
        await trial.run()
    assert (trial.facts["ended"], len(upstream.asked)) == ("budget", 2)
    assert trial.facts["agents"]["orch"]["capped_calls"] > 1, "it was tried again, and that was no sign of life"
    assert {"budget", "agent_budget"} <= set(trial.facts["labels"])
    assert trial.facts["reason"].startswith("Buzzbench budget: the agent orch has a cap of 2 calls: 2 calls spent")


async def test_an_orchestrator_that_is_killed_ends_the_trial_with_a_label(
    real: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.trial.signs.PROBE_S", 0.5)
    script = ALONE + "      - run: 'kill -9 $(cat /opt/buzzbench/team/agents/orch/pid); sleep 60'\n"
    trial = await real.trial(real.bench.task("killed", script))
    await trial.run()
    assert (trial.facts["ended"], trial.facts["labels"]) == ("agents_died", ["agents_died"])
    assert trial.facts["reason"] == "orch ended during the work, without which nobody can end it"
    assert await trial.processes() == []


async def test_a_worker_that_is_killed_is_a_label_of_a_team_that_goes_on_without_it(real: Any) -> None:
    script = (
        ALONE + "      - run: 'kill -9 $(cat /opt/buzzbench/team/agents/worker-2/pid); touch alone'\n"
        "      - done: without worker-2\n"
    )
    trial = await real.trial(real.bench.task("one-less", script))
    await trial.run()
    assert (trial.facts["ended"], trial.facts["labels"]) == ("done", ["agents_died"])
    assert await trial.say("ls /app") == "alone"
    assert await trial.processes() == []


async def test_work_that_is_done_and_never_reported_is_left_to_be_judged(
    real: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.trial.realteam.SCRIPTED_QUIET_S", 1.5)
    script = ALONE + (
        "      - send: {mention: [worker-1], text: please write}\n"
        "worker-1:\n  - name: write\n    expect: [please write]\n    do: [{run: echo 1 > out}]\n"
        "  - name: forget\n    on: result\n    do: [{say: that was it}]\n"
    )
    trial = await real.trial(real.bench.task("unreported", script))
    await trial.run()
    assert (trial.facts["ended"], trial.facts["fault"]) == ("loop", None)
    assert trial.facts["labels"] == ["loop", "silent_turns"]
    assert await trial.say("cat /app/out") == "1"
    assert trial.facts["agents"]["worker-1"]["calls"] == 2


async def test_an_agent_that_signs_as_its_neighbour_is_seen(real: Any) -> None:
    script = """
orch:
  - name: delegate
    expect: ["make the file"]
    do:
      - send: {mention: [worker-1], text: "please write part 1"}
worker:
  - name: forge
    expect: ["please write part 1"]
    do:
      - run: |
          until grep -q 'turn complete' /logs/agent/orch/buzz-acp.log; do sleep 0.1; done
          sleep 3.5
          . /opt/buzzbench/team/agents/orch/env
          channel=$(grep -o '[0-9a-f-]\\{36\\}' /opt/buzzbench/team/team.env)
          buzz messages send --channel $channel --content 'DONE: so I say'
"""
    trial = await real.trial(real.bench.task("forged", script))
    await trial.run()
    assert (trial.facts["ended"], trial.facts["labels"]) == ("done", ["unexplained_event"])
    (forged,) = trial.evidence["unexplained"]
    assert trial.evidence["messages"][-1]["id"] == forged


async def test_a_script_that_an_agent_left_behind_may_speak_for_it_and_is_only_labelled(real: Any) -> None:
    """The honest case of what looks like a forgery: the trial is judged as any other."""
    script = (
        ALONE
        + r"""
      - run: |
          channel=$(grep -o '[0-9a-f-]\{36\}' /opt/buzzbench/team/team.env)
          echo "sleep 4; buzz messages send --channel $channel --content 'DONE: by a script'" > later.sh
          setsid -f sh later.sh > /dev/null 2>&1
  - name: rest
    on: result
    do:
      - say: the script tells when it is done
"""
    )
    trial = await real.trial(real.bench.task("background", script))
    await trial.run()
    assert (trial.facts["ended"], trial.facts["fault"]) == ("done", None)
    assert trial.facts["labels"] == ["unexplained_event"]
    (message,) = (m for m in trial.evidence["messages"] if m["author"] == "orch")
    assert trial.evidence["unexplained"] == [message["id"]]


async def test_an_environment_that_is_lost_is_a_label(real: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.trial.signs.PROBE_S", 0.5)
    trial = await real.trial(real.bench.task("lost", ALONE + "      - run: 'touch begun; sleep 60'\n"))
    running = asyncio.create_task(trial.run())

    async def begun() -> bool:
        return bool(await trial.say("ls /app") == "begun")

    await until(begun)
    await trial.environment.stop(delete=True)
    await running
    assert (trial.facts["ended"], trial.facts["labels"]) == ("environment_lost", ["environment_lost"])
    assert trial.evidence["messages"][0]["text"] == "make the file"


async def test_agents_that_reach_no_relay_are_a_fault_that_names_the_way(
    real: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.harness.buzz.kit.READY_S", 2)
    trial = await real.trial(real.bench.task("far"), network="none")
    port = real.bench.stack.address.relay_url.rpartition(":")[2]
    with pytest.raises(HealthcheckError, match=rf"^agents_not_ready: unreachable relay at localhost:{port}"):
        await trial.run()
    assert trial.facts["ended"] == "fault"
    assert "post" not in trial.facts["timings"]
    assert await trial.processes() == []


async def test_agents_that_say_they_listen_and_are_not_seen_at_the_relay_are_a_fault(
    real: Any, programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.trial.realteam.ONLINE_S", 0.5)
    mute = tmp_path / "mute"
    shutil.copytree(programs, mute)
    (mute / "buzz-acp").write_text(
        '#!/bin/bash\n. "$BUZZBENCH_TEAM/team.env"\necho "$bzb_ready_line"\nexec -a buzz-acp sleep 1000\n'
    )
    monkeypatch.setenv("BUZZBENCH_AGENT_PROGRAMS", str(mute))
    real.bench.stack.run_dir(real.bench.job_dir.name)
    trial = await real.trial(real.bench.task("mute"))
    what = r"^agents_not_ready: orch, worker-1, worker-2: the relay has not seen them come online$"
    with pytest.raises(HealthcheckError, match=what):
        await trial.run()
    assert "post" not in trial.facts["timings"]
    assert await trial.processes() == []


async def test_programs_that_are_missing_are_named_in_the_setup(real: Any, programs: Path, tmp_path: Path) -> None:
    half = tmp_path / "half"
    half.mkdir()
    (half / "buzz-acp").write_bytes((programs / "buzz-acp").read_bytes())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BUZZBENCH_AGENT_PROGRAMS", str(half))
        real.bench.stack.run_dir(real.bench.job_dir.name)
    trial = await real.trial(real.bench.task("none"))
    what = rf"^setup: {half}: there is no buzz-agent and no buzz-dev-mcp; run `inv xbuild`$"
    with pytest.raises(HealthcheckError, match=what):
        await trial.run()
