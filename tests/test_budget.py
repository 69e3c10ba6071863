"""What a whole team may use, so that equal budgets can be told from unequal ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.budget import agents_said, caps_said, of_team, said, too_small
from bench.condition import Limits
from bench.errors import InvalidInput
from bench.manifest import load
from bench.planning.dryrun import render
from bench.records import planrecord
from tests.planning.kit import NOW, project


def team(tmp_path: Path, trial: dict[str, Any], *members: dict[str, Any]) -> Limits:
    home = project(tmp_path)
    data = home.team(trial_budget={"timeout_seconds": 60} | trial)
    for member, budget in zip(data["roster"], members, strict=False):
        member["budget"] = budget
    return of_team(load(home.manifest(data)))


@pytest.mark.parametrize(
    ("trial", "members", "expected"),
    [
        ({}, (), Limits()),
        ({"max_cost_usd": 2.5}, (), Limits(usd_micros=2_500_000)),
        ({}, ({"max_tokens": 20_000}, {"max_tokens": 10_000}), Limits(tokens=40_000)),
        ({"max_calls": 50}, ({"max_calls": 10}, {"max_calls": 10}), Limits(calls=30)),
        ({"max_calls": 20}, ({"max_calls": 10}, {"max_calls": 10}), Limits(calls=20)),
        ({}, ({"max_calls": 10},), Limits()),
    ],
    ids=["none", "trial", "members", "members-less", "trial-less", "a-member-without"],
)
def test_the_least_of_all_caps_holds(
    tmp_path: Path, trial: dict[str, Any], members: tuple[dict[str, Any], ...], expected: Limits
) -> None:
    assert team(tmp_path, trial, *members) == expected


def test_a_budget_is_said_in_time_money_tokens_and_calls() -> None:
    assert said(Limits(2_500_000, 2_000_000, 40), 900) == "900 s, $2.50, 2,000,000 tokens, 40 calls"
    assert said(Limits(), None) == "the tasks' own time, any cost, any number of tokens, any number of calls"


def test_small_caps_are_told_to_their_last_digit() -> None:
    assert [caps_said(Limits(usd)).split(",")[0] for usd in (1, 5_000, 2_500_000)] == ["$0.000001", "$0.005", "$2.50"]


def test_caps_of_single_agents_are_said_by_the_dry_run(tmp_path: Path) -> None:
    home = project(tmp_path)
    home.task("a", script=None)
    team = home.team()
    team["roster"][1]["budget"] = {"max_cost_usd": 0.5, "max_calls": 9}
    told = {"path": home.tasks, "rehearsal": False, "manifest": home.manifest(team)}
    assert "#              of each agent: worker-1, worker-2: $0.50, 9 calls" in render(home.plan(**told))
    found = json.loads(render(home.plan(**told, json=True)))["agents_budget"]
    assert found["worker-1"] == {"usd_micros": 500_000, "tokens": None, "calls": 9}
    assert agents_said([("orch", Limits())]) == ""


def test_a_jobs_own_budget_is_said_and_recorded(tmp_path: Path) -> None:
    home = project(tmp_path)
    home.task("good")
    plan = home.plan(budget_usd="2.50", budget_tokens="9000000", manifest=home.manifest(home.team()))
    assert plan.budget == Limits(usd_micros=2_500_000, tokens=9_000_000)
    assert f"of each job: {caps_said(plan.budget)}" in render(plan)
    assert caps_said(plan.budget) == "$2.50, 9,000,000 tokens, any number of calls"
    record = planrecord.describe(plan, plan.jobs[0])
    assert record["job_budget"] == {"usd_micros": 2_500_000, "tokens": 9_000_000, "calls": None}
    assert "of each job" not in render(home.plan())


def test_a_job_that_goes_on_may_have_another_budget_and_keeps_it(tmp_path: Path) -> None:
    home = project(tmp_path)
    home.task("good")
    before = home.plan(budget_usd="1", job_name="it")
    (job,) = before.jobs
    job.directory.mkdir(parents=True)
    path = job.directory / planrecord.FILE_NAME
    path.write_text(json.dumps(planrecord.describe(before, job)))
    after = home.plan(budget_usd="5", job_name="it")
    assert not planrecord.differences(planrecord.load(job.directory), planrecord.describe(after, job))
    planrecord.renew(after, job)
    assert planrecord.read(job.directory, []).job_budget == Limits(usd_micros=5_000_000)
    assert planrecord.options_of(planrecord.load(job.directory))["budget_usd"] == "5"


@pytest.mark.parametrize("word", ["none", "off", " NONE "])
def test_a_job_that_goes_on_may_have_no_cap_any_more_and_its_record_tells_those_before(
    tmp_path: Path, word: str
) -> None:
    home = project(tmp_path)
    home.task("good")
    first = home.plan(budget_usd="1", budget_tokens="4000000", budget_calls="7", job_name="it")
    (job,) = first.jobs
    job.directory.mkdir(parents=True)
    path = job.directory / planrecord.FILE_NAME
    path.write_text(json.dumps(planrecord.describe(first, job)))
    planrecord.renew(home.plan(budget_usd="5", budget_tokens="4000000", budget_calls="7", job_name="it"), job)
    last = home.plan(budget_usd=word, budget_tokens=word, budget_calls=word, job_name="it")
    assert last.budget == Limits()
    planrecord.renew(last, job)
    planrecord.renew(last, job)
    read = planrecord.read(job.directory, [])
    assert read.job_budget == Limits()
    assert [(one.limits, one.until) for one in read.earlier_budgets] == [
        (Limits(usd, 4_000_000, 7), NOW.isoformat().replace("+00:00", "Z")) for usd in (1_000_000, 5_000_000)
    ]
    kept = planrecord.options_of(planrecord.load(job.directory))
    assert kept["budget_usd"] == word, "so that the next resume has none either"
    assert not planrecord.differences(planrecord.load(job.directory), planrecord.describe(first, job))


@pytest.mark.parametrize("given", ["nothing", "-", "0", "no", "inf", "5 calls"])
def test_any_other_word_for_a_budget_is_one_line_with_the_way_out(tmp_path: Path, given: str) -> None:
    home = project(tmp_path)
    home.task("good")
    with pytest.raises(InvalidInput) as caught:
        home.plan(budget_usd=given, budget_calls=given)
    assert [str(problem) for problem in caught.value.problems] == [
        f"--budget-usd: {given} is no sum of money; give USD, such as 25 or 2.50, or none",
        f"--budget-calls: {given} is not a whole number from 1 to 999999999999; give one, or none",
    ]


def test_a_jobs_cap_below_its_first_answer_is_refused_before_anything_starts(tmp_path: Path) -> None:
    home = project(tmp_path)
    home.task("good")
    data = home.team()
    for member in data["roster"]:
        member["generation"] = {"max_output_tokens": 4096}
    manifest = home.manifest(data)
    with pytest.raises(InvalidInput) as caught:
        home.plan(manifest=manifest, budget_tokens="4000", budget_usd="0.06", budget_calls="1")
    assert [str(problem) for problem in caught.value.problems] == [
        "--budget-usd: $0.0000 spent of a cap of $0.0600, and an answer of orch may use $0.0614: "
        "no call would go out; raise it, or give none",
        "--budget-tokens: 0 tokens spent of a cap of 4,000 tokens, and an answer of orch may use 4,096 tokens: "
        "no call would go out; raise it, or give none",
    ]
    assert home.plan(manifest=manifest, budget_tokens="4096", budget_usd="0.06144").budget.tokens == 4096


def test_a_cap_below_a_baselines_first_answer_is_refused_as_a_teams_is(tmp_path: Path) -> None:
    """Its answers are bounded as its member's, or by its own options."""
    home = project(tmp_path)
    home.task("good", script=None)
    data = home.team(trial_budget={"timeout_seconds": 900, "max_tokens": 8_000})
    data["roster"][0]["generation"] = {"max_output_tokens": 4096}
    told = {"rehearsal": False, "agent": "terminus-2", "manifest": home.manifest(data)}
    with pytest.raises(InvalidInput) as caught:
        home.plan(**told, budget_tokens="4000", budget_usd="0.06")
    assert [str(problem) for problem in caught.value.problems] == [
        "--budget-usd: $0.0000 spent of a cap of $0.0600, and an answer of terminus-2 may use $0.0614: "
        "no call would go out; raise it, or give none",
        "--budget-tokens: 0 tokens spent of a cap of 4,000 tokens, and an answer of terminus-2 may use 4,096 tokens: "
        "no call would go out; raise it, or give none",
    ]
    assert home.plan(**told, budget_tokens="4096", budget_usd="0.06144").budget.tokens == 4096
    kwargs = ('llm_call_kwargs={"max_tokens": 9000}',)
    with pytest.raises(InvalidInput, match=r"team\.yaml: a trial has a cap of 8,000 tokens, and an answer of termin"):
        home.plan(**told, agent_kwarg=kwargs)


