"""The plan: what runs is what was asked, and all that stands in its way is said before anything starts."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from bench.errors import MachineLacks
from bench.settings import ROOT
from tests.planning.kit import Project, real_team, refused


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


def test_input_and_machine_faults_are_told_together_as_faults_of_the_input(both: Project) -> None:
    given = {"manifest": real_team(both, "goose"), "environ": {"ANTHROPIC_API_KEY": "x"}}
    message = refused(both, dry_run=False, rehearsal=False, attempts="0", **given)
    assert message.splitlines() == [
        "--attempts/-k: 0 is not a whole number from 1 to 999999",
        "team: agents of harness goose can't run yet, only be dry-run; "
        "use harness: builtin, as manifests/builtin-lead-two-workers.yaml does",
    ]


def test_a_machine_without_a_sandbox_is_told_the_way_on(both: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    from bench.sandbox import probe

    monkeypatch.setenv("PATH", "")
    probe.tools.cache_clear()
    with pytest.raises(MachineLacks, match=r"^sandbox: .*use -e docker$"):
        both.plan(dry_run=False)
    probe.tools.cache_clear()
    assert both.plan().environment == "sandbox"


def test_the_same_input_makes_the_same_plan(both: Project) -> None:
    assert both.plan() == both.plan()


def test_planning_writes_nothing(both: Project) -> None:
    before = both.files()
    both.plan()
    both.plan(rehearsal=False, fresh=True)
    refused(both, dry_run=False, rehearsal=False)
    assert both.files() == before


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


def test_what_a_manifest_may_mean_otherwise_is_a_note_of_the_plan(both: Project) -> None:
    data = both.team()
    for member in data["roster"]:
        member["model_revision"] = "claude-opus-5"
    plan = both.plan(manifest=both.manifest(data))
    assert [note.what.partition(": ")[2] for note in plan.notes] == [
        "claude-opus-5 costs what prices says of its endpoint, claude-sonnet-4-6"
    ]
