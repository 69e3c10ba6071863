"""What ends a team's work, and whose doing it was, over the real relay and gateway; the models' API is a fake."""

from __future__ import annotations

import itertools
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from harbor.environments.base import HealthcheckError

from bench.settings import ROOT
from bench.trial import provisioner
from tests.trial.upstream import Asked, Blocks, Upstream, serving, text, use


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_MODEL_KEY", "sk-test")


def delegate(asked: Asked) -> Blocks:
    """An orchestrator that asks its worker, and a worker that reports."""
    if asked.results:
        return [text("ok")]
    if asked.model == "help":
        return [use("send_message", text="REPORT", mention=["orch"])]
    if "REPORT" in asked.text:
        return [use("done", text="all of it")]
    return [use("send_message", text="please", mention=["worker"])]


async def play(bench: Any, tmp_path: Path, upstream: Upstream, **options: Any) -> Any:
    async with serving(upstream, tmp_path, **options) as terms:
        trial = bench.trial(bench.task("t"), **terms)
        await trial.run()
        return trial


async def test_usage_and_cost_are_the_gateways(bench: Any, tmp_path: Path) -> None:
    upstream = Upstream(delegate)
    trial = await play(bench, tmp_path, upstream)
    calls = len(upstream.asked)
    assert trial.facts["ended"] == "done"
    assert trial.context.n_input_tokens == 160 * calls
    assert trial.context.n_cache_tokens == 50 * calls
    assert trial.context.n_output_tokens == 20 * calls
    assert trial.context.cost_usd == pytest.approx(calls * (100 + 5 + 20 + 200) / 1e6)


async def test_two_agents_that_only_say_ok_are_a_loop_with_the_transcript_kept(bench: Any, tmp_path: Path) -> None:
    def ok(asked: Asked) -> Blocks:
        if asked.results:
            return [text("said")]
        other = "orch" if asked.model == "help" else "worker"
        return [use("send_message", text="ok", mention=[other])]

    trial = await play(bench, tmp_path, Upstream(ok))
    assert (trial.facts["ended"], trial.facts["labels"]) == ("loop", ["loop"])
    assert "12 turns in a row" in trial.facts["reason"]
    assert len([m for m in trial.evidence["messages"] if m["text"] == "ok"]) >= 12


async def test_short_messages_about_what_is_done_to_channels_are_no_loop(bench: Any, tmp_path: Path) -> None:
    numbers = itertools.count(1)

    def arranging(asked: Asked) -> Blocks:
        if asked.results:
            return [text("said")]
        if asked.model == "help":
            return [use("send_message", text="ok", mention=["orch"])]
        number = next(numbers)
        if number > 7:
            return [use("done", text="enough")]
        return [use("create_channel", name=f"berth-{number}"), use("send_message", text="ok", mention=["worker"])]

    trial = await play(bench, tmp_path, Upstream(arranging))
    assert (trial.facts["ended"], trial.facts["labels"]) == ("done", [])
    assert len([m for m in trial.evidence["messages"] if m["text"] == "ok"]) == 14


async def test_a_text_that_nobody_was_sent_is_a_silent_turn_and_the_lead_is_reminded_once(
    bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.trial.team.QUIET_S", 0.2)
    monkeypatch.setattr("bench.trial.team.LOOK_S", 0.02)
    upstream = Upstream(lambda asked: [text("here is my answer")])
    trial = await play(bench, tmp_path, upstream, workers=0)
    assert trial.facts["ended"] == "loop"
    assert "the team fell silent" in trial.facts["reason"]
    assert "silent_turns" in trial.facts["labels"]
    assert [("The whole team is idle" in a.text) for a in upstream.asked] == [False, True]


async def test_a_reminder_can_save_the_work(bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.trial.team.QUIET_S", 0.2)
    monkeypatch.setattr("bench.trial.team.LOOK_S", 0.02)

    def forgetful(asked: Asked) -> Blocks:
        return [use("done", text="here")] if "idle" in asked.text else [text("here")]

    trial = await play(bench, tmp_path, Upstream(forgetful), workers=0)
    assert (trial.facts["ended"], trial.facts["labels"]) == ("done", [])


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, "upstream_refused"), (402, "upstream_refused"), (500, "upstream_failed"), (400, "upstream_rejected")],
)
async def test_an_upstream_that_does_not_serve_is_nobodys_failure(
    bench: Any, tmp_path: Path, status: int, kind: str
) -> None:
    upstream = Upstream(lambda asked: (status, "no luck"))
    async with serving(upstream, tmp_path) as terms:
        trial = bench.trial(bench.task("t"), **terms)
        with pytest.raises(HealthcheckError, match=f"^{kind}: "):
            await trial.run()
    assert trial.facts["fault"]["kind"] == kind
    assert trial.facts["ended"] == "fault"
    assert trial.evidence["messages"][0]["author"] == "user"


