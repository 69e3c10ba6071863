"""The conditions that come with Buzzbench: they can be compared, for they differ only in what their names say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.condition import Condition
from bench.errors import InvalidInput
from bench.manifest import load
from bench.planning.options import Options
from bench.planning.plan import make
from bench.settings import ROOT

MANIFESTS = ROOT / "manifests"
SHIPPED = {path.stem: path for path in sorted(MANIFESTS.glob("*.yaml"))}
LIVE = [name for name in SHIPPED if not name.endswith("-local") and name != "rehearsal"]


def condition(name: str) -> Condition:
    return load(SHIPPED[name])


def shape(name: str) -> list[tuple[str, str, str]]:
    return [(agent.name, agent.role, agent.model) for agent in condition(name).agents]


def test_every_condition_has_a_name_of_its_own() -> None:
    names = [condition(name).name for name in SHIPPED]
    assert len(set(names)) == len(names)


def test_all_live_conditions_have_one_clock_and_one_price_sheet() -> None:
    assert {condition(name).timeout_seconds for name in LIVE} == {900}
    sheet: dict[str, object] = {}
    for name in LIVE:
        for model, price in condition(name).prices.items():
            assert sheet.setdefault(model, price) == price, f"{name} has another price for {model}"


def test_every_persona_is_played_by_somebody() -> None:
    texts = {path.read_text(encoding="utf-8") for path in (MANIFESTS / "personas").glob("*.md")}
    assert texts == {agent.prompt for name in SHIPPED for agent in condition(name).agents}


@pytest.mark.parametrize("harness", ["builtin", "buzz"])
def test_solo_pair_and_triad_add_a_member_each_on_the_same_model(harness: str) -> None:
    sonnet = "claude-sonnet-4-6"
    assert shape(f"{harness}-solo") == [("solo", "solo", sonnet)]
    assert shape(f"{harness}-pair") == [("orch", "driver", sonnet), ("worker-1", "navigator", sonnet)]
    assert shape(f"{harness}-triad") == [*shape(f"{harness}-pair"), ("worker-2", "tester", sonnet)]
    pair, triad = condition(f"{harness}-pair").agents, condition(f"{harness}-triad").agents
    assert triad[:2] == pair


def test_a_lead_has_two_to_four_workers_that_differ_in_nothing_else() -> None:
    names = [f"builtin-lead-{number}-workers" for number in ("two", "three", "four")]
    assert [len(condition(name).workers) for name in names] == [2, 3, 4]
    first = replace(condition(names[0]).workers[0], name="", index=0)
    for name in names:
        assert condition(name).agents[:3] == condition(names[0]).agents
        assert all(replace(worker, name="", index=0) == first for worker in condition(name).workers)


def test_thinking_effort_is_a_dial_that_turns_alone() -> None:
    efforts = ("low", "medium", "high")
    agents = [condition(f"builtin-solo-{effort}").agents[0] for effort in efforts]
    assert tuple(agent.thinking_effort for agent in agents) == efforts
    assert all(replace(agent, thinking_effort="low") == agents[0] for agent in agents)
    plain = condition("builtin-solo").agents[0]
    assert replace(agents[0], thinking_effort=None, max_output_tokens=None) == replace(plain, max_output_tokens=None)


@pytest.mark.parametrize(
    ("builtin", "real"),
    [
        ("builtin-solo", "buzz-solo"),
        ("builtin-pair", "buzz-pair"),
        ("builtin-triad", "buzz-triad"),
        ("builtin-lead-two-workers", "tb-cobol-sonnet-haiku"),
    ],
)
def test_the_same_team_is_there_in_both_harnesses(builtin: str, real: str) -> None:
    ours, theirs = condition(builtin).agents, condition(real).agents
    assert {agent.harness for agent in ours} == {"builtin"}
    assert {agent.harness for agent in theirs} == {"buzz-agent"}
    assert [replace(agent, harness="builtin") for agent in theirs] == list(ours)


def planned(manifest: str, *include: str) -> list[str]:
    options = Options(
        path=ROOT / "buzz-dataset", rehearsal=True, dry_run=True, manifest=SHIPPED[manifest], include=include
    )
    return [task.name for job in make(options).jobs for task in job.tasks]


def test_a_triad_plays_every_task_of_the_dataset_and_a_pair_those_that_need_one_worker() -> None:
    assert len(planned("builtin-triad")) == len([*(ROOT / "buzz-dataset").glob("*/task.toml")])
    assert planned("builtin-pair", "question-to-the-user", "thread-*") == [
        "buzz/thread-reply-stays-in-thread",
        "buzz/question-to-the-user",
    ]
    with pytest.raises(InvalidInput, match=r"its roster \(orch, worker-1\) lacks worker-2, .*split-and-merge"):
        planned("builtin-pair")
