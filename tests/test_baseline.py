"""Baselines: Harbor's own agents in a team's place, under their own name."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from bench.baseline import HARBOR_AGENTS
from bench.dryrun import render
from bench.errors import InvalidInput
from bench.harborjob import job_config
from bench.plan import Plan
from tests.planning import Project, project


@pytest.fixture
def home(tmp_path: Path) -> Project:
    made = project(tmp_path)
    made.task("a")
    made.task("b", more='[environment]\nnetwork_mode = "public"\n')
    return made


def baseline(home: Project, agent: str, **changes: Any) -> Plan:
    return home.plan(**{"rehearsal": False, "agent": agent, "environment": "sandbox"} | changes)


def solve(home: Project, *names: str) -> None:
    for name in names:
        (home.tasks / name / "solution").mkdir()
        (home.tasks / name / "solution/solve.sh").write_text("true\n")


def test_a_baseline_is_a_condition_of_its_own_name(home: Project) -> None:
    plan = baseline(home, "nop")
    assert (plan.agent, plan.condition.name, plan.jobs[0].name) == ("nop", "nop", "lb-nop-20260131T235959Z")
    assert plan.condition_sha256 == hashlib.sha256(b'{"agent":"nop"}').hexdigest()
    assert (plan.stack, plan.needs_agents, plan.key_variables) == ("embedded", False, ())


def test_a_baseline_has_the_same_tasks_and_attempts_as_a_team(home: Project) -> None:
    team, nothing = home.plan(), baseline(home, "nop")
    assert [(j.tasks, j.attempts) for j in team.jobs] == [(j.tasks, j.attempts) for j in nothing.jobs]


def test_harbor_runs_the_agent_by_its_name_with_its_own_options(home: Project) -> None:
    plan = baseline(home, "nop", agent_kwarg=("disable_web_search=true",), include=("a",))
    (job,) = plan.jobs
    config = job_config(plan, job)
    assert config["agents"] == [{"name": "nop", "kwargs": {"disable_web_search": True}}]


def test_without_a_model_the_sandbox_may_give_a_task_its_network(home: Project) -> None:
    (job,) = (plan := baseline(home, "nop", include=("b",))).jobs
    assert job_config(plan, job)["environment"]["kwargs"] == {"network": "host"}


def test_the_oracle_needs_solutions(home: Project) -> None:
    solve(home, "a")
    with pytest.raises(InvalidInput) as caught:
        baseline(home, "oracle")
    assert str(caught.value) == "--agent oracle: no solution/solve.sh in b; leave them out with -x"
    solve(home, "b")
    assert baseline(home, "oracle").agent == "oracle"


def test_a_solution_of_each_step_is_one_too(home: Project) -> None:
    task = home.task("steps", more='[[steps]]\nname = "one"\n[[steps]]\nname = "two"\n')
    for step in ("one", "two"):
        (task / "steps" / step / "solution").mkdir(parents=True)
        (task / "steps" / step / "solution/solve.sh").write_text("true\n")
        (task / "steps" / step / "instruction.md").write_text(step)
    assert baseline(home, "oracle", include=("steps",)).agent == "oracle"
    (task / "steps/two/solution/solve.sh").unlink()
    with pytest.raises(InvalidInput, match=r"no solution/solve\.sh in steps"):
        baseline(home, "oracle", include=("steps",))


def test_an_agent_that_asks_a_model_is_refused_by_name(home: Project) -> None:
    with pytest.raises(InvalidInput) as caught:
        baseline(home, "claude-code")
    assert str(caught.value) == (
        "--agent: claude-code asks a model, and from a task's environment there is no way yet to the gateway that "
        "would meter it; baselines are oracle and nop"
    )


@pytest.mark.parametrize(
    ("agent", "fix"), [("oracel", "did you mean oracle"), ("zzz", "it is one of oracle, nop")], ids=["near", "far"]
)
def test_an_unknown_agent_is_refused(home: Project, agent: str, fix: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        baseline(home, agent)
    assert str(caught.value) == f"--agent: Harbor has no agent {agent!r}; {fix}"


def test_what_says_who_plays_does_not_go_with_a_baseline(home: Project) -> None:
    with pytest.raises(InvalidInput) as caught:
        baseline(home, "nop", rehearsal=True, manifest=home.manifest(home.team()))
    assert str(caught.value) == (
        "--agent: takes the team's place, so that --rehearsal and --manifest have no effect; "
        "leave out --rehearsal and --manifest"
    )


def test_a_dry_run_names_the_agent(home: Project) -> None:
    text = render(baseline(home, "nop"))
    assert "# agent        nop, Harbor's own, in a team's place\n# model        none\n" in text
    assert "2 of 2 tasks, 1 attempt each: 2 trials, no limit to their time (4 at a time)" in text
    assert " -a nop -e " in text


@pytest.mark.slow
def test_the_known_agents_are_harbors() -> None:
    from harbor.models.agent.name import AgentName

    assert [agent.value for agent in AgentName] == HARBOR_AGENTS