async def test_time_that_went_by_while_calls_were_kept_back_is_nobodys_failure(bench: Any, tmp_path: Path) -> None:
    provisioner.write_provisioner(bench.stack.run_dir(bench.job_dir.name), bench.stack.state, bench.stack.address)
    upstream = Upstream(lambda asked: (429, "busy"), error_headers={"retry-after": "50"})
    async with serving(upstream, tmp_path, workers=0) as terms:
        trial = bench.trial(bench.task("t", agent_timeout_s=9.5), **terms)
        with pytest.raises(
            HealthcheckError, match=r"^upstream_failed: model calls still waited for an upstream in trou"
        ):
            await trial.run()
    assert trial.facts["ended"] == "fault"
    assert "agent_timeout" in trial.facts["labels"]
    assert trial.facts["agents"]["orch"]["held_calls"] == 1


async def test_a_teams_own_budget_ends_its_work_and_is_judged(bench: Any, tmp_path: Path) -> None:
    def busy(asked: Asked) -> Blocks:
        return [use("shell", command="true")]

    trial = await play(bench, tmp_path, Upstream(busy), workers=0, trial=", max_calls: 3")
    assert (trial.facts["ended"], trial.facts["labels"]) == ("budget", ["budget"])
    assert "Buzzbench budget: the trial" in trial.facts["reason"]
    assert trial.facts["agents"]["orch"]["calls"] == 3


