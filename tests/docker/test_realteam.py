"""Trials of real agents in containers: programs mounted, a forwarder inside, relay and gateway on the host."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from bench import costs, records
from bench.docker import marks
from bench.docker.engine import inspect
from bench.places import door_dir
from bench.settings import ROOT
from bench.stack import address
from bench.xbuild import forwarder
from tests.docker import tasks
from tests.docker.images import docker
from tests.docker.installation import DockerInstallation
from tests.pipeline import DATASET, wait_until
from tests.ports import free_port
from tests.standins.programs import make
from tests.xbuild import workspace

pytestmark = [pytest.mark.docker, pytest.mark.timeout(180)]

TEAM = ROOT / "manifests" / "tb-cobol-sonnet-haiku.yaml"


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if given := os.environ.get("BUZZBENCH_REAL_PROGRAMS"):
        return Path(given)
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


def test_a_team_of_real_agents_plays_a_task_in_steps_and_is_halted_between_them(
    shared: DockerInstallation, task_image: str, programs: Path
) -> None:
    code, job = rehearse(shared, programs, "-i", "change-asked-later", "-x", "split-and-merge")
    (trial,) = job["trials"]
    assert (code, trial["outcome"], trial["labels"]) == (0, "passed", []), trial
    assert [step["outcome"] for step in trial["steps"]] == ["passed", "passed"]
    for step, turns in (("draft", 1), ("change", 2)):
        (log,) = Path(job["directory"]).glob(f"*/steps/{step}/agent/worker-2/buzz-acp.log")
        assert log.read_text().count("turn starting") == turns


@pytest.fixture
def elsewhere() -> Iterator[str]:
    """A tunnel to the same engine stands for one elsewhere: it has no path of ours, as far as we know."""
    if shutil.which("socat") is None:
        subprocess.run(["apt-get", "install", "-y", "-qq", "socat"], check=True, capture_output=True)
    port = free_port()
    here = os.environ["DOCKER_HOST"].removeprefix("unix://")
    tunnel = subprocess.Popen(["socat", f"TCP-LISTEN:{port},bind=127.0.0.1,fork,reuseaddr", f"UNIX-CONNECT:{here}"])
    yield f"tcp://127.0.0.1:{port}"
    tunnel.terminate()
    tunnel.wait()


def test_where_the_engine_is_not_local_the_programs_are_uploaded(
    shared: DockerInstallation, task_image: str, programs: Path, elsewhere: str
) -> None:
    code, job = rehearse(shared, programs, DOCKER_HOST=elsewhere)
    assert (code, facts(job)["ended"]) == (0, "done")


def test_a_team_of_real_agents_works_on_the_production_stack(
    project: DockerInstallation, task_image: str, programs: Path
) -> None:
    """The relay is in a container of its own there, published on this host."""
    code, job = rehearse(project, programs, "--stack", "compose", **project.with_stack)
    found = facts(job)
    assert (code, job["stack"], found["ended"], found["labels"]) == (0, "compose", "done", [])


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


def test_what_a_container_lacks_is_not_the_failure_of_real_agents(
    shared: DockerInstallation, task_image: str, programs: Path, tmp_path: Path
) -> None:
    """They are asked for only when the agents don't start: the same cause is named as for those on the host."""
    dockerfile = f"FROM {task_image}\nWORKDIR /app\n"
    read_only = "services:\n  main:\n    read_only: true\n"
    tasks.write(tmp_path / "tasks", "no-bash", dockerfile=f"{dockerfile}RUN rm /usr/bin/bash\n", script=ALONE)
    tasks.write(tmp_path / "tasks", "read-only", dockerfile=dockerfile, compose=read_only, script=ALONE)
    code, job, said = shared.rehearse_in_docker(
        *("--manifest", str(TEAM), "-k", "1"), path=tmp_path / "tasks", BUZZBENCH_AGENT_PROGRAMS=str(programs)
    )
    assert code == 1, said
    reasons = {trial["task"].removeprefix("faults/"): trial["reason"] for trial in job["trials"]}
    unusable = "environment_unusable: no work can be done in it"
    assert {name: reason[: len(unusable)] for name, reason in reasons.items()} == dict.fromkeys(reasons, unusable)
    assert '"bash": executable file not found' in reasons["no-bash"]
    assert "Read-only file system" in reasons["read-only"]


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


def test_agents_that_are_not_root_reach_the_sockets_too(
    shared: DockerInstallation, task_image: str, programs: Path, tmp_path: Path
) -> None:
    dockerfile = f"FROM {task_image}\nRUN useradd --create-home dev && mkdir /app && chown dev /app\nWORKDIR /app\n"
    script = ALONE.replace('"[ $(ls /sys/class/net) = lo ]', '"[ $(id -un) = dev ]')
    task = tasks.write(tmp_path / "tasks", "as-dev", dockerfile=dockerfile, script=script)
    told = (task / "task.toml").read_text()
    (task / "task.toml").write_text(told.replace("[agent]\n", '[agent]\nuser = "dev"\n'))
    code, job, said = shared.rehearse_in_docker(
        *("--manifest", str(TEAM), "-k", "1"), path=tmp_path / "tasks", BUZZBENCH_AGENT_PROGRAMS=str(programs)
    )
    assert code == 0, said
    assert (facts(job)["ended"], facts(job)["labels"]) == ("done", [])


