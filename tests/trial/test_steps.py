"""Tasks in steps: the team stays for all of them, and each leaves its own evidence, figures and trajectory."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from harbor.environments.base import HealthcheckError
from harbor.models.agent.context import AgentContext
from harbor.utils.trajectory_validator import TrajectoryValidator

from bench.gateway.protocol import Grant
from bench.trial import session
from bench.trial.tokens import issue_tokens
from tests.trial.upstream import Asked, Blocks, Upstream, serving, text, use

STEPS = '[[steps]]\nname = "draft"\n[[steps]]\nname = "change"\n'

SCRIPT = """
orch:
  - name: give the draft
    expect: ["write it"]
    do:
      - send: {mention: [worker-1], text: "please write"}
  - name: finish the draft
    expect: ["WRITTEN"]
    do:
      - done: "written"
  - name: give the change
    expect: ["change it"]
    do:
      - send: {mention: [worker-1], text: "please change", reply: "WRITTEN"}
  - name: finish the change
    expect: ["CHANGED"]
    do:
      - done: "changed"
worker-1:
  - name: write
    expect: ["please write"]
    do:
      - run: "echo draft > out"
      - send: {mention: [orch], text: "WRITTEN", reply: true}
  - name: change
    expect: ["please change"]
    do:
      - run: "echo change > out"
      - send: {mention: [orch], text: "CHANGED", reply: true}
worker-2: []
"""


def in_steps(bench: Any, name: str, script: str = SCRIPT, **options: Any) -> Path:
    task: Path = bench.task(name, script, **options)
    with (task / "task.toml").open("a") as file:
        file.write(STEPS)
    return task


async def play(trial: Any, *instructions: str) -> list[dict[str, Any]]:
    """Run the agent for each step, as Harbor does; what it tells of each."""
    told = []
    for instruction in instructions:
        context = AgentContext()
        await trial.agent.run(instruction, trial.workspace, context)
        told.append({**context.metadata["buzzbench"], "n_input_tokens": context.n_input_tokens})
    return told


def evidence(trial: Any, step: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((trial.directory / "steps" / step / "buzzbench-evidence.json").read_text())
    return found


def receipts(bench: Any) -> list[dict[str, Any]]:
    lines = (bench.job_dir / "buzzbench-receipts.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


async def test_the_team_plays_each_step_in_the_same_channel_with_the_same_keys(bench: Any) -> None:
    trial = bench.trial(in_steps(bench, "same"))
    draft, change = await play(trial, "write it", "change it")
    assert (draft["ended"], change["ended"]) == ("done", "done")
    assert draft["channel"] == change["channel"]
    assert evidence(trial, "draft")["roster"] == evidence(trial, "change")["roster"]
    assert (trial.workspace.root / "out").read_text() == "change\n"
    assert [told["step"] for told in (draft, change)] == [
        {"name": "draft", "number": 1, "of": 2, "strategy": "mean"},
        {"name": "change", "number": 2, "of": 2, "strategy": "mean"},
    ]


async def test_each_steps_evidence_says_where_it_begins_and_holds_what_was_said_before(bench: Any) -> None:
    trial = bench.trial(in_steps(bench, "evidence"))
    await play(trial, "write it", "change it")
    draft, change = evidence(trial, "draft"), evidence(trial, "change")
    assert [m["text"] for m in draft["messages"]] == ["write it", "please write", "WRITTEN", "DONE: written"]
    assert draft["step"]["since"] == draft["messages"][0]["seq"]
    since = change["step"]["since"]
    said = [m["text"] for m in change["messages"] if m["seq"] >= since]
    assert said == ["change it", "please change", "CHANGED", "DONE: changed"]
    assert [m["id"] for m in change["messages"]][:4] == [m["id"] for m in draft["messages"]]
    kept = (trial.directory / "steps" / "change" / "buzzbench-evidence.json").read_bytes()
    assert trial.workspace.uploaded == {"/logs/artifacts/relay_evidence.json": kept}
    # The answer in the second step is in the thread of what was shown in the first.
    asked = next(m for m in change["messages"] if m["text"] == "please change")
    assert asked["parent"] == next(m["id"] for m in change["messages"] if m["text"] == "WRITTEN")


async def test_receipts_name_their_step_and_each_step_has_its_own_figures(bench: Any) -> None:
    trial = bench.trial(in_steps(bench, "figures"))
    draft, change = await play(trial, "write it", "change it")
    mine = [r for r in receipts(bench) if r["trial"] == trial.directory.name]
    for told in (draft, change):
        of_step = [r for r in mine if r["step"] == told["step"]["name"]]
        assert of_step
        assert sum(used["calls"] for used in told["agents"].values()) == len(of_step)
        read = sum(r["input_tokens"] + r["cache_read_tokens"] + r["cache_write_tokens"] for r in of_step)
        assert told["n_input_tokens"] == read
    assert {r["step"] for r in mine} == {"draft", "change"}


async def test_each_steps_trajectory_holds_that_step_alone(bench: Any) -> None:
    trial = bench.trial(in_steps(bench, "atif"))
    path = trial.directory / "agent" / "trajectory.json"
    for instruction, other in (("write it", "CHANGED"), ("change it", "please write")):
        await play(trial, instruction)
        validator = TrajectoryValidator()
        assert validator.validate(path), validator.get_errors()
        told = json.loads(path.read_text())
        assert told["steps"][0]["message"] == instruction
        assert other not in json.dumps(told)


LEAD_FINISHES_FIRST = (
    SCRIPT.replace(
        """  - name: finish the draft
    expect: ["WRITTEN"]
    do:
      - done: "written"
