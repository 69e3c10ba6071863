"""Baselines: Harbor's own agents in a team's place, under their own name."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from bench import manifest
from bench.baseline import MODELLESS, WAYS
from bench.condition import Soloist
from bench.errors import InvalidInput
from bench.planning.baselines import HARBOR_AGENTS, option_problems
from bench.planning.dryrun import render
from bench.planning.harborjob import job_config
from bench.planning.planned import Plan
from bench.records.planrecord import describe
from tests.planning.kit import Project, project


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


def asking(home: Project, agent: str, **changes: Any) -> Plan:
    given: dict[str, Any] = {"environment": "docker", "dry_run": True, "include": ("a",)}
    return home.plan(**{"rehearsal": False, "agent": agent} | given | changes)


def refused(home: Project, agent: str, **changes: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        asking(home, agent, **changes)
    return str(caught.value)


def test_an_agent_that_asks_a_model_plays_on_the_terms_of_a_lone_agents_manifest(home: Project) -> None:
    plan = asking(home, "claude-code", agent_kwarg=("max_turns=5",))
    solo = manifest.load(home.root / "manifests/builtin-solo.yaml")
    condition = plan.condition
    assert condition.soloist == Soloist("claude-code", "claude-sonnet-4-6", "claude-sonnet-4-6", {"max_turns": 5})
    assert (condition.name, condition.agents, condition.prices) == ("claude-code", (), solo.prices)
    assert (condition.limits, condition.timeout_seconds) == (solo.limits, 900)
    assert (plan.stack, plan.modelless, plan.key_variables) == ("embedded", False, ("ANTHROPIC_API_KEY",))
    (agent,) = job_config(plan, plan.jobs[0])["agents"]
    assert agent == {
        "name": "bench.trial.baselineagent:BaselineAgent",
        "kwargs": {
            "agent": "claude-code",
            "model": "claude-sonnet-4-6",
            "options": {"max_turns": 5},
            "manifest": str(home.root / "manifests/builtin-solo.yaml"),
            "condition_sha256": plan.condition_sha256,
            "endpoints": str(home.root / "manifests/endpoints/anthropic-live.json"),
        },
    }


def test_what_a_baseline_plays_with_is_in_its_hash(home: Project) -> None:
    plain = asking(home, "terminus-2")
    others = [
        asking(home, "claude-code"),
        asking(home, "terminus-2", agent_kwarg=("max_turns=5",)),
        asking(home, "terminus-2", manifest=home.manifest(home.team() | {"trial_budget": {"timeout_seconds": 60}})),
    ]
    assert len({plan.condition_sha256 for plan in (plain, *others)}) == 4
    # The terms count, not whose they are: those of the pair are the same as of one alone.
    pair = asking(home, "terminus-2", manifest=home.root / "manifests/builtin-pair.yaml")
    assert pair.condition_sha256 == plain.condition_sha256


def test_another_model_of_the_manifest_can_be_named(home: Project) -> None:
    team = home.root / "manifests/builtin-lead-two-workers.yaml"
    models = {agent.model: agent.endpoint for agent in manifest.load(team).agents}
    for model, endpoint in models.items():
        alone = asking(home, "terminus-2", manifest=team, model=model).condition.soloist
        assert alone is not None
        assert (alone.model, alone.endpoint) == (model, endpoint)
    said = refused(home, "terminus-2", manifest=team, model="claude-sonet-4-6")
    assert "has no model 'claude-sonet-4-6', so that nobody knows its price; did you mean claude-sonnet-4-6" in said


def test_a_model_is_named_for_a_baseline_only(home: Project) -> None:
    with pytest.raises(InvalidInput, match=r"^--model: only a baseline plays another model .* name an --agent$"):
        home.plan(model="claude-sonnet-4-6")
    with pytest.raises(InvalidInput, match="so that --model has no effect"):
        baseline(home, "nop", model="claude-sonnet-4-6")


def test_an_agent_that_speaks_another_dialect_than_the_endpoint_is_refused(home: Project) -> None:
    assert refused(home, "codex") == (
        "--agent: codex speaks openai, and the endpoint claude-sonnet-4-6 speaks anthropic; name a --manifest, or a "
        "--model of it, on another endpoint"
    )


def test_an_installed_agent_has_no_way_out_of_the_sandbox_nor_of_a_task_without_network(home: Project) -> None:
    assert refused(home, "claude-code", environment="sandbox") == (
        "--agent: claude-code would need a network there, which the sandbox gives no real model; use another "
        "environment, such as -e docker"
    )
    home.task("closed", more='[environment]\nnetwork_mode = "no-network"\n')
    said = refused(home, "claude-code", include=("closed",))
    assert said.startswith("buzz/closed: declares network_mode 'no-network', in which claude-code does not reach the")
    assert asking(home, "terminus-2", include=("closed",), environment="sandbox").agent == "terminus-2"


def test_only_an_installed_agent_gets_a_name_for_the_host_in_its_container(home: Project) -> None:
    def overlays(agent: str) -> list[str]:
        plan = asking(home, agent)
        laid_over = job_config(plan, plan.jobs[0])["environment"]["extra_docker_compose"]
        return [Path(path).name for path in laid_over]

    assert overlays("claude-code") == ["trial.yaml", "trial-host.yaml"]
    assert overlays("terminus-2") == ["trial.yaml"]


def test_its_calls_are_one_members_in_the_plans_record(home: Project) -> None:
    plan = asking(home, "terminus-2")
    record = describe(plan, plan.jobs[0])
    assert [(seat["name"], seat["member"], seat["role"]) for seat in record["roster"]] == [
        ("baseline", "baseline", "terminus-2")
    ]
    assert record["budget"]["timeout_seconds"] == 900


def test_its_time_is_the_manifests(home: Project) -> None:
    assert "1 trial, at most about 16 min" in render(asking(home, "terminus-2"))


def test_an_agent_whose_calls_cannot_be_metered_is_refused_with_those_that_can(home: Project) -> None:
    said = refused(home, "devin")
    assert said.startswith(
        "--agent: Harbor can't send devin's model calls to the gateway, which would meter and price them; baselines "
        "are oracle, nop, aider, claude-code, "
    )


@pytest.mark.parametrize(
    ("agent", "fix"),
    [("oracel", "did you mean oracle"), ("zzz", "it is one of oracle, nop, aider, ")],
    ids=["near", "far"],
)
def test_an_unknown_agent_is_refused(home: Project, agent: str, fix: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        baseline(home, agent)
    assert str(caught.value).startswith(f"--agent: Harbor has no agent {agent!r}; {fix}")


def test_what_says_who_plays_does_not_go_with_a_baseline(home: Project) -> None:
    with pytest.raises(InvalidInput) as caught:
        baseline(home, "nop", rehearsal=True, manifest=home.manifest(home.team()))
    assert str(caught.value) == (
        "--agent: takes the team's place, so that --rehearsal and --manifest have no effect; leave out --rehearsal and "
        "--manifest"
    )


@pytest.mark.parametrize("option", ["record", "replay"])
@pytest.mark.parametrize(
    ("agent", "reason"),
    [
        *((name, f"{name} makes no model call through the gateway; leave --{{}} out") for name in MODELLESS),
        *(
            (
                name,
                f"{name} runs in the task's environment and asks with values of its own session, some calls side by "
                "side: another run of it would not ask what was recorded; leave --{} out, or take terminus-2, "
                "which calls from outside",
            )
            for name, way in WAYS.items()
            if way.installed
        ),
    ],
)
def test_why_a_baseline_is_not_recorded_is_said_of_each(home: Project, agent: str, reason: str, option: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        asking(home, agent, **{option: home.root / "tape.jsonl"})
    said = [str(problem) for problem in caught.value.problems]
    assert said.count(f"--{option}: {reason.format(option)}") == 1


def test_one_that_calls_from_outside_is_recorded(home: Project) -> None:
    plan = asking(home, "terminus-2", record=True)
    assert job_config(plan, plan.jobs[0])["agents"][0]["kwargs"]["record"] is True
    assert "record" not in job_config(plan := asking(home, "terminus-2"), plan.jobs[0])["agents"][0]["kwargs"]


def test_a_dry_run_names_the_agent(home: Project) -> None:
    text = render(baseline(home, "nop"))
    assert "# agent        nop, Harbor's own, in a team's place\n# model        none\n" in text
    assert "2 of 2 tasks, 1 attempt each: 2 trials, no limit to their time (4 at a time)" in text
    assert " -a nop -e " in text


def test_a_dry_run_of_an_agent_that_asks_a_model_says_which_and_on_whose_terms(home: Project) -> None:
    text = render(asking(home, "terminus-2"))
    assert "# agent        terminus-2, Harbor's own, in a team's place\n" in text
    assert f"sha256 {asking(home, 'terminus-2').condition_sha256}, on the terms of " in text
    assert "# budget       of each trial: 900 s, any cost" in text
    assert "# model        claude-sonnet-4-6: claude-sonnet-4-6 at https://api.anthropic.com, keys from" in text
    assert " -a bench.trial.baselineagent:BaselineAgent " in text


def local(home: Project, more: str = "", **generation: int) -> dict[str, Any]:
    """The terms of a model whose server speaks OpenAI's dialect."""
    text = (home.root / "manifests/builtin-solo-local.yaml").read_text()
    if not generation:
        text = text.replace("      max_output_tokens: 4096\n", "")
    path = home.root / "manifests/own.yaml"
    path.write_text(text + more)
    return {"manifest": path, "endpoint_config": home.root / "manifests/endpoints/local.json"}


