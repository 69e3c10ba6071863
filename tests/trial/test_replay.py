"""A trial that was recorded, played again: the same calls and tokens, the same words, and no model."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from harbor.environments.base import HealthcheckError

from bench.trial import session
from tests.trial.conftest import Bench, Trial
from tests.trial.upstream import Asked, Blocks, Upstream, serving, text, use

CLASSES = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_MODEL_KEY", "sk-test")


def calls(trial: Trial) -> dict[str, list[tuple[Any, ...]]]:
    """Each agent's calls in order: outcome, status and tokens. The last receipt of a call is the one that counts."""
    lines = (trial.directory.parent / "buzzbench-receipts.jsonl").read_text().splitlines()
    made: dict[str, list[tuple[Any, ...]]] = {}
    for receipt in {r["call_id"]: r for r in map(json.loads, lines)}.values():
        if receipt["trial"] == trial.directory.name:
            told = (receipt["outcome"], receipt["status"], *(receipt[name] for name in CLASSES))
            made.setdefault(receipt["agent"], []).append(told)
    return made


def words(trial: Trial) -> dict[str, list[str]]:
    """What each author said, in order."""
    said: dict[str, list[str]] = {}
    for message in trial.evidence["messages"]:
        said.setdefault(message["author"], []).append(message["text"])
    return said


async def recorded(trial: Trial, tape: Path) -> Trial:
    """Run a trial that is recorded, and put its cassette aside."""
    await trial.run()
    await session.close()
    (trial.directory.parent / "buzzbench-cassette.jsonl").rename(tape)
    return trial


async def replayed(bench: Bench, task: Path, tape: Path, **options: Any) -> Trial:
    trial = bench.trial(task, **{"rehearsal": None, "replay": str(tape), **options})
    try:
        await trial.run()
    finally:
        await session.close()
    return trial


async def test_a_rehearsal_is_played_again_and_again(bench: Bench, tmp_path: Path) -> None:
    """Its reports come together, so that a batch hangs on milliseconds: it is the recorded one each time."""
    task = bench.task("split")
    first = await recorded(bench.trial(task, record=True), tmp_path / "tape")
    for _ in range(5):
        again = await replayed(bench, task, tmp_path / "tape")
        assert again.facts["ended"] == "done"
        assert calls(again) == calls(first)
        assert words(again) == words(first)
        assert again.facts["replay"]
        assert again.context.cost_usd == 0
        assert (again.workspace.root / "out").read_text() == "1\n2\n"


