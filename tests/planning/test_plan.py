"""The plan: what runs is what was asked, and all that stands in its way is said before anything starts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.errors import BuzzbenchError, MachineLacks
from bench.planning.harborjob import environment_kwargs, job_config
from bench.planning.planned import Plan
from bench.settings import ROOT
from tests.planning.kit import NOW, Project, project


@pytest.fixture
def home(tmp_path: Path) -> Project:
    return project(tmp_path)


@pytest.fixture
def both(home: Project) -> Project:
    """A project with tasks of both layers."""
    home.task("flow", "workflow")
    home.task("a")
    home.task("b")
    return home


def jobs(plan: Plan) -> list[tuple[str, int, list[str]]]:
    return [(job.name, job.attempts, [task.directory.name for task in job.tasks]) for job in plan.jobs]


def refused(home: Project, **changes: Any) -> str:
    with pytest.raises(BuzzbenchError) as caught:
        home.plan(**changes)
    return str(caught.value)


def test_both_layers_make_two_jobs_regression_first_with_one_time_stamp(both: Project) -> None:
    assert jobs(both.plan()) == [
        ("lb-rehearsal-20260131T235959Z-regression", 1, ["a", "b"]),
        ("lb-rehearsal-20260131T235959Z-workflow", 3, ["flow"]),
    ]
    assert [job.layer for job in both.plan().jobs] == ["regression", "workflow"]


def test_a_number_of_attempts_makes_one_job(both: Project) -> None:
    assert jobs(both.plan(attempts="2")) == [("lb-rehearsal-20260131T235959Z", 2, ["a", "b", "flow"])]


@pytest.mark.parametrize(("include", "attempts"), [("flow", 3), ("a", 1)])
def test_one_layer_makes_one_job_with_that_layers_attempts(both: Project, include: str, attempts: int) -> None:
    assert jobs(both.plan(include=(include,))) == [("lb-rehearsal-20260131T235959Z", attempts, [include])]


def test_a_layer_can_be_chosen(both: Project) -> None:
    assert jobs(both.plan(layer="workflow", job_name="mine")) == [("mine", 3, ["flow"])]


def test_a_given_name_gets_the_layers_as_suffixes(both: Project) -> None:
    assert [job.name for job in both.plan(job_name="mine").jobs] == ["mine-regression", "mine-workflow"]


def test_outside_the_buzz_dataset_there_are_five_attempts(home: Project) -> None:
    home.task("x", None, folder="other")
    (job,) = home.plan(path=home.root / "other").jobs
    assert (job.attempts, job.layer, job.trials) == (5, None, 5)


def test_without_a_path_the_registry_dataset_is_the_default(home: Project) -> None:
    plan = home.plan(path=None, rehearsal=False)
    (job,) = plan.jobs
    assert (job.dataset, job.attempts, job.trials, plan.n_tasks) == (
        "terminal-bench/terminal-bench-2-1",
        5,
        None,
        None,
    )


def test_globs_for_a_hub_dataset_become_what_harbor_matches(home: Project) -> None:
    globs: dict[str, Any] = {"include": ("cobol*", "other/x"), "exclude": ("y",)}
    (hub,) = home.plan(path=None, rehearsal=False, dataset="org/set", **globs).jobs
    assert (hub.include, hub.exclude) == (("*/cobol*", "other/x"), ("*/y",))
    (bare,) = home.plan(path=None, rehearsal=False, dataset="set@2.0", **globs).jobs
    assert (bare.include, bare.exclude) == (("cobol*", "other/x"), ("y",))


def test_globs_of_local_tasks_are_resolved_here(both: Project) -> None:
    plan = both.plan(include=("*",), exclude=("b", "buzz/f*"))
    (job,) = plan.jobs
    assert (job.include, job.exclude, plan.n_tasks) == ((), (), 3)
    assert [task.directory.name for task in job.tasks] == ["a"]


def test_a_rehearsal_takes_the_scripted_team_the_embedded_stack_and_the_sandbox(both: Project) -> None:
    plan = both.plan()
    assert (plan.condition.name, plan.rehearsal, plan.stack, plan.environment) == (
        "rehearsal",
        "good",
        "embedded",
        "sandbox",
    )
    assert (plan.key_variables, plan.endpoint_config, plan.needs_agents) == ((), None, False)


def test_a_rehearsal_of_another_team_replaces_its_endpoints(both: Project) -> None:
    plan = both.plan(manifest=both.manifest(both.team()))
    assert [(e.name, e.provider, e.dialect) for e in plan.endpoints.values()] == [
        ("claude-sonnet-4-6", "scripted", "anthropic")
    ]
    assert plan.endpoint_config == both.root / "manifests/endpoints/anthropic-live.json"


def test_the_default_condition_runs_real_agents_on_docker(both: Project) -> None:
    plan = both.plan(rehearsal=False)
    assert (plan.condition.name, plan.stack, plan.environment, plan.needs_agents) == (
        "tb-cobol-sonnet46-2haiku45",
        "compose",
        "docker",
        True,
    )
    assert plan.key_variables == ("ANTHROPIC_API_KEY",)


def test_a_builtin_team_needs_no_docker_stack(both: Project) -> None:
    team = both.manifest(both.team())
    given: dict[str, Any] = {
        "rehearsal": False,
        "dry_run": False,
        "manifest": team,
        "environ": {"ANTHROPIC_API_KEY": "x"},
    }
    plan = both.plan(**given, environment="sandbox")
    assert (plan.stack, plan.environment) == ("embedded", "sandbox")
    assert both.plan(**given | {"dry_run": True}, stack="compose").stack == "compose"


def test_a_missing_key_is_named_with_endpoint_variable_and_the_ways_on(both: Project) -> None:
    team = both.manifest(both.team())
    message = refused(both, dry_run=False, rehearsal=False, manifest=team, environment="docker")
    assert message.splitlines()[0] == (
        f"endpoint claude-sonnet-4-6 ({both.root}/manifests/endpoints/anthropic-live.json): ANTHROPIC_API_KEY is not "
        "set; set it, or go on without a key: --rehearsal, or a local model with --manifest "
        "manifests/builtin-lead-two-workers-local.yaml --endpoint-config manifests/endpoints/local.json"
    )


def test_an_empty_key_is_a_missing_one(both: Project) -> None:
    environ = {"ANTHROPIC_API_KEY": " "}
    assert "ANTHROPIC_API_KEY is not set" in refused(both, dry_run=False, rehearsal=False, environ=environ)


def test_the_ways_on_that_are_named_lead_on(both: Project) -> None:
    local: dict[str, Any] = {
        "manifest": both.root / "manifests/builtin-lead-two-workers-local.yaml",
        "endpoint_config": both.root / "manifests/endpoints/local.json",
        "environment": "sandbox",
    }
    assert both.plan(rehearsal=False, **local).key_variables == ()
    assert both.plan(rehearsal=True).key_variables == ()


def real_team(project: Project, harness: str = "buzz-agent") -> Path:
    data = project.team()
    for member in data["roster"]:
        member["harness"] = harness
    return project.manifest(data)


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


def test_what_the_machine_lacks_is_not_asked_of_a_dry_run(both: Project) -> None:
    team = both.manifest(both.team())
    given: dict[str, Any] = {
        "rehearsal": False,
        "dry_run": False,
        "manifest": team,
        "environ": {"ANTHROPIC_API_KEY": "x", "PATH": ""},
    }
    missing = "there is no docker command; install Docker with its Compose plugin, or use"
    with pytest.raises(MachineLacks, match=f"-e docker: {missing} -e sandbox"):
        both.plan(**given)
    with pytest.raises(MachineLacks, match=f"--stack compose: {missing} --stack embedded"):
        both.plan(**given, stack="compose", environment="sandbox")
    assert both.plan(**given | {"dry_run": True}).environment == "docker"


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


def test_input_and_machine_faults_are_told_together_as_faults_of_the_input(both: Project) -> None:
    given = {"manifest": real_team(both, "goose"), "environ": {"ANTHROPIC_API_KEY": "x"}}
    message = refused(both, dry_run=False, rehearsal=False, attempts="0", **given)
    assert message.splitlines() == [
        "--attempts/-k: 0 is not a whole number from 1 to 999999",
        "team: agents of harness goose can't run yet, only be dry-run; "
        "use harness: builtin, as manifests/builtin-lead-two-workers.yaml does",
    ]


def test_tasks_without_a_script_are_named(both: Project) -> None:
    both.task("silent", script=None)
    assert refused(both) == (
        "--rehearsal: no rehearsal/good.yaml in silent; leave them out with -x, or write it "
        "(buzz-dataset/README.md has its form)"
    )
    assert both.plan(exclude=("silent",)).rehearsal == "good"
    assert (
        refused(both, script="goood") == "--rehearsal: no rehearsal/goood.yaml in a, b, flow, silent; did you mean good"
    )


def test_another_script_can_be_rehearsed(both: Project) -> None:
    (both.tasks / "a/rehearsal/wrong-early.yaml").write_text((both.tasks / "a/rehearsal/good.yaml").read_text())
    assert both.plan(include=("a",), script="wrong-early").rehearsal == "wrong-early"
    assert "no rehearsal/wrong-early.yaml in b, flow" in refused(both, script="wrong-early")


def test_a_script_for_another_roster_is_refused(both: Project) -> None:
    solo = both.root / "manifests/builtin-solo.yaml"
    (both.tasks / "a/rehearsal/good.yaml").write_text(
        "orch:\n  - {name: ask, do: [{send: {mention: [worker-1], text: x}}]}\n"
    )
    assert refused(both, include=("a",), manifest=solo).endswith(
        "a/rehearsal/good.yaml: is for orch, whom the roster of builtin-solo-sonnet46 lacks; it has solo; a script may "
        "have parts for several teams where task.toml has [metadata].needs_members = []"
    ), "and not whom orch mentions there, whom a solo lacks of course"


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (
            "send: {mention: [worker-9], text: x}",
            "send.mention: nobody is called 'worker-9'; there are orch, user, worker-1, worker-2",
        ),
        ("send: {mention: [worker], text: x}", "send.mention: nobody is called 'worker'"),
        ("tool: {list_member: {}}", "tool: there is no tool 'list_member'; did you mean list_members"),
        ("tool: {x: {}}", "tool: there is no tool 'x'; there are add_member, create_channel, done, "),
    ],
)
def test_a_script_that_names_nobody_or_no_tool_is_refused(both: Project, step: str, said: str) -> None:
    script = f"orch:\n  - name: only\n    do:\n      - {step}\n"
    both.task("c", script=script)
    assert f"c/rehearsal/good.yaml:4: orch[0].do[0].{said}" in refused(both, include=("c",))


def test_whom_a_script_may_mention(both: Project) -> None:
    """Placeholders are filled in only when it plays."""
    mentions = '[worker-1, "@worker-2", user, orch, "{{user}}", "worker-{{index}}"]'
    script = f"orch:\n  - name: all\n    do:\n      - send: {{mention: {mentions}, text: x}}\n"
    both.task("c", script=script + "      - tool: {react: {event_id: x, emoji: y}}\n")
    assert len(both.plan(include=("c",)).jobs) == 1


def test_a_script_in_which_the_orchestrator_does_nothing_is_refused(both: Project) -> None:
    both.task("c", script="orch: []\n")
    assert "c/rehearsal/good.yaml: has no steps for orch, the orchestrator of rehearsal" in refused(
        both, include=("c",)
    )


def test_a_script_of_a_task_for_any_team_may_have_parts_for_several(both: Project) -> None:
    file = both.tasks / "a/task.toml"
    file.write_text(file.read_text().replace("[metadata]\n", "[metadata]\nneeds_members = []\n"))
    script = both.tasks / "a/rehearsal/good.yaml"
    solo = both.root / "manifests/builtin-solo.yaml"
    assert refused(both, include=("a",), manifest=solo).endswith("lacks; it has solo; add a part for solo")
    script.write_text(
        "orch:\n  - {name: ask, do: [{send: {mention: [worker-1], text: x}}]}\n"
        "worker-1:\n  - {name: answer, do: [{say: x}]}\n"
        "solo:\n  - {name: alone, do: [{done: alone}]}\n"
    )
    assert both.plan(include=("a",)).condition.name == "rehearsal"
    assert both.plan(include=("a",), manifest=solo).condition.name == "builtin-solo-sonnet46"


def test_tasks_that_call_on_members_whom_the_roster_lacks_are_refused_by_name(both: Project) -> None:
    for name, needs in (("a", '["worker-1"]'), ("b", '["worker-1"]'), ("flow", '["worker-1", "worker-2"]')):
        file = both.tasks / name / "task.toml"
        file.write_text(file.read_text().replace("[metadata]\n", f"[metadata]\nneeds_members = {needs}\n"))
    assert both.plan().condition.name == "rehearsal"
    solo: dict[str, Any] = {"manifest": both.root / "manifests/builtin-solo.yaml", "rehearsal": False}
    expected = [
        "builtin-solo-sonnet46: its roster (solo) lacks worker-1, whom these tasks call on: a, b; "
        "take another --manifest, or leave them out with -x",
        "builtin-solo-sonnet46: its roster (solo) lacks worker-1, worker-2, whom these tasks call on: flow; "
        "take another --manifest, or leave them out with -x",
    ]
    assert refused(both, **solo).splitlines() == expected
    assert refused(both, **solo | {"rehearsal": True}).splitlines() == expected, "and not once more of each script"
    for name in ("a", "b"):
        file = both.tasks / name / "task.toml"
        file.write_text(file.read_text().replace('["worker-1"]', "[]"))
    assert refused(both, **solo).endswith("flow; take another --manifest, or play the others: -i a -i b")


def test_a_script_without_the_orchestrator_is_refused(both: Project) -> None:
    both.task("lead-less", script="worker:\n  - name: x\n    do:\n      - say: y\n")
    assert "has no steps for orch, the orchestrator of rehearsal" in refused(both, include=("lead-less",))


def test_a_broken_script_is_refused_with_its_line(both: Project) -> None:
    both.task("broken", script="orch:\n  - do: [\n")
    assert "broken/rehearsal/good.yaml:" in refused(both, include=("broken",))


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


def test_a_machine_without_a_sandbox_is_told_the_way_on(both: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    from bench.sandbox import probe

    monkeypatch.setenv("PATH", "")
    probe.tools.cache_clear()
    with pytest.raises(MachineLacks, match=r"^sandbox: .*use -e docker$"):
        both.plan(dry_run=False)
    probe.tools.cache_clear()
    assert both.plan().environment == "sandbox"


def test_two_jobs_of_one_second_get_two_names(both: Project) -> None:
    (both.root / "jobs/lb-rehearsal-20260131T235959Z-workflow").mkdir(parents=True)
    assert [job.name for job in both.plan().jobs] == [
        "lb-rehearsal-20260131T235959Z-2-regression",
        "lb-rehearsal-20260131T235959Z-2-workflow",
    ]


def test_a_conditions_name_makes_a_good_job_name(both: Project) -> None:
    team = both.manifest(both.team(condition="lead & two workers"))
    assert both.plan(manifest=team, attempts=1).jobs[0].name == "lb-lead-two-workers-20260131T235959Z"


def test_the_same_input_makes_the_same_plan(both: Project) -> None:
    assert both.plan() == both.plan()


def test_planning_writes_nothing(both: Project) -> None:
    before = both.files()
    both.plan()
    both.plan(rehearsal=False, fresh=True)
    refused(both, dry_run=False, rehearsal=False)
    assert both.files() == before


def test_the_time_stamp_is_utc(both: Project) -> None:
    from datetime import timedelta, timezone

    local = NOW.astimezone(timezone(timedelta(hours=9)))
    assert both.plan(now=local).jobs[0].name == both.plan().jobs[0].name


SLOW = {"harbor", "aiohttp", "litellm", "psycopg", "nostr_sdk", "buzzkit", "httpx", "rich", "orjson", "toml"}
PLAYING = ("channel", "docker", "gateway", "gui", "harness", "pack", "relay", "sandbox", "stack", "trial", "xbuild")
"""The rooms that run something."""
READ_BY_A_PLAN = {
    "bench.gateway.script",
    *("bench.harness.buzz.fixed", "bench.harness.shell", "bench.harness.toolspecs"),
    *(f"bench.sandbox.{name}" for name in ("context", "definition", "dockerfile", "layout", "words")),
    *(f"bench.trial.{name}" for name in ("deadline", "reach", "steps")),
}
"""What a plan needs of them: forms of what people write, and numbers."""


def test_a_dry_run_loads_nothing_slow_and_of_the_rooms_that_play_only_what_it_reads() -> None:
    code = (
        "import sys; sys.argv = 'inv bench --path buzz-dataset --rehearsal --dry-run'.split()\n"
        "from invoke.main import program\n"
        "program.run()\n"
        "print(*sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    loaded = set(ran.stdout.splitlines()[-1].split())
    assert not loaded & SLOW
    rooms = {name for name in loaded if name.startswith(tuple(f"bench.{room}." for room in PLAYING))}
    assert rooms - {"bench.harness.buzz"} == READ_BY_A_PLAN


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


def test_an_agents_own_network_is_refused_in_the_sandbox_which_has_one_for_all(both: Project) -> None:
    step = '[[steps]]\nname = "one"\n[steps.agent]\nnetwork_mode = "no-network"\n'
    task = both.task("odd", more=step)
    (task / "steps" / "one").mkdir(parents=True)
    (task / "steps" / "one" / "instruction.md").write_text("x")
    assert "buzz/odd: has network_mode 'no-network' for its agent alone, and the sandbox has one for all" in refused(
        both
    )


def test_real_agents_cannot_change_their_user_between_two_steps(both: Project) -> None:
    task = in_steps(both, one=100, two=200)
    config = task / "task.toml"
    config.write_text(config.read_text().replace("timeout_sec = 200", 'timeout_sec = 200\nuser = "other"'))
    real = both.manifest(both.team(), name="real")
    real.write_text(real.read_text().replace("harness: builtin", "harness: buzz-agent"))
    said = refused(both, manifest=real, include=("odd",), environment="docker")
    assert "buzz/odd: has steps for agents of different users (other, the image's own), and real agents go on" in said


def test_what_a_manifest_may_mean_otherwise_is_a_note_of_the_plan(both: Project) -> None:
    data = both.team()
    for member in data["roster"]:
        member["model_revision"] = "claude-opus-5"
    plan = both.plan(manifest=both.manifest(data))
    assert [note.what.partition(": ")[2] for note in plan.notes] == [
        "claude-opus-5 costs what prices says of its endpoint, claude-sonnet-4-6"
    ]