@pytest.mark.parametrize(("dialect", "refused"), [("openai", True), ("anthropic", False)])
def test_a_baseline_that_sends_no_bound_is_reserved_what_its_model_can_answer(
    tmp_path: Path, dialect: str, refused: bool
) -> None:
    """In Anthropic's dialect it sends one, which nobody here knows."""
    home = project(tmp_path)
    home.task("good", script=None)
    data = home.team()
    data["prices"]["claude-sonnet-4-6"]["max_output_tokens"] = 32_000
    file = home.root / "endpoints.json"
    endpoint = {"provider": dialect, "base_url": "http://127.0.0.1:9", "api_key_env": "K"}
    file.write_text(json.dumps({"claude-sonnet-4-6": endpoint}))
    told = {"rehearsal": False, "agent": "opencode", "manifest": home.manifest(data), "endpoint_config": file}
    if refused:
        with pytest.raises(InvalidInput, match="an answer of opencode may use 32,000 tokens: no call would go out"):
            home.plan(**told, budget_tokens="31999")
        assert home.plan(**told, budget_tokens="32000").budget.tokens == 32_000
    else:
        assert home.plan(**told, budget_tokens="31999").budget.tokens == 31_999


def test_a_builtin_agents_usual_bound_counts_where_its_manifest_has_none(tmp_path: Path) -> None:
    home = project(tmp_path)
    home.task("good")
    manifest = home.manifest(home.team())
    with pytest.raises(InvalidInput, match="an answer of orch may use 8,192 tokens: no call would go out"):
        home.plan(manifest=manifest, budget_tokens="8191")
    assert home.plan(manifest=manifest, budget_tokens="8192").budget.tokens == 8192
    data = home.team(trial_budget={"timeout_seconds": 900, "max_tokens": 5_000})
    data["prices"]["claude-sonnet-4-6"]["max_output_tokens"] = 4_096
    least = home.plan(manifest=home.manifest(data), budget_tokens="4096")
    assert {least.condition.output_bound(agent) for agent in least.condition.agents} == {4_096}, "its model has no more"


def test_what_earlier_runs_left_of_a_cap_has_to_hold_a_call(tmp_path: Path) -> None:
    home = project(tmp_path)
    data = home.team()
    data["roster"][0]["generation"] = {"max_output_tokens": 4096}
    condition = load(home.manifest(data))
    spent = {"usd_micros": 1_500_000, "tokens": 6_000, "calls": 5}
    caps = Limits(usd_micros=1_561_440, tokens=10_000, calls=5)
    assert [str(problem) for problem in too_small(condition, {}, caps, spent.get)] == [
        "--budget-tokens: 6,000 tokens spent of a cap of 10,000 tokens, and an answer of orch may use 4,096 tokens: "
        "no call would go out; raise it, or give none",
        "--budget-calls: 5 calls spent of a cap of 5 calls: no call would go out; raise it, or give none",
    ]
    assert not [*too_small(condition, {}, Limits(tokens=10_096, calls=6), spent.get)]