WAITING = """
orch:
  - name: work
    expect: ["write the file"]
    do:
      - run: "touch /app/started; until test -e /app/go; do sleep 0.1; done; echo done > result.txt"
  - name: finish
    on: result
    do:
      - done: "DONE: written"
"""
"""A script whose command shows that it runs, and goes on when it is let."""


def waiting_run(
    installation: DockerInstallation, programs: Path, folder: Path, task_image: str, job: str, **variables: str
) -> tuple[subprocess.Popen[str], str]:
    """A run of real agents whose orchestrator waits to be let go, and its container."""
    tasks.write(folder, "waiting", dockerfile=f"FROM {task_image}\nWORKDIR /app\n", script=WAITING)
    words = ["bench", "--path", str(folder), "--rehearsal", "-e", "docker", "-k", "1", "--job-name", job]
    run = subprocess.Popen(
        [sys.executable, "-m", "invoke", *words, "--manifest", str(TEAM)],
        cwd=ROOT,
        env=installation.environment | {"BUZZBENCH_AGENT_PROGRAMS": str(programs)} | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    mark = f"label=buzzbench.state={installation.state_dir}"
    wait_until(lambda: _does(_container(mark), "test -e /app/started"))
    return run, _container(mark)


def _container(mark: str) -> str:
    return docker("ps", "--quiet", "--filter", mark, "--filter", "label=buzzbench.process").strip()


def _does(container: str, command: str) -> bool:
    if not container:
        return False
    done = subprocess.run(["docker", "exec", container, "sh", "-c", command], capture_output=True, check=False)
    return done.returncode == 0


def _cut_off(container: str) -> None:
    """Take the container's network away."""
    (found,) = inspect("container", [container])
    for network in found["NetworkSettings"]["Networks"]:
        docker("network", "disconnect", "--force", network, container)


def test_a_container_that_loses_its_network_goes_on_by_its_sockets(
    shared: DockerInstallation, task_image: str, programs: Path, tmp_path: Path
) -> None:
    run, container = waiting_run(shared, programs, tmp_path / "tasks", task_image, "cut-off")
    _cut_off(container)
    assert _does(container, "touch /app/go")
    said, _ = run.communicate(timeout=100)
    assert run.returncode == 0, said
    found = facts({"directory": str(shared.jobs_dir / "cut-off")})
    assert (found["ended"], found["labels"]) == ("done", [])


def test_a_container_that_loses_the_only_way_to_the_relay_is_a_lost_environment(
    shared: DockerInstallation, task_image: str, programs: Path, tmp_path: Path, elsewhere: str
) -> None:
    run, container = waiting_run(shared, programs, tmp_path / "tasks", task_image, "cut-off-far", DOCKER_HOST=elsewhere)
    _cut_off(container)
    said, _ = run.communicate(timeout=150)
    assert run.returncode == 0, said
    found = facts({"directory": str(shared.jobs_dir / "cut-off-far")})
    assert (found["ended"], found["labels"]) == ("environment_lost", ["environment_lost"])
    assert found["reason"] == "the relay can't be reached from the environment any more: its network is gone"
    (trial,) = records.read_job(shared.jobs_dir / "cut-off-far").trials
    assert (trial.outcome.outcome, trial.spend.calls) == ("failed", 1)


def test_after_a_kill_of_the_run_the_team_can_call_no_model(
    shared: DockerInstallation, task_image: str, programs: Path, tmp_path: Path
) -> None:
    run, container = waiting_run(shared, programs, tmp_path / "tasks", task_image, "killed")
    receipts = shared.jobs_dir / "killed" / records.RECEIPTS
    (held,) = inspect("container", [container])
    owner = marks.Owner.parse(held["Config"]["Labels"][marks.PROCESS])
    assert owner
    os.kill(owner.process.pid, signal.SIGKILL)
    run.kill()
    run.communicate(timeout=30)
    before = costs.calls_of(receipts, [])
    assert _does(container, "touch /app/go")
    # The command ends, its agent asks the model what to do next, can't reach it, and says so in one of its logs.
    failed = "grep -qs -e 'llm call failed' -e 'session_prompt error'"
    wait_until(lambda: _does(container, f"{failed} /logs/agent/orch/buzz-agent.log /logs/agent/orch/buzz-acp.log"))
    assert costs.calls_of(receipts, []) == before
    assert len(before) == 1
    done = shared.inv("down")
    assert "removing what a killed run left: waiting__" in done.stderr
    assert docker("ps", "--all", "--quiet", "--filter", f"id={container}") == ""


def test_nothing_is_left_in_the_engine(shared: DockerInstallation) -> None:
    assert docker("ps", "--all", "--quiet", "--filter", f"label=buzzbench.state={shared.state_dir}") == ""