""",
        """      - run: "until [ -e busy ]; do sleep 0.02; done"
      - done: "written"
""",
    )
    .replace(
        """      - run: "echo draft > out"
      - send: {mention: [orch], text: "WRITTEN", reply: true}
""",
        """      - run: "touch busy; sleep 60"
""",
    )
    .replace(', reply: "WRITTEN"', "")
)


async def test_what_was_under_way_at_a_steps_end_is_broken_off_and_the_agent_goes_on_in_the_next(bench: Any) -> None:
    trial = bench.trial(in_steps(bench, "broken-off", LEAD_FINISHES_FIRST))
    draft, change = await play(trial, "write it", "change it")
    assert (draft["ended"], change["ended"]) == ("done", "done")
    assert (trial.workspace.root / "out").read_text() == "change\n"


REPORT_COMES_TOO_LATE = """
orch:
  - name: give the draft
    expect: ["write it"]
    do:
      - send: {mention: [worker-1], text: "please write"}
      - run: "until [ -e reported ]; do sleep 0.02; done"
  - name: finish without the report
    on: result
    do:
      - done: "written"
  - name: finish the change
    expect: ["change it"]
    do:
      - run: "echo change > out"
  - name: end
    on: result
    do:
      - done: "changed"
worker-1:
  - name: write
    expect: ["please write"]
    do:
      - send: {mention: [orch], text: "WRITTEN", reply: true}
      - run: "touch reported"
