"""Trials of real agents in containers: programs mounted, a forwarder inside, relay and gateway on the host."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import pytest

from bench.settings import ROOT
from bench.stack import address
from bench.stack.paths import door_dir
from bench.xbuild import forwarder
from tests.docker import tasks
from tests.docker.images import docker
from tests.docker.installation import DockerInstallation
from tests.pipeline import DATASET
from tests.standins.programs import make
from tests.xbuild import workspace

pytestmark = [pytest.mark.docker, pytest.mark.timeout(180)]

TEAM = ROOT / "manifests" / "tb-cobol-sonnet-haiku.yaml"


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = make(tmp_path_factory.mktemp("programs"))
    forwarder.build_here(directory)
    return directory


def rehearse(shared: DockerInstallation, programs: Path, *more: str, **variables: str) -> tuple[int, dict[str, Any]]:
    code, job, said = shared.rehearse_in_docker(
        *("--manifest", str(TEAM), "-k", "1", "-i", "split-and-merge", *more),
        path=DATASET,
        BUZZBENCH_AGENT_PROGRAMS=str(programs),
        **variables,
    )
    assert code in (0, 1), said
    return code, job


def facts(job: dict[str, Any]) -> dict[str, Any]:
    (path,) = Path(job["directory"]).glob("*/result.json")
    result = json.loads(path.read_text())
    assert result["exception_info"] is None, result["exception_info"]["exception_message"]
    found: dict[str, Any] = result["agent_result"]["metadata"]["buzzbench"]
    return found


def test_a_team_of_real_agents_works_in_a_container(
    shared: DockerInstallation, task_image: str, programs: Path
) -> None:
    code, job = rehearse(shared, programs)
    found = facts(job)
    assert (code, found["ended"], found["labels"]) == (0, "done", [])
    (log,) = Path(job["directory"]).glob("*/agent/worker-1/buzz-acp.log")
    assert "turn complete" in log.read_text()


def test_where_the_engine_is_not_local_the_programs_are_uploaded(
    shared: DockerInstallation, task_image: str, programs: Path
) -> None:
    """A tunnel to the same engine stands for one elsewhere: it has no path of ours, as far as we know."""
    if shutil.which("socat") is None:
        subprocess.run(["apt-get", "install", "-y", "-qq", "socat"], check=True, capture_output=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    here = os.environ["DOCKER_HOST"].removeprefix("unix://")
    tunnel = subprocess.Popen(["socat", f"TCP-LISTEN:{port},bind=127.0.0.1,fork,reuseaddr", f"UNIX-CONNECT:{here}"])
    try:
        code, job = rehearse(shared, programs, DOCKER_HOST=f"tcp://127.0.0.1:{port}")
        assert (code, facts(job)["ended"]) == (0, "done")
    finally:
        tunnel.terminate()
        tunnel.wait()


ALONE = """
orch:
  - name: ask
    expect: ["write the file"]
    do:
      - send: {mention: [worker-1], text: "please write it"}
  - name: finish
    expect: ["REPORT"]
    do:
      - done: "DONE: written"
worker-1:
  - name: write
    expect: ["please write it"]
    do:
      - run: "[ $(ls /sys/class/net) = lo ] && echo done > result.txt"
  - name: report
    on: result
    do:
      - send: {mention: [orch], text: "REPORT written"}
"""


def test_a_team_works_in_a_container_that_has_no_network(
    shared: DockerInstallation, task_image: str, programs: Path, tmp_path: Path
) -> None:
    """Relay and gateway are sockets there. Harbor's own way to no network wants an image that can't be had here."""
    compose = "services:\n  main:\n    network_mode: none\n"
    dockerfile = f"FROM {task_image}\nWORKDIR /app\n"
    tasks.write(tmp_path / "tasks", "alone", dockerfile=dockerfile, compose=compose, script=ALONE)
    code, job, said = shared.rehearse_in_docker(
        *("--manifest", str(TEAM), "-k", "1"), path=tmp_path / "tasks", BUZZBENCH_AGENT_PROGRAMS=str(programs)
    )
    assert code == 0, said
    found = facts(job)
    assert (found["ended"], found["labels"]) == ("done", [])
    assert [*door_dir(shared.state_dir).iterdir()] == []


def test_a_build_that_fails_costs_no_data(shared: DockerInstallation, tmp_path: Path) -> None:
    """`--fresh` drops them once the agents' programs are there."""
    assert shared.inv("up").returncode == 0
    found = address(shared.state_dir)
    assert found
    with psycopg.connect(found.dsn) as connection:
        connection.execute("CREATE TABLE remembered ()")
    team = ("--path", str(DATASET), "-i", "split-and-merge", "--manifest", str(TEAM))
    done = shared.inv(
        *("bench", *team, "--rehearsal", "-e", "docker", "--stack", "embedded", "--fresh"),
        BUZZBENCH_BUZZ_SOURCE=str(workspace.make(tmp_path / "buzz")),
        BUZZBENCH_XBUILD_IMAGE="localhost:1/none",
    )
    assert done.returncode == 3
    assert "inv: xbuild: the image localhost:1/none for linux/" in done.stderr
    with psycopg.connect(found.dsn) as connection:
        assert connection.execute("SELECT to_regclass('remembered')").fetchone() != (None,)


def test_nothing_is_left_in_the_engine(shared: DockerInstallation) -> None:
    assert docker("ps", "--all", "--quiet", "--filter", f"label=buzzbench.state={shared.state_dir}") == ""