async def test_an_agents_own_cap_ends_its_turn_and_the_others_go_on_and_know(
    bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr("bench.trial.notes._listener", said.append)

    def answer(asked: Asked) -> Blocks:
        if asked.model == "help":
            return [use("shell", command="true")]
        if asked.number == 0:
            return [use("send_message", text="please", mention=["worker"])]
        if "worker can't go on" in asked.text:
            return [use("done", text="without the worker")]
        return [text("I wait.")]

    upstream = Upstream(answer)
    trial = await play(bench, tmp_path, upstream, caps={"worker": "max_calls: 2"})
    assert (trial.facts["ended"], trial.facts["labels"]) == ("done", ["agent_budget"])
    assert [a.model for a in upstream.asked].count("help") == 2
    reason = "the agent worker has a cap of 2 calls: 2 calls spent"
    (line,) = [line for line in said if line.endswith("; its turn has ended, the others go on")]
    assert line.startswith(f"{trial.directory.name}: {reason}")
    counted = {name: (used["calls"], used["capped_calls"]) for name, used in trial.facts["agents"].items()}
    assert (counted["worker"], counted["orch"][1]) == ((2, 1), 0)
    (told,) = [m for m in trial.evidence["messages"] if m["text"].startswith("[Notice]")]
    assert (told["author"], told["mentions"]) == ("user", ["orch"])
    assert told["text"].startswith(f"[Notice] worker can't go on: {reason}")
    (worker,) = [m for m in trial.trajectory["subagent_trajectories"] if m["trajectory_id"] == "worker"]
    assert worker["steps"][-1]["message"].startswith(f"Buzzbench budget: {reason}")


async def test_an_orchestrators_own_cap_lets_the_others_end_their_turns_and_then_ends_the_work(
    bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.trial.team.QUIET_S", 0.2)
    monkeypatch.setattr("bench.trial.team.LOOK_S", 0.02)

    def answer(asked: Asked) -> Blocks:
        if asked.model == "lead":
            return [use("send_message", text="please", mention=["worker"])]
        return [use("shell", command="sleep 0.5; echo done > part")] if not asked.results else [text("ready")]

    trial = await play(bench, tmp_path, Upstream(answer), caps={"orch": "max_calls: 1"})
    assert (trial.facts["ended"], trial.facts["labels"][0]) == ("budget", "budget")
    assert "agent_budget" in trial.facts["labels"]
    assert trial.facts["reason"].startswith("Buzzbench budget: the agent orch has a cap of 1 call: 1 call spent")
    assert trial.facts["agents"]["worker"]["calls"] == 2, "the worker came to its end"


async def test_a_script_that_meets_an_agents_own_cap_hears_no_message_that_it_does_not_know(
    bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.trial.team.QUIET_S", 0.2)
    monkeypatch.setattr("bench.trial.team.LOOK_S", 0.02)
    shutil.copytree(ROOT / "manifests" / "personas", tmp_path / "personas")
    rehearsal = (ROOT / "manifests" / "rehearsal.yaml").read_text()
    path = tmp_path / "capped.yaml"
    path.write_text(rehearsal.replace("count: 2", "count: 2\n    budget: {max_calls: 1}"))
    trial = bench.trial(bench.task("t"), manifest_path=path)
    await trial.run()
    assert trial.facts["ended"] == "budget"
    assert {"budget", "agent_budget"} <= set(trial.facts["labels"])
    assert [m["author"] for m in trial.evidence["messages"]].count("user") == 1


async def test_an_edit_that_begins_with_done_ends_the_work_too(bench: Any, tmp_path: Path) -> None:
    def answer(asked: Asked) -> Blocks:
        if asked.number == 0:
            return [use("send_message", text="almost")]
        if asked.number == 1:
            found = re.search("Event ID: ([0-9a-f]{64})", asked.text)
            assert found
            return [use("edit_message", event_id=found[1], text="DONE: by an edit")]
        return [use("shell", command="sleep 60")]

    trial = await play(bench, tmp_path, Upstream(answer), workers=0)
    assert trial.facts["ended"] == "done"
    assert (trial.evidence["messages"][-1]["text"], trial.evidence["messages"][-1]["edited"]) == (
        "DONE: by an edit",
        True,
    )


async def test_mentions_during_a_turn_come_as_the_next_one_none_lost(bench: Any, tmp_path: Path) -> None:
    def answer(asked: Asked) -> Blocks:
        if asked.model == "help":
            if asked.results:
                return [text("ok")]
            return [use("send_message", text=f"REPORT {n}", mention=["orch"]) for n in (1, 2, 3)]
        if asked.number == 0:
            return [use("send_message", text="please", mention=["worker"])]
        if asked.number == 1:  # While this call takes its time, the reports arrive.
            return [use("shell", command="sleep 0.3")]
        if asked.number == 2:
            return [text("waiting")]
        reports = [n for n in (1, 2, 3) if f"REPORT {n}" in asked.text]
        return [use("done", text=f"got {reports}")]

    trial = await play(bench, tmp_path, Upstream(answer))
    assert trial.evidence["messages"][-1]["text"] == "DONE: got [1, 2, 3]"


async def test_work_that_goes_on_after_done_is_stopped_without_a_timeout(bench: Any, tmp_path: Path) -> None:
    def answer(asked: Asked) -> Blocks:
        if asked.model == "help":
            return [use("shell", command="touch started; sleep 600 & echo $! > pid; wait")]
        if asked.number == 0:
            return [use("send_message", text="please", mention=["worker"])]
        return [use("shell", command="until [ -e pid ]; do sleep 0.01; done"), use("done", text="enough")]

    trial = await play(bench, tmp_path, Upstream(answer))
    assert (trial.facts["ended"], trial.facts["labels"]) == ("done", [])
    assert trial.facts["timings"]["stop"] < 3