worker-2: []
"""


async def test_what_was_not_read_in_a_step_is_read_together_with_the_next(bench: Any) -> None:
    """Or an orchestrator could end a step with what it was still told in the one before."""
    trial = bench.trial(in_steps(bench, "late", REPORT_COMES_TOO_LATE))
    _, change = await play(trial, "write it", "change it")
    assert (change["ended"], (trial.workspace.root / "out").read_text()) == ("done", "change\n")
    told = json.loads((trial.directory / "agent" / "trajectory.json").read_text())["subagent_trajectories"][0]
    assert "WRITTEN" in told["steps"][0]["message"]
    assert "change it" in told["steps"][0]["message"]


async def test_a_conversation_goes_on_whole(bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_MODEL_KEY", "sk-test")
    histories: list[list[Any]] = []

    def answer(asked: Asked) -> Blocks:
        return [text("as you say"), use("done", text=f"number {asked.number}")]

    class Remembering(Upstream):
        async def handle(self, request: Any) -> Any:
            histories.append((await request.json())["messages"])
            return await super().handle(request)

    async with serving(Remembering(answer), tmp_path, workers=0) as terms:
        trial = bench.trial(in_steps(bench, "memory"), **terms)
        await play(trial, "remember the word heron", "which word was it?")
    first, second = histories
    assert [message["role"] for message in first] == ["user"]
    assert [message["role"] for message in second] == ["user", "assistant", "user", "user"]
    heron, said, posted, asked = (json.dumps(message) for message in second)
    assert "heron" in heron
    assert "as you say" in said
    assert "posted, Event ID:" in posted
    assert "which word was it?" in asked


async def test_an_answer_that_was_under_way_at_a_steps_end_is_heard_and_not_acted_on(
    bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_MODEL_KEY", "sk-test")
    asked, answered = asyncio.Event(), asyncio.Event()

    async def before(call: Asked) -> None:
        """The worker's first answer takes longer than the lead's, with which the step ends."""
        if call.model == "help" and call.number == 0:
            asked.set()
            await answered.wait()
            await asyncio.sleep(0.5)
        elif call.model == "lead" and call.results:
            await asked.wait()
            answered.set()

    def answer(call: Asked) -> Blocks:
        if call.model == "help":
            late = [text("late words"), use("shell", command="touch acted")]
            return late if call.number == 0 else [use("send_message", mention=["orch"], text="REPORT")]
        if call.results or "REPORT" in call.text:
            return [use("done", text=f"number {call.number}")]
        return [use("send_message", mention=["worker"], text=f"work {call.number}")]

    histories: list[str] = []

    class Remembering(Upstream):
        async def handle(self, request: Any) -> Any:
            body = await request.json()
            if body["model"] == "help":
                histories.append(json.dumps(body["messages"]))
            return await super().handle(request)

    async with serving(Remembering(answer, before=before), tmp_path, workers=1) as terms:
        trial = bench.trial(in_steps(bench, "under-way"), **terms)
        draft, change = await play(trial, "first", "second")
    assert (draft["ended"], change["ended"]) == ("done", "done")
    assert "late words" in histories[1]
    assert "the work was ended before this was done" in histories[1]
    assert not (trial.workspace.root / "acted").exists()


async def test_a_budget_is_one_for_all_steps(bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_MODEL_KEY", "sk-test")
    upstream = Upstream(lambda asked: [use("done", text="x")])
    async with serving(upstream, tmp_path, workers=0, trial=", token_budget: 10000") as terms:
        manifest = terms["manifest_path"]
        manifest.write_text(manifest.read_text().replace("token_budget: 10000", "max_calls: 1"))
        trial = bench.trial(in_steps(bench, "budget"), **terms)
        draft, change = await play(trial, "one", "two")
    assert (draft["ended"], change["ended"]) == ("done", "budget")
    assert draft["labels"] == []
    assert change["labels"] == ["budget", "never_played"]
    assert len(upstream.asked) == 1


async def test_a_fault_in_a_step_ends_the_trial(bench: Any) -> None:
    trial = bench.trial(in_steps(bench, "fault"))
    (draft,) = await play(trial, "write it")
    assert draft["fault"] is None
    with pytest.raises(HealthcheckError, match=r"script_mismatch: (orch: )?step 'give the change' of orch"):
        await play(trial, "something else")


async def test_a_trial_that_ends_before_its_last_step_leaves_no_token_alive(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    issued: dict[str, Grant] = {}

    async def issue(*given: Any) -> dict[str, Grant]:
        issued.update(await issue_tokens(*given))
        return issued

    monkeypatch.setattr("bench.trial.play.issue_tokens", issue)
    trial = bench.trial(in_steps(bench, "early"))
    # Harbor runs a trial in a task of its own, which ends with it.
    await asyncio.create_task(play(trial, "write it"))
    grant = issued["orch"]
    body = {"model": "scripted", "max_tokens": 10, "messages": [{"role": "user", "content": "x"}]}

    async def refusal(http: aiohttp.ClientSession) -> str | None:
        headers = {"x-api-key": grant.token}
        async with http.post(f"{grant.base_url}/v1/messages", json=body, headers=headers) as response:
            return response.headers.get("x-buzzbench-error")

    async with aiohttp.ClientSession() as http, asyncio.timeout(10):
        # Until then it waits for a further step.
        assert await refusal(http) == "revoked"


@pytest.mark.parametrize("script", [SCRIPT, LEAD_FINISHES_FIRST], ids=["whole", "broken-off"])
async def test_a_trial_in_steps_that_was_recorded_is_played_again(bench: Any, tmp_path: Path, script: str) -> None:
    task = in_steps(bench, "taped", script)

    def told(trial: Any) -> Any:
        mine = [r for r in receipts(bench) if r["trial"] == trial.directory.name]
        return sorted((r["agent"], r["step"], r["outcome"], r["output_tokens"]) for r in mine)

    def said(trial: Any) -> list[tuple[str, str]]:
        return sorted((m["author"], m["text"]) for m in evidence(trial, "change")["messages"])

    first = bench.trial(task, record=True)
    await play(first, "write it", "change it")
    await session.close()
    tape = tmp_path / "tape"
    (first.directory.parent / "buzzbench-cassette.jsonl").rename(tape)
    again = bench.trial(task, rehearsal=None, replay=str(tape))
    draft, change = await play(again, "write it", "change it")
    await session.close()
    assert (draft["ended"], change["ended"]) == ("done", "done")
    assert told(again) == told(first)
    assert said(again) == said(first)
