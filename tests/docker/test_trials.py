"""Trials in containers: whole rehearsals, what a container can lack, engines that go away, and runs that are killed."""

from __future__ import annotations

import io
import itertools
import json
import os
import platform
import random
import signal
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench import records
from bench.docker import marks
from bench.docker.engine import inspect
from bench.processes import ProcessId, identify
from bench.run import leftovers
from bench.settings import ROOT
from tests.docker import images, tasks
from tests.docker.cutoff import Door
from tests.docker.images import docker
from tests.docker.installation import DockerInstallation, projects, room
from tests.pipeline import wait_until

pytestmark = [pytest.mark.docker, pytest.mark.timeout(180)]

STARTED = "touch /app/started; sleep 4"
WORKING = tasks.SCRIPT.replace("echo done > result.txt", f"{STARTED}; echo done > result.txt")
"""A script whose command shows that it runs, and takes long enough for something to happen meanwhile."""


@pytest.fixture(scope="module")
def plain(docker_engine: None) -> str:
    return f"FROM {images.base()}\nWORKDIR /app\n"


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="bzb-tasks-") as home:
        yield Path(home)


def rehearsal(folder: Path, *more: str) -> list[str]:
    """The command line of one attempt in containers."""
    return ["bench", "--path", str(folder), "--rehearsal", "-e", "docker", "-k", "1", *more]


def outcomes(job: Path) -> dict[str, str]:
    """Each task's outcome and its reason."""
    return {
        trial.task.removeprefix("faults/"): f"{trial.outcome.outcome}: {trial.outcome.reason}"
        for trial in records.read_job(job).trials
    }


def own_containers(installation: DockerInstallation) -> list[str]:
    """The ids of the containers of its trials."""
    return docker("ps", "--all", "--quiet", "--filter", f"label={marks.PROCESS}",
                  "--filter", f"label={marks.STATE}={installation.state_dir}").split()  # fmt: skip


def works(installation: DockerInstallation) -> Callable[[], bool]:
    """Whether a trial's agent has its command running."""

    def check() -> bool:
        found = own_containers(installation)
        if not found:
            return False
        done = subprocess.run(
            ["docker", "exec", found[0], "test", "-e", "/app/started"], capture_output=True, check=False
        )
        return done.returncode == 0

    return check


def images_of(job: Path) -> list[str]:
    """The images that a job's trials are made from, as far as they are still there."""
    trials = [marks.project_name(path.parent.name) for path in job.glob("*/config.json")]
    return [
        name for name in docker("image", "ls", "--format", "{{.Repository}}").split() if name.startswith(tuple(trials))
    ]


def starts(job: Path) -> list[tuple[str, str]]:
    """When each trial's environment began to start and was there, in order."""
    results = [json.loads(path.read_text(encoding="utf-8")) for path in job.glob("*/result.json")]
    phases = [result["environment_setup"] for result in results]
    return sorted((phase["started_at"], phase["finished_at"]) for phase in phases)