async def test_models_are_played_without_their_key_their_api_and_their_slowness(
    bench: Bench, tmp_path: Path, key: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(asked: Asked) -> Blocks:
        if asked.results:
            return [text("ok")]
        if asked.model == "help":
            return [
                use("shell", command="sleep 0.3; date +%s.%N"),
                use("send_message", text="REPORT", mention=["orch"]),
            ]
        if asked.text.count("REPORT") + asked.number >= 2 and "REPORT" in asked.text:
            return [use("done", text="all of it")]
        return [use("send_message", text=f"please, {n}", mention=[f"worker-{n}"]) for n in (1, 2)]

    upstream = Upstream(answer, delay_s=0.05)
    task = bench.task("models")
    async with serving(upstream, tmp_path, workers=2) as terms:
        first = await recorded(bench.trial(task, record=True, **terms), tmp_path / "tape")
    monkeypatch.delenv("TEST_MODEL_KEY")
    asked = len(upstream.asked)
    terms["endpoints"] = None
    again = await replayed(bench, task, tmp_path / "tape", **terms)
    assert again.facts["ended"] == first.facts["ended"] == "done"
    assert calls(again) == calls(first)
    assert words(again) == words(first)
    assert len(upstream.asked) == asked
    assert (first.context.cost_usd > 0, again.context.cost_usd) == (True, 0)
    trajectory = json.loads((again.directory / "agent" / "trajectory.json").read_text())
    assert trajectory["final_metrics"]["total_cost_usd"] == 0


async def test_another_task_is_no_trial_and_the_first_difference_is_told(bench: Bench, tmp_path: Path) -> None:
    task = bench.task("one")
    await recorded(bench.trial(task, record=True), tmp_path / "tape")
    (task / "instruction.md").write_text("make the other file")
    trial = bench.trial(task, rehearsal=None, replay=str(tmp_path / "tape"))
    with pytest.raises(HealthcheckError) as raised:
        await trial.run()
    # The gateway's notice names the agent, the agent's own error needn't; either may come first.
    told = str(raised.value).replace("replay_miss: orch: ", "replay_miss: ")
    assert told.startswith(
        "replay_miss: call 1 of orch in attempt 1 at buzz/one was not recorded like this; it differs first at "
        "messages[0].content[0].text: recorded '"
    )
    assert "now '" in told
    assert trial.facts["fault"]["kind"] == "replay_miss"


async def test_a_reminder_comes_where_it_came(
    bench: Bench, tmp_path: Path, key: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("QUIET_S", "LOOK_S"):
        monkeypatch.setattr(f"bench.trial.team.{name}", 0.05)
    task = bench.task("silent")
    async with serving(Upstream(lambda asked: [text("here is my answer")]), tmp_path, workers=0) as terms:
        first = await recorded(bench.trial(task, record=True, **terms), tmp_path / "tape")
    again = await replayed(bench, task, tmp_path / "tape", **terms)
    for trial in (first, again):
        assert (trial.facts["ended"], len(calls(trial)["orch"])) == ("loop", 2)
    assert calls(again) == calls(first)


async def test_an_agents_own_cap_bites_again_and_the_others_go_on_again(
    bench: Bench, tmp_path: Path, key: None
) -> None:
    def answer(asked: Asked) -> Blocks:
        if asked.model == "help":
            return [use("shell", command="true")]
        if "worker can't go on" in asked.text:
            return [use("done", text="without the worker")]
        return [text("I wait.")] if asked.results else [use("send_message", text="please", mention=["worker"])]

    task = bench.task("capped")
    async with serving(Upstream(answer), tmp_path, caps={"worker": "max_calls: 2"}) as terms:
        first = await recorded(bench.trial(task, record=True, **terms), tmp_path / "tape")
    again = await replayed(bench, task, tmp_path / "tape", **terms)
    for trial in (first, again):
        assert (trial.facts["ended"], trial.facts["labels"]) == ("done", ["agent_budget"])
    assert calls(again) == calls(first)
    assert words(again) == words(first)


async def test_a_worker_that_was_still_thinking_at_the_end_is_cut_again(
    bench: Bench, tmp_path: Path, key: None
) -> None:
    held = asyncio.Event()

    def answer(asked: Asked) -> Blocks:
        if asked.results:
            return [text("ok")]
        return [use("send_message", text="no need to answer", mention=["worker"]), use("done", text="all of it")]

    class Slow(Upstream):
        async def handle(self, request: Any) -> Any:
            if (await request.json())["model"] == "help":
                await held.wait()
            return await super().handle(request)

    task = bench.task("cut")
    async with serving(Slow(answer), tmp_path, workers=1) as terms:
        first = await recorded(bench.trial(task, record=True, **terms), tmp_path / "tape")
        held.set()
    again = await replayed(bench, task, tmp_path / "tape", **terms)
    assert again.facts["ended"] == first.facts["ended"] == "done"
    assert calls(again)["orch"] == calls(first)["orch"]


async def test_a_cassette_that_lacks_the_teams_endpoint_is_refused(bench: Bench, tmp_path: Path, key: None) -> None:
    await recorded(bench.trial(bench.task("own"), record=True), tmp_path / "tape")
    async with serving(Upstream(lambda asked: [text("ok")]), tmp_path, workers=0) as terms:
        with pytest.raises(
            HealthcheckError, match="no endpoint lead, which the manifest names; recorded were scripted"
        ):
            await replayed(bench, bench.task("other"), tmp_path / "tape", **terms)


@pytest.mark.slow
async def test_real_agents_are_played_too(real: Any, tmp_path: Path) -> None:
    """Their prompts tell times, and their tools how long each command took."""
    task = real.bench.task("real")
    first = await recorded(await real.trial(task, record=True), tmp_path / "tape")
    again = await real.trial(task, rehearsal=None, replay=str(tmp_path / "tape"))
    await again.run()
    assert again.facts["ended"] == first.facts["ended"] == "done"
    assert calls(again) == calls(first)
    assert words(again) == words(first)
