"""Sandboxes elsewhere: what we ask of Harbor's environments, held to its interface. None of them was ever run here.

The harness `builtin` needs nothing of a sandbox but `exec` and the transfer of one file.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
from harbor.environments.base import BaseEnvironment
from harbor.environments.factory import _load_environment_class
from harbor.models.environment_type import EnvironmentType
from harbor.models.job.config import JobConfig

from bench.planning.harborjob import job_config, overlays
from bench.settings import ROOT
from tests.planning.kit import project

ELSEWHERE = ("modal", "daytona", "gke")


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_job_for_one_elsewhere_is_a_job_of_harbors(tmp_path: Path, name: str) -> None:
    home = project(tmp_path)
    home.task("a")
    plan = home.plan(environment=name)
    (job,) = plan.jobs
    config = JobConfig.model_validate(job_config(plan, job))
    assert config.environment.type == EnvironmentType(name)
    assert overlays(plan) == []
    assert plan.stack == "embedded"


@pytest.mark.parametrize("name", [*ELSEWHERE, "docker"])
def test_an_environment_does_what_the_builtin_harness_asks_of_it(name: str) -> None:
    kind = _load_environment_class(EnvironmentType(name))
    assert issubclass(kind, BaseEnvironment)
    for method, arguments in (
        ("exec", {"command": "true", "timeout_sec": 1}),
        ("exec", {"command": "true", "user": "root", "timeout_sec": 1}),
        ("upload_file", {"source_path": Path("a"), "target_path": "/b"}),
    ):
        _signature(kind, method).bind(None, **arguments)


def _signature(kind: Any, method: str) -> inspect.Signature:
    assert inspect.iscoroutinefunction(getattr(kind, method))
    return inspect.signature(getattr(kind, method))


def test_in_docker_the_overlays_are_the_projects_own_files(tmp_path: Path) -> None:
    home = project(tmp_path)
    home.task("a")
    plan = home.plan(environment="docker")
    (job,) = plan.jobs
    config = JobConfig.model_validate(job_config(plan, job))
    assert config.environment.extra_docker_compose == [ROOT / "compose" / "trial.yaml"]


def test_real_agents_in_docker_are_told_where_the_host_is_unless_they_have_its_sockets(tmp_path: Path) -> None:
    home = project(tmp_path)
    home.task("a")
    team = home.team()
    for member in team["roster"]:
        member["harness"] = "buzz-agent"
    plan = home.plan(environment="docker", manifest=home.manifest(team), rehearsal=False)
    assert [Path(path).name for path in overlays(plan)] == ["trial.yaml", "trial-host.yaml"]
    with_sockets = home.plan(
        environment="docker", manifest=home.manifest(team), rehearsal=False, doors=Path("/tmp/doors")
    )
    assert [Path(path).name for path in overlays(with_sockets)] == ["trial.yaml"]
