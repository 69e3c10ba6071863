"""How a trial of real agents ends where they fall silent, loop, die, sign for others or reach nothing."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest
from harbor.environments.base import HealthcheckError

from bench.trial.wallclock import WallClock

pytestmark = pytest.mark.slow


ALONE = "orch:\n  - name: work\n    expect: ['make the file']\n    do:\n"


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


FORGING = """
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
          channel=$(grep -o '[0-9a-f-]\\{36\\}' /opt/buzzbench/team/team.env | head -n 1)
          buzz messages send --channel $channel --content 'DONE: so I say'
"""


async def test_an_agent_that_signs_as_its_neighbour_is_seen(real: Any) -> None:
    trial = await real.trial(real.bench.task("forged", FORGING))
    await trial.run()
    assert (trial.facts["ended"], trial.facts["labels"]) == ("done", ["unexplained_event"])
    (forged,) = trial.evidence["unexplained"]
    assert trial.evidence["messages"][-1]["id"] == forged


async def test_where_the_clock_jumped_nobody_is_said_to_sign_as_another(
    real: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When a turn was can't be told then, nor when a message came."""
    monkeypatch.setattr(WallClock, "jumped_s", 3_600.0)
    trial = await real.trial(real.bench.task("forged", FORGING))
    await trial.run()
    assert (trial.facts["ended"], trial.facts["labels"]) == ("done", ["clock_jumped"])
    assert trial.evidence["unexplained"] == []


async def test_a_script_that_an_agent_left_behind_may_speak_for_it_and_is_only_labelled(real: Any) -> None:
    """The honest case of what looks like a forgery: the trial is judged as any other."""
    script = (
        ALONE
        + r"""
      - run: |
          channel=$(grep -o '[0-9a-f-]\{36\}' /opt/buzzbench/team/team.env | head -n 1)
          echo "touch away; sleep 4; buzz messages send --channel $channel --content 'DONE: by a script'" > later.sh
          setsid -f sh later.sh > /dev/null 2>&1
          until test -e away; do sleep 0.1; done  # before that it may still be of the group that ends with the command
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

    await trial.begun()
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
    real.use(mute)
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
    real.use(half)
    trial = await real.trial(real.bench.task("none"))
    what = rf"^setup: {half}: there is no buzz-agent and no buzz-dev-mcp; run `inv xbuild`$"
    with pytest.raises(HealthcheckError, match=what):
        await trial.run()
