"""The planned job in Harbor's terms, and the dry run: what is printed is what is run."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.planning.checks import HARBOR_ENVIRONMENTS
from bench.planning.dryrun import render
from bench.planning.harborjob import agent_kwargs, harbor_arguments, job_config
from bench.planning.planned import Plan
from bench.settings import ROOT
from tests.planning.kit import Project, project


@pytest.fixture
def home(tmp_path: Path) -> Project:
    made = project(tmp_path)
    made.task("a")
    made.task("b")
    made.task("odd[1]", "workflow", full_name="buzz/odd")
    return made


def _rehearsal(home: Project) -> Plan:
    return home.plan(include=("a", "odd*"), n_concurrent="8")


def _single(home: Project) -> Plan:
    return home.plan(path=home.tasks / "a", attempts="2", environment="daytona")


def _networked(home: Project) -> Plan:
    home.task("web", more='[environment]\nnetwork_mode = "public"\n')
    return home.plan(include=("web",))


def _registry(home: Project) -> Plan:
    data = home.team(environment={"override_cpus": 4, "override_memory_mb": 8192})
    return home.plan(
        path=None,
        dataset="org/set@3",
        include=("cobol*",),
        exclude=("other/x", "y"),
        rehearsal=False,
        manifest=home.manifest(data),
    )


def _bare_registry(home: Project) -> Plan:
    return home.plan(path=None, dataset="set@2.0", rehearsal=False)


def _baseline(home: Project) -> Plan:
    return home.plan(rehearsal=False, agent="nop", agent_kwarg=("disable_web_search=True",), environment="sandbox")


def _real_agents(home: Project) -> Plan:
    data = home.team()
    for member in data["roster"]:
        member["harness"] = "buzz-agent"
    programs = home.root / "programs"
    return home.plan(
        include=("a",),
        manifest=home.manifest(data),
        environment="docker",
        agent_programs=programs,
        doors=home.root / "doors",
    )


def _extras(home: Project) -> Plan:
    more = home.root / "more.yaml"
    more.write_text("agent_timeout_multiplier: 2.0\nenvironment: {force_build: true}\nartifacts: [/app/out.txt]\n")
    return home.plan(
        path=None,
        dataset="org/set",
        rehearsal=False,
        environment="docker",
        n_tasks="3",
        environment_kwarg=("auto_mounting=true", "keep_containers=False"),
        max_retries="2",
        harbor_config=more,
    )


def _asking_baseline(home: Project) -> Plan:
    kwarg = ("max_turns=5", "temperature=0.5")
    return home.plan(rehearsal=False, agent="terminus-2", agent_kwarg=kwarg, environment="sandbox", dry_run=True)


PLANS = [_rehearsal, _single, _networked, _registry, _bare_registry, _baseline, _asking_baseline, _real_agents, _extras]


def _printed(command: str) -> Any:
    """What Harbor itself makes of a printed command."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    ran = subprocess.run(
        f"{command} --print-config", shell=True, capture_output=True, text=True, check=True, env=environment
    )
    return json.loads(ran.stdout)


def _commands(plan: Plan) -> list[str]:
    return [line for line in render(plan).splitlines() if not line.startswith("#")]


@pytest.mark.slow
@pytest.mark.parametrize("make", PLANS, ids=lambda make: make.__name__.strip("_"))
def test_the_printed_command_resolves_to_the_very_config_that_runs(
    home: Project, make: Callable[[Project], Plan]
) -> None:
    from harbor.models.job.config import JobConfig

    plan = make(home)
    for job, command in zip(plan.jobs, _commands(plan), strict=True):
        ours = JobConfig.model_validate(job_config(plan, job))
        assert json.loads(ours.model_dump_json()) == _printed(command)


@pytest.mark.slow
async def test_harbor_finds_the_selected_tasks_and_no_other(home: Project) -> None:
    from harbor.models.job.config import JobConfig

    plan = _rehearsal(home)
    found = []
    for job in plan.jobs:
        for dataset in JobConfig.model_validate(job_config(plan, job)).datasets:
            found += [task.path for task in await dataset.get_task_configs()]
    assert found == [home.tasks / "a", home.tasks / "odd[1]"]


@pytest.mark.slow
def test_the_known_environments_are_harbors() -> None:
    from harbor.models.environment_type import EnvironmentType

    assert [kind.value for kind in EnvironmentType] == HARBOR_ENVIRONMENTS


def test_the_agents_arguments_are_a_function_of_the_input_alone(home: Project) -> None:
    plan = home.plan(manifest=home.manifest(home.team()))
    assert agent_kwargs(plan) == {
        "manifest": str(home.root / "manifests/team.yaml"),
        "condition_sha256": plan.condition.sha256,
        "endpoints": str(home.root / "manifests/endpoints/anthropic-live.json"),
        "rehearsal": "good",
    }
    assert home.plan().endpoint_config is None
    first, second = (home.plan(now=plan.options.now.replace(second=n), job_name="j") for n in (1, 2))
    assert [job_config(first, job) for job in first.jobs] == [job_config(second, job) for job in second.jobs]


def test_the_configuration_holds_absolute_paths_no_key_and_no_model(home: Project) -> None:
    plan = _single(home)
    config = job_config(plan, plan.jobs[0])
    assert config["jobs_dir"] == str(home.root / "jobs")
    assert config["tasks"] == [{"path": str(home.tasks / "a")}]
    assert config["environment"] == {"type": "daytona"}
    assert config["quiet"] is True
    assert config["agents"][0].keys() == {"name", "kwargs"}


