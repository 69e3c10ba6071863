"""Tasks, team, environment and budget that do not go together are refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.errors import MachineLacks
from bench.planning.harborjob import environment_kwargs, job_config
from tests.planning.kit import Project, real_team, refused


def test_agents_of_other_programs_can_be_planned_but_not_run_yet(both: Project) -> None:
    with pytest.raises(MachineLacks) as caught:
        both.plan(dry_run=False, rehearsal=False, manifest=real_team(both, "goose"), environ={"ANTHROPIC_API_KEY": "x"})
    assert str(caught.value) == (
        "team: agents of harness goose can't run yet, only be dry-run; "
        "use harness: builtin, as manifests/builtin-lead-two-workers.yaml does"
    )


def test_a_team_has_one_harness(both: Project) -> None:
    data = both.team()
    data["roster"][0]["harness"] = "buzz-agent"
    path = both.manifest(data)
    assert refused(both, manifest=path) == (
        f"{path}: mixes agents of harness builtin, buzz-agent; "
        "give all members one: another harness is another condition"
    )


def test_real_agents_get_a_network_in_the_sandbox_for_a_script_alone(both: Project) -> None:
    team = real_team(both)
    planned = both.plan(manifest=team, include=("a",))
    assert environment_kwargs(planned, planned.jobs[0]) == {"network": "host"}
    assert refused(both, manifest=team, rehearsal=False, environment="sandbox") == (
        "team: its agents would need a network there, which the sandbox gives no real model; "
        "use another environment, such as -e docker"
    )


def test_real_agents_do_a_task_without_a_network_only_where_sockets_can_be_mounted(both: Project) -> None:
    both.task("alone", more='[environment]\nnetwork_mode = "no-network"\n')
    given: dict[str, Any] = {"manifest": real_team(both), "include": ("alone",), "doors": both.root / "doors"}
    plan = both.plan(**given, environment="docker")
    (mount,) = job_config(plan, plan.jobs[0])["environment"]["mounts"]
    assert mount == {
        "type": "bind",
        "source": str(both.root / "doors"),
        "target": "/opt/buzzbench/doors",
        "read_only": True,
    }
    for elsewhere in (
        {"environment": "sandbox"},
        {"environment": "daytona"},
        {"environment": "docker", "environ": {"DOCKER_HOST": "tcp://far:1"}},
    ):
        assert refused(both, **given, **elsewhere) == (
            "buzz/alone: declares network_mode 'no-network', where real agents need mounted sockets to reach relay and "
            "gateway; use -e docker with an engine of this machine, or a condition of builtin agents"
        )


def test_a_budget_that_nobody_holds_to_is_refused(both: Project) -> None:
    data = both.team(trial_budget={"timeout_seconds": 60, "max_input_tokens": 5})
    environ = {"ANTHROPIC_API_KEY": "x"}
    with pytest.raises(
        MachineLacks, match=r"team\.yaml: trial_budget\.max_input_tokens: nobody holds to it yet; use max_tokens"
    ):
        both.plan(dry_run=False, rehearsal=False, manifest=both.manifest(data), environ=environ)


def test_a_setting_that_no_program_has_is_refused_where_it_would_run(both: Project) -> None:
    data = both.team()
    for member in data["roster"]:
        member |= {"harness": "buzz-agent", "generation": {"extra": {"max_rounds": 9, "mode": "x"}}}
    environ = {"ANTHROPIC_API_KEY": "x"}
    with pytest.raises(
        MachineLacks, match=r"roster\[0\]\.generation\.extra\.mode: nobody holds to it yet; leave it out"
    ):
        both.plan(dry_run=False, rehearsal=False, manifest=both.manifest(data), environ=environ)
    assert both.plan(rehearsal=False, manifest=both.manifest(data), environ=environ).condition.agents[0].extra


def test_no_time_for_work_is_refused_with_the_numbers(both: Project) -> None:
    both.task("hasty", more="[agent]\ntimeout_sec = 8\n")
    message = refused(both, include=("hasty",))
    assert message.startswith("buzz/hasty: no time is left for work: the task's agent timeout is 8 s")
    assert "trial_budget.timeout_seconds is 300 s" in message


def test_a_task_that_declares_a_network_is_refused_for_real_models_in_the_sandbox(both: Project) -> None:
    both.task("web", more='[environment]\nnetwork_mode = "public"\n')
    team = both.manifest(both.team())
    assert refused(both, rehearsal=False, manifest=team, environment="sandbox") == (
        "buzz/web: declares network_mode 'public', which the sandbox gives no real model; "
        "use another environment, such as -e docker"
    )
    assert both.plan(rehearsal=False, manifest=team, environment="docker").environment == "docker"


def test_what_the_sandbox_cannot_be_is_refused_with_all_reasons(both: Project) -> None:
    more = '[agent]\nuser = "nobody"\n[environment]\ngpus = 1\n[verifier.environment]\nos = "windows"\n'
    both.task("big", more=more)
    (both.tasks / "big/environment/docker-compose.yaml").write_text("services: {}\n")
    assert refused(both, include=("big",)).splitlines() == [
        f"buzz/big: {reason}; use another environment, such as -e docker"
        for reason in (
            "is a docker-compose task, and the sandbox has one place only",
            "needs an accelerator (gpus, tpu), and the sandbox has none",
            "has a verifier that needs windows, and the sandbox is Linux",
            "runs as user 'nobody', and the sandbox has only root",
        )
    ]


def test_mcp_servers_of_a_task_are_refused_by_name(both: Project) -> None:
    both.task("odd", more='[[environment.mcp_servers]]\nname = "m"\ntransport = "sse"\nurl = "http://localhost/"\n')
    said = refused(both)
    assert "odd/task.toml: [[environment.mcp_servers]]: the task brings m, and no member can use a task's MCP" in said
    assert "leave it out with -x odd" in said
    assert both.plan(exclude=("odd",)).rehearsal == "good"


def test_a_conversation_that_a_task_begins_with_is_refused_by_name(both: Project) -> None:
    (both.task("odd") / "trajectory.json").write_text("{}")
    said = refused(both)
    assert "odd/trajectory.json: the task begins with a conversation to go on with" in said
    assert "leave it out with -x odd" in said


def test_a_task_with_skills_is_planned(both: Project) -> None:
    both.task("odd", more='[environment]\nskills_dir = "/skills"\n')
    assert both.plan(include=("odd",)).rehearsal == "good"


def test_an_agents_own_network_is_refused_in_the_sandbox_which_has_one_for_all(both: Project) -> None:
    step = '[[steps]]\nname = "one"\n[steps.agent]\nnetwork_mode = "no-network"\n'
    task = both.task("odd", more=step)
    (task / "steps" / "one").mkdir(parents=True)
    (task / "steps" / "one" / "instruction.md").write_text("x")
    assert "buzz/odd: has network_mode 'no-network' for its agent alone, and the sandbox has one for all" in refused(
        both
    )


def in_steps(home: Project, more: str = "", **timeouts: int) -> Path:
    """A task whose steps have these timeouts."""
    steps = "".join(f'[[steps]]\nname = "{s}"\n[steps.agent]\ntimeout_sec = {t}\n' for s, t in timeouts.items())
    task = home.task("odd", more=steps + more)
    (task / "instruction.md").unlink()
    for step in timeouts:
        (task / "steps" / step).mkdir(parents=True)
        (task / "steps" / step / "instruction.md").write_text(step)
    return task


def test_a_task_in_steps_is_planned(both: Project) -> None:
    in_steps(both, one=100, two=200)
    plan = both.plan(include=("odd",))
    assert [(step.name, step.agent_timeout_s) for step in plan.jobs[0].tasks[0].steps] == [("one", 100), ("two", 200)]


def test_a_step_without_its_files_is_refused_with_each_of_them(both: Project) -> None:
    task = in_steps(both, one=100, two=200)
    (task / "steps" / "two" / "instruction.md").unlink()
    (task / "tests" / "test.sh").unlink()
    said = refused(both)
    assert "odd: has no steps/two/instruction.md" in said
    assert "odd: has no steps/one/tests/test.sh, nor a tests/test.sh for all steps" in said


def test_a_step_that_leaves_no_time_is_refused_by_its_name(both: Project) -> None:
    in_steps(both, one=100, two=8)
    assert "odd, step two: no time is left for work: the task's agent timeout is 8 s" in refused(both)


def test_a_step_with_a_timeout_that_is_none_is_refused(both: Project) -> None:
    in_steps(both, one=100, two=-3)
    assert "steps[1].agent.timeout_sec: -3 is no number of seconds above 0" in refused(both)


def test_real_agents_cannot_change_their_user_between_two_steps(both: Project) -> None:
    task = in_steps(both, one=100, two=200)
    config = task / "task.toml"
    config.write_text(config.read_text().replace("timeout_sec = 200", 'timeout_sec = 200\nuser = "other"'))
    real = both.manifest(both.team(), name="real")
    real.write_text(real.read_text().replace("harness: builtin", "harness: buzz-agent"))
    said = refused(both, manifest=real, include=("odd",), environment="docker")
    assert "buzz/odd: has steps for agents of different users (other, the image's own), and real agents go on" in said