def test_an_answer_is_bounded_as_the_manifest_says_in_the_agents_own_way(home: Project) -> None:
    def options(agent: str, *given: str) -> Any:
        alone = asking(home, agent, agent_kwarg=given, budget_usd="5", **local(home, max_output_tokens=4096))
        assert alone.condition.soloist is not None
        return alone.condition.soloist.options

    assert options("terminus-2") == {"llm_call_kwargs": {"max_tokens": 4096}}
    assert options("terminus-2", 'llm_call_kwargs={"top_p": 1}') == {
        "llm_call_kwargs": {"top_p": 1, "max_tokens": 4096}
    }
    assert options("terminus-2", 'llm_call_kwargs={"max_tokens": 9}') == {"llm_call_kwargs": {"max_tokens": 9}}
    assert options("goose") == {"max_tokens": 4096}


def test_a_budget_on_an_agent_that_sends_no_bound_is_refused_before_it_would_refuse_each_call(home: Project) -> None:
    said = "--agent: a budget in money or tokens needs a bound on each answer, and {} sends none; {}"
    price = "set prices.qwen3:8b.max_output_tokens in the manifest"
    out, set_it = price, f"{price}, or generation.max_output_tokens"
    bounded = local(home, max_output_tokens=4096)
    assert refused(home, "aider", budget_tokens=10**6, **bounded) == said.format("aider", out)
    assert asking(home, "aider", budget_calls=9, **bounded).agent == "aider"
    of_trial = local(home, "  max_tokens: 100000\n")
    assert refused(home, "terminus-2", **of_trial) == said.format("terminus-2", set_it)
    known = local(home, max_output_tokens=4096)
    known["manifest"].write_text(
        known["manifest"].read_text().replace("output: 0}", "output: 0, max_output_tokens: 8192}")
    )
    assert asking(home, "aider", budget_tokens=10**6, **known).agent == "aider"
    # Anthropic's dialect has no call without a bound.
    assert asking(home, "claude-code", budget_usd="5").agent == "claude-code"