def test_the_sandbox_is_given_by_import_path(home: Project) -> None:
    plan = _rehearsal(home)
    config = job_config(plan, plan.jobs[0])
    assert config["environment"]["import_path"] == "bench.sandbox.environment:SandboxEnvironment"
    assert config["n_concurrent_trials"] == 8


def test_the_hosts_network_is_for_rehearsed_tasks_that_declare_one(home: Project) -> None:
    plan = _networked(home)
    assert job_config(plan, plan.jobs[0])["environment"]["kwargs"] == {"network": "host"}
    plain = _rehearsal(home)
    assert job_config(plain, plain.jobs[0])["environment"]["kwargs"] == {}


def test_resources_go_to_an_environment_that_has_limits(home: Project) -> None:
    data = home.team(environment={"override_cpus": 4})
    manifest = home.manifest(data)
    docker = home.plan(manifest=manifest, environment="docker", rehearsal=False)
    environment = job_config(docker, docker.jobs[0])["environment"]
    assert (environment["type"], environment["override_cpus"]) == ("docker", 4)
    assert "environment.override_cpus: 4, and a board wants the task's own" in render(docker)
    assert "override" not in render(home.plan(manifest=manifest))


def test_the_agents_programs_and_the_stacks_sockets_are_mounted_read_only_where_the_engine_is_here(
    home: Project,
) -> None:
    planned = _real_agents(home)
    (job,) = planned.jobs
    mounted = job_config(planned, job)["environment"]["mounts"]
    names = ["buzz-acp", "buzz-agent", "buzz-dev-mcp", "relay-forwarder"]
    ways = [(f"programs/{name}", f"/opt/buzzbench/bin/{name}") for name in names]
    assert mounted == [
        {"type": "bind", "source": str(home.root / here), "target": inside, "read_only": True}
        for here, inside in (*ways, ("doors", "/opt/buzzbench/doors"))
    ]
    for environ, mounts in (({"DOCKER_HOST": "unix:///x"}, True), ({"DOCKER_HOST": "tcp://elsewhere:1"}, False)):
        options = replace(planned.options, environ=environ)
        found = job_config(replace(planned, options=options), job)["environment"]
        assert ("mounts" in found) is mounts


def test_upload_is_harbors_own(home: Project) -> None:
    plan = home.plan(rehearsal=False, upload_anyway=True)
    assert harbor_arguments(plan, plan.jobs[0])[-1] == "--upload"


def test_a_dry_run_says_what_would_happen(home: Project) -> None:
    text = render(home.plan(fresh=True))
    head = [line.removeprefix("# ") for line in text.splitlines() if line.startswith("# ")]
    assert head == [
        "A dry run: nothing is started or written.",
        "tasks        3 of 3 tasks, 1 attempt each (regression), 3 attempts each (workflow): 5 trials, "
        "at most about 11 min (4 at a time)",
        "             a, b, odd[1]",
        "job          lb-rehearsal-20260131T235959Z-regression: 1 attempt of each task, 2 trials, 4 at a time",
        "job          lb-rehearsal-20260131T235959Z-workflow: 3 attempts of each task, 3 trials, 4 at a time",
        f"condition    rehearsal, sha256 {home.plan().condition_sha256}, from {home.root}/manifests/rehearsal.yaml",
        "team         orch (scripted, builtin), worker-1 (scripted, builtin), worker-2 (scripted, builtin)",
        "budget       of each trial: 300 s, any cost, any number of tokens, any number of calls",
        "model        scripted (good): a rehearsal proves the plumbing and measures no model",
        "stack        embedded",
        "environment  sandbox",
        "stages       keys, env, up, schema, run",
        "leaderboard  not eligible: agents.kwargs.rehearsal: a script answered in the models' place",
        "note         --fresh would drop the stack's data first",
    ]


def test_a_dry_run_of_a_registry_dataset_says_what_harbor_will_choose_from(home: Project) -> None:
    text = render(_registry(home))
    assert "# tasks        tasks of org/set@3, 5 attempts each, at most 16 min a trial\n" in text
    assert "#              only */cobol*, without other/x, without */y\n" in text
    assert "claude-sonnet-4-6 at https://api.anthropic.com, keys from ANTHROPIC_API_KEY" in text


def test_the_stages_of_real_agents_build_them(home: Project) -> None:
    text = render(home.plan(rehearsal=False, stack="compose", gui=True))
    assert "# stages       keys, env, xbuild, up, schema, gui, run" in text


def test_a_dry_run_is_a_shell_script(home: Project) -> None:
    commands = _commands(home.plan())
    assert len(commands) == 2
    words = shlex.split(commands[0])
    assert words[0] == "HARBOR_TELEMETRY=off"
    assert (Path.cwd() / words[1]) == Path(sys.executable).parent / "harbor"
    assert words[2:5] == ["run", "-p", str(home.tasks)]


def test_a_dry_run_can_be_one_json_object(home: Project) -> None:
    plan = home.plan(json=True)
    data = json.loads(render(plan))
    assert (data["dry_run"], data["rehearsal"], data["condition"]) == (True, "good", "rehearsal")
    assert [job["trials"] for job in data["jobs"]] == [2, 3]
    assert data["budget"] == {"timeout_seconds": 300, "usd_micros": None, "tokens": None, "calls": None}
    assert (data["agent"], data["at_most_seconds"]) == (None, 616)
    assert [job["command"] for job in data["jobs"]] == _commands(home.plan())


def test_the_shipped_tasks_plan_as_they_are() -> None:
    from bench.planning.options import Options
    from bench.planning.plan import make

    plan = make(Options(path=ROOT / "buzz-dataset", rehearsal=True, environ={}))
    assert plan.n_tasks == sum(len(job.tasks) for job in plan.jobs)