def overlapping(spans: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [later for earlier, later in itertools.pairwise(spans) if later[0] < earlier[1]]


def test_a_rehearsal_passes_in_containers_and_leaves_nothing(shared: DockerInstallation, task_image: str) -> None:
    code, job, said = shared.rehearse_in_docker(
        *("-i", "split-and-merge", "-k", "3", "-n", "3", "--job-name", "whole"), BUZZBENCH_DOCKER_STARTS="1"
    )
    assert (code, job["counts"]["passed"]) == (0, 3), said
    directory = Path(job["directory"])
    assert overlapping(starts(directory)) == []
    assert own_containers(shared) == []
    assert images_of(directory) == []
    assert (
        projects() & {marks.project_name(f"{path.parent.name}__env") for path in directory.glob("*/config.json")}
        == set()
    )
    assert str(ROOT / "compose" / "trial.yaml") in (directory / "config.json").read_text()


def test_what_a_container_lacks_is_not_the_teams_failure(
    shared: DockerInstallation, folder: Path, plain: str, foreign_image: str
) -> None:
    base = images.base()
    tasks.write(folder, "no-bash", dockerfile=f"{plain}RUN rm /usr/bin/bash\n")
    tasks.write(folder, "read-only", dockerfile=plain, compose="services:\n  main:\n    read_only: true\n")
    tasks.write(folder, "no-workdir", environment=f'docker_image = "{base}"\nworkdir = "/nowhere"')
    tasks.write(folder, "foreign", environment=f'docker_image = "{foreign_image}"')
    tasks.write(folder, "not-to-be-had", environment='docker_image = "localhost:1/nobody/none:1"')
    helper = f"services:\n  helper:\n    image: {base}\n    command: ['sleep', 'infinity']\n    stop_grace_period: 0s\n"
    script = tasks.SCRIPT.replace("echo done", "getent hosts helper > /dev/null && echo done")
    tasks.write(folder, "with-service", dockerfile=plain, compose=helper, script=script)
    code, job, said = shared.rehearse_in_docker("-k", "1", path=folder)
    assert code == 1, said
    found = outcomes(Path(job["directory"]))
    assert found.pop("with-service") == "passed: "
    unusable = "unscored: environment_unusable: no work can be done in it"
    assert found.pop("foreign").startswith("unscored: never started: ")
    assert "localhost:1" in found.pop("not-to-be-had")
    assert images.exists(foreign_image), "what the run did not make is not the run's to remove"
    assert {name: reason[: len(unusable)] for name, reason in found.items()} == dict.fromkeys(
        ("no-bash", "read-only", "no-workdir"), unusable
    )
    assert '"bash": executable file not found' in found["no-bash"]
    assert "Read-only file system" in found["read-only"]
    assert '"/nowhere"' in found["no-workdir"]
    assert own_containers(shared) == []


@pytest.fixture(scope="module")
def foreign_image(docker_engine: None) -> Iterator[str]:
    """An image whose shell is a program of another processor: ELF's machine (bytes 18 and 19) is AArch64's 183."""
    program = bytearray(Path("/bin/true").resolve().read_bytes())
    program[18:20] = (183).to_bytes(2, "little")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name in ("bin/sh", "bin/bash"):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(program), 0o755
            tar.addfile(entry, io.BytesIO(program))
    name = f"{images.REPOSITORY}/foreign:1"
    subprocess.run(["docker", "import", "-", name], input=packed.getvalue(), capture_output=True, check=True)
    yield name
    docker("image", "rm", name)


@pytest.mark.parametrize("by", ["down", "bench"])
def test_what_a_killed_run_left_is_found_and_removed(
    shared: DockerInstallation, folder: Path, plain: str, by: str
) -> None:
    tasks.write(folder, "killed", dockerfile=plain, script=WORKING)
    job = f"killed-before-{by}"
    run = shared.start(*rehearsal(folder, "--job-name", job))
    wait_until(works(shared))
    (container,) = inspect("container", own_containers(shared))
    assert container["Config"]["StopTimeout"] == 0, "its first process takes no signal: each trial would wait"
    owner = marks.Owner.parse(container["Config"]["Labels"][marks.PROCESS])
    assert owner
    assert leftovers.find(shared.state_dir) == []
    assert not owner.is_gone
    # Both at once: the child would tidy up if its parent alone were killed.
    os.kill(owner.process.pid, signal.SIGKILL)
    os.kill(run.pid, signal.SIGKILL)
    run.communicate(timeout=30)
    wait_until(lambda: owner.is_gone)
    (left,) = leftovers.find(shared.state_dir)
    assert (len(left.containers), len(left.networks), len(left.images)) == (1, 1, 1)
    tasks.write(folder, "next", dockerfile=plain)
    command = (
        ["down"]
        if by == "down"
        else ["bench", "--path", str(folder), "-i", "next", "--rehearsal", "-e", "docker", "-k", "1"]
    )
    done = shared.inv(*command)
    assert done.returncode == 0, done.stderr
    assert f"removing what a killed run left: {left.project}: 1 container, 1 network, 1 image\n" in done.stderr
    assert leftovers.find(shared.state_dir) == []
    assert own_containers(shared) == []
    assert images_of(shared.jobs_dir / job) == []


def test_a_network_without_its_containers_and_its_journal_is_found_by_its_label(shared: DockerInstallation) -> None:
    """Those of a process that lives, and those of another installation, stay (public case 41)."""
    gone = marks.Owner(platform.node(), ProcessId(2**22 - 1, "1"))
    me = identify(os.getpid())
    assert me
    alive = marks.Owner(platform.node(), me)
    owners = {"left": (shared.state_dir, gone), "used": (shared.state_dir, alive), "foreign": (Path("/other"), gone)}
    names = {word: f"{shared.home.name}-{word}" for word in owners}
    for word, (state, owner) in owners.items():
        labels = {marks.PROJECT: names[word], marks.STATE: str(state), marks.PROCESS: str(owner)}
        docker("network", "create", *(f"--label={key}={value}" for key, value in labels.items()), names[word])
    try:
        done = shared.inv("down")
        assert f"removing what a killed run left: {names['left']}: 1 network\n" in done.stderr
        assert done.stderr.count("removing") == 1
        assert set(docker("network", "ls", "--format", "{{.Name}}").split()) & set(names.values()) == {
            names["used"],
            names["foreign"],
        }
    finally:
        docker("network", "rm", names["used"], names["foreign"])


def test_after_a_kill_of_the_parent_alone_the_child_tidies_up(
    shared: DockerInstallation, folder: Path, plain: str
) -> None:
    tasks.write(folder, "orphaned", dockerfile=plain, script=WORKING)
    run = shared.start(
        "bench", "--path", str(folder), "--rehearsal", "-e", "docker", "-k", "1", "--job-name", "orphaned"
    )
    wait_until(works(shared))
    run.kill()
    run.communicate(timeout=30)
    wait_until(lambda: not own_containers(shared))
    wait_until(lambda: not images_of(shared.jobs_dir / "orphaned"))


def test_an_engine_that_goes_away_leaves_no_score(
    shared: DockerInstallation, folder: Path, plain: str, tmp_path: Path
) -> None:
    again = tasks.SCRIPT.replace(
        "  - name: finish", '  - name: again\n    on: result\n    do:\n      - run: "true"\n  - name: finish'
    )
    tasks.write(folder, "cut-off", dockerfile=plain, script=again.replace("echo done > result.txt", STARTED))
    door = Door(tmp_path / "docker.sock")
    run = subprocess.Popen(
        [sys.executable, "-m", "invoke", *rehearsal(folder, "--job-name", "cut-off")],
        cwd=ROOT,
        env=shared.environment | {"DOCKER_HOST": door.host},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(works(shared))
    door.shut()
    said, _ = run.communicate(timeout=100)
    assert run.returncode == 1, said
    assert outcomes(shared.jobs_dir / "cut-off")["cut-off"].startswith(
        "unscored: engine_gone: the Docker engine does not answer"
    )
    done = shared.inv("down")
    assert "removing what a killed run left: cut-off__" in done.stderr
    assert own_containers(shared) == []


def test_a_container_that_is_removed_from_outside_leaves_no_score(
    shared: DockerInstallation, folder: Path, plain: str
) -> None:
    tasks.write(folder, "removed", dockerfile=plain, script=WORKING)
    run = shared.start(
        "bench", "--path", str(folder), "--rehearsal", "-e", "docker", "-k", "1", "--job-name", "removed"
    )
    wait_until(works(shared))
    docker("rm", "--force", *own_containers(shared))
    said, _ = run.communicate(timeout=100)
    assert run.returncode == 1, said
    assert outcomes(shared.jobs_dir / "removed") == {"removed": "unscored: container_gone: it was removed from outside"}


def test_a_relay_whose_container_is_restarted_mid_turn_is_survived(
    project: DockerInstallation, folder: Path, plain: str
) -> None:
    tasks.write(folder, "restarted", dockerfile=plain, script=WORKING)
    up = project.inv("up", "--stack", "compose", **project.with_stack)
    assert up.returncode == 0, up.stderr
    project.more.update(project.with_stack)
    run = project.start(*rehearsal(folder, "--stack", "compose"))
    wait_until(works(project))
    docker("restart", "--time", "1", f"{project.compose_project}-relay-1")
    _, errors = run.communicate(timeout=100)
    assert run.returncode == 0, errors
    (job,) = project.jobs_dir.iterdir()
    (trial,) = records.read_job(job).trials
    assert (trial.outcome.outcome, trial.outcome.labels) == ("passed", ("relay_restarted",))
    assert records.read_plan(job).stack == "compose"


def test_a_database_whose_disk_is_full_leaves_no_score_and_the_job_goes_on_later(
    project: DockerInstallation, folder: Path, plain: str
) -> None:
    long = random.Random(1).randbytes(20_000).hex()  # so that it fits into no page that the database has already
    script = WORKING.replace("DONE: written", f"DONE: {long}")
    tasks.write(folder, "full", dockerfile=plain, script=script)
    project.more.update(project.with_stack)
    project.database_volume(*room(150), state=str(project.state_dir))
    up = project.inv("up", "--stack", "compose")
    assert up.returncode == 0, up.stderr
    run = project.start(*rehearsal(folder, "--stack", "compose", "--job-name", "full"))
    wait_until(works(project))
    database = f"{project.home.name}-postgres-1"
    filled = "/var/lib/postgresql/data/filled"
    docker("exec", database, "sh", "-c", f"dd if=/dev/zero of={filled} bs=64k 2> /dev/null || true")
    said, errors = run.communicate(timeout=100)
    assert run.returncode == 1, said + errors
    assert outcomes(project.jobs_dir / "full")["full"].startswith("unscored: relay_gone: the relay could store nothing")
    docker("exec", database, "rm", filled)
    done = project.inv("bench", "--resume", str(project.jobs_dir / "full"))
    assert done.returncode == 0, done.stderr
    assert outcomes(project.jobs_dir / "full") == {"full": "passed: "}