def test_options_that_the_agent_does_not_have_are_refused_in_one_line_before_anything_starts(home: Project) -> None:
    fix = "harbor agent schema terminus-2 lists its options"
    said = refused(home, "terminus-2", agent_kwarg=("foo=bar",))
    assert said == f"--agent-kwarg: terminus-2 refuses it: Unknown option 'foo'; {fix}"
    said = refused(home, "terminus-2", agent_kwarg=("temperature=abc",))
    assert said.startswith("--agent-kwarg: terminus-2 refuses it: temperature: Input should be a valid number")


def test_the_caps_are_those_of_one_agent_its_own_and_the_trials(home: Project) -> None:
    team = home.team()
    team["roster"][0]["budget"] = {"max_calls": 2}
    plan = asking(home, "terminus-2", manifest=home.manifest(team))
    assert plan.condition.limits.calls == 2
    assert describe(plan, plan.jobs[0])["budget"]["calls"] == 2
    # Fewer calls than the team has agents: one of them plays.
    few = home.manifest(home.team() | {"trial_budget": {"timeout_seconds": 60, "max_calls": 1}}, "few")
    assert asking(home, "terminus-2", manifest=few).condition.limits.calls == 1


@pytest.mark.slow
@pytest.mark.parametrize("agent", sorted(agent for agent, way in WAYS.items() if way.bound))
def test_harbor_has_the_option_that_bounds_an_answer(agent: str) -> None:
    name, *inner = WAYS[agent].bound
    assert [*option_problems(agent, {name: {inner[0]: 9} if inner else 9})] == []


@pytest.mark.slow
def test_the_known_agents_are_harbors() -> None:
    from harbor.models.agent.name import AgentName

    assert [agent.value for agent in AgentName] == HARBOR_AGENTS


def ways() -> list[tuple[str, str, str]]:
    return [(agent, dialect, form) for agent, way in sorted(WAYS.items()) for dialect, form in way.formats.items()]


@pytest.mark.slow
@pytest.mark.parametrize(("agent", "dialect", "form"), ways())
def test_harbor_sends_each_agent_to_the_gateway_with_its_token_and_nothing_else(
    agent: str, dialect: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from harbor.agents.factory import AgentFactory
    from harbor.agents.installed.base import BaseInstalledAgent
    from harbor.models.trial.config import AgentConfig

    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        # A person's own key must not come between.
        monkeypatch.setenv(name, "sk-the-persons-own")
    url, token = "http://gateway.test:1234", "token-of-the-trial"
    config = AgentConfig(
        name=agent,
        model_name=f"{dialect}/some-model-1",
        base_url=url,
        model_api_key_name="GIVEN",
        model_api_format=form,
        env={"GIVEN": token},
    )
    made = AgentFactory.create_agent_from_config(config, logs_dir=tmp_path)
    connection = made.model_connection
    assert (connection.execution_base_url, connection.api_key) == (url, token)
    assert connection.model_api_format == form
    assert connection.model_id == "some-model-1"
    assert "sk-the-persons-own" not in str(dict(connection.env))
    assert isinstance(made, BaseInstalledAgent) == WAYS[agent].installed
