"""Real agents on models at the wire: reminders, refusals, rate limits, and the caps of trial and agent."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from harbor.environments.base import HealthcheckError

from tests.standins.programs import REAL_PROGRAMS
from tests.trial.realteams import TRIED_AGAIN_S, TRIED_SOON
from tests.trial.upstream import Asked, Upstream, serving, text, use

pytestmark = pytest.mark.slow


SHELL = "mcp__shell"  # buzz-agent names a server after its command: our mcp.sh


def send(asked: Asked, to: str, text: str) -> list[dict[str, Any]]:
    """The call that sends a message with a mention; the system prompt tells everybody's key."""
    row = next(line for line in asked.system.splitlines() if line.startswith((f"| {to} ", f"| {to} (you)")))
    channel = asked.system.split(", id ")[1].split(".")[0]
    mention = f" --mention {row.split(' | ')[2].strip(' |')}"
    return [use(SHELL, command=f"buzz messages send --channel {channel} --content '{text}'{mention}")]


def work_on(asked: Asked) -> list[dict[str, Any]]:
    """A worker that goes on and on, and a lead that has asked it to."""
    if asked.model == "help":
        return [use(SHELL, command="true")]
    return send(asked, "worker", "please go on") if asked.number == 0 else [text("so")]


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


async def test_several_calls_of_one_answer_are_done_in_no_certain_order_and_told_in_their_own(
    real: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_MODEL_KEY", "k")

    def answer(asked: Asked) -> list[dict[str, Any]]:
        if asked.results:
            return send(asked, "orch", "DONE: both")
        return [use(SHELL, command=f"echo {word} | tee -a order") for word in ("first", "second")]

    upstream = Upstream(answer)
    async with serving(upstream, tmp_path, workers=0, harness="buzz-agent") as terms:
        trial = await real.trial(real.bench.task("calls"), **terms)
        await trial.run()
    done = (await trial.say("cat /app/order")).split()
    assert sorted(done) == ["first", "second"]
    if REAL_PROGRAMS is None:
        assert done == ["second", "first"], "the stand-ins have the order that finds out who relies on one"
    shown = upstream.asked[1].text
    assert 0 < shown.index("first") < shown.index("second")
    (step,) = (
        step for step in trial.trajectory["subagent_trajectories"][0]["steps"] if len(step.get("tool_calls", ())) > 1
    )
    results = {result["source_call_id"]: result["content"] for result in step["observation"]["results"]}
    told = [(call["arguments"]["command"].split()[1], results[call["tool_call_id"]]) for call in step["tool_calls"]]
    assert [word in result for word, result in told] == [True, True]


async def test_a_turn_that_is_cut_off_is_reported_with_what_it_had_used(
    real: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_MODEL_KEY", "k")

    def answer(asked: Asked) -> list[dict[str, Any]]:
        if asked.model == "help" or "worker can't go on" not in asked.text:
            return work_on(asked)
        (call,) = send(asked, "orch", "DONE: alone")
        wait = "until grep -q 'requeueing failed batch' /logs/agent/worker/buzz-acp.log; do sleep 0.1; done"
        return [use(SHELL, command=f"{wait}; {call['input']['command']}")]

    async with serving(Upstream(answer), tmp_path, harness="buzz-agent", caps={"worker": "max_calls: 2"}) as terms:
        trial = await real.trial(real.bench.task("cut-off"), **terms)
        await trial.run()
    told = trial.facts["self_report"]["worker"]
    assert (told["verdict"], told["turns"], told["input_tokens"], told["output_tokens"]) == ("agrees", 1, 320, 40)


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
    async with serving(upstream, tmp_path, workers=0, harness="buzz-agent", limit_s=30 + TRIED_AGAIN_S) as terms:
        trial = await real.trial(real.bench.task("failing"), dockerfile=TRIED_SOON, **terms)
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
    async with serving(upstream, tmp_path, workers=0, harness="buzz-agent", limit_s=30 + TRIED_AGAIN_S) as terms:
        trial = await real.trial(real.bench.task("limited"), dockerfile=TRIED_SOON, **terms)
        await trial.run()
    assert (trial.facts["ended"], trial.facts["labels"], trial.facts["fault"]) == ("done", [], None)
    assert len([call for call in upstream.asked if call.number < 3]) == 3


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
        if asked.model == "help" or "worker can't go on" not in asked.text:
            return work_on(asked)
        return send(asked, "worker", "DONE: alone")

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
    monkeypatch.setattr("bench.trial.realteam.QUIET_S", TRIED_AGAIN_S + 2.0)
    monkeypatch.setenv("TEST_MODEL_KEY", "k")
    upstream = Upstream(lambda asked: [use(SHELL, command="true")])
    caps = {"orch": "max_calls: 2"}
    limit_s = 30 + 2 * TRIED_AGAIN_S
    async with serving(upstream, tmp_path, workers=0, caps=caps, harness="buzz-agent", limit_s=limit_s) as terms:
        trial = await real.trial(real.bench.task("lead-capped"), dockerfile=TRIED_SOON, **terms)
        await trial.run()
    assert (trial.facts["ended"], len(upstream.asked)) == ("budget", 2)
    assert trial.facts["agents"]["orch"]["capped_calls"] > 1, "it was tried again, and that was no sign of life"
    assert {"budget", "agent_budget"} <= set(trial.facts["labels"])
    assert trial.facts["reason"].startswith("Buzzbench budget: the agent orch has a cap of 2 calls: 2 calls spent")
