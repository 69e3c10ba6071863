"""The compose stack on a real engine, with our relay for Buzz's: whole, healed, and never more than its own."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from bench import keys, logs
from bench.docker import engine
from bench.errors import BuzzbenchError, InvalidInput, MachineLacks
from bench.stack import StackAddress, address, compose, kinds
from bench.stack.containers import containers
from bench.stack.jobs import hold
from bench.stack.project import kept, own_name
from tests.docker import images
from tests.docker.images import docker
from tests.docker.installation import DockerInstallation, projects, room
from tests.pipeline import wait_until

pytestmark = [pytest.mark.docker, pytest.mark.timeout(180)]


def up(installation: DockerInstallation, *, fresh: bool = False) -> StackAddress:
    settings = installation.settings
    return kinds.up(settings, keys.ensure(settings.state_dir), "compose", fresh=fresh)


def ids(installation: DockerInstallation) -> dict[str, str]:
    return {name: container.id for name, container in containers(installation.compose_project).items()}


def volumes(project: str) -> set[str]:
    return set(docker("volume", "ls", "--quiet", "--filter", f"label=com.docker.compose.project={project}").split())


def remember(found: StackAddress) -> None:
    with psycopg.connect(found.dsn) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS remembered ()")


def remembers(found: StackAddress) -> bool:
    with psycopg.connect(found.dsn) as connection:
        return connection.execute("SELECT to_regclass('remembered')").fetchone() != (None,)


@pytest.fixture
def running(shared: DockerInstallation) -> DockerInstallation:
    """The module's installation with its stack up: a test may hurt it, the next one finds it healed."""
    up(shared)
    return shared


def test_up_from_nothing_gives_a_working_stack_and_again_changes_nothing(running: DockerInstallation) -> None:
    found = address(running.state_dir)
    assert found
    assert (found.kind, found.relay_url) == ("compose", f"ws://localhost:{running.port}")
    assert {s.name: s.state for s in compose.status(running.settings).services} == dict.fromkeys(
        ("postgres", "redis", "minio", "relay", "gateway"), "running"
    )
    before = ids(running)
    assert set(before) == {"postgres", "redis", "minio", "minio-init", "relay"}
    assert up(running) == found
    assert ids(running) == before
    with psycopg.connect(found.dsn) as connection:
        assert str(connection.info.server_version).startswith("17")


def test_only_loopback_and_bridge_addresses_are_published(running: DockerInstallation) -> None:
    known = kept(running.state_dir)
    assert known
    addresses = set()
    for raw in engine.inspect("container", list(ids(running).values())):
        for bound in raw["NetworkSettings"]["Ports"].values():
            addresses |= {binding["HostIp"] for binding in bound or []}
    assert addresses == {"127.0.0.1", known.bridge}


def test_relay_and_gateway_are_reached_from_a_container(running: DockerInstallation) -> None:
    found = address(running.state_dir)
    assert found
    gateway = found.gateway_url.replace("127.0.0.1", "host.docker.internal")
    # Another network than the stack's, as a trial's is.
    network = f"{running.home.name}-trial"
    docker("network", "create", network)
    try:
        reached = docker(
            "run", "--rm", "--add-host", "host.docker.internal:host-gateway", "--network", network,
            images.base(), "bash", "-c",
            f"curl -fsS http://host.docker.internal:{running.port}/_readiness && curl -fsS {gateway}/healthz",
        )  # fmt: skip
    finally:
        docker("network", "rm", network)
    assert "ready" in reached
    assert '{"ok": true}' in reached


def test_the_schema_is_applied_to_it_and_the_kind_stays(running: DockerInstallation) -> None:
    before = ids(running)
    done = running.inv("schema", **running.with_stack)
    assert done.returncode == 0, done.stderr
    assert ids(running) == before
    assert address(running.state_dir).kind == "compose"  # type: ignore[union-attr]


def test_logs_shows_each_services_last_lines(running: DockerInstallation) -> None:
    done = running.inv("logs", "--lines", "5")
    assert done.returncode == 0, done.stderr
    assert "relay-1" in done.stdout
    assert "serving on 127.0.0.1" in done.stdout
    assert "relay-1" not in running.inv("logs", "--service", "postgres").stdout
    with pytest.raises(InvalidInput, match="there is no 'mysql' in this stack; it has postgres, redis, minio, relay"):
        logs.logs(running.settings, "mysql", lines=1, follow=False)


def test_a_service_that_was_stopped_is_started_again(running: DockerInstallation) -> None:
    before = ids(running)
    docker("kill", before["postgres"], before["relay"])
    up(running)
    assert ids(running) == before


def test_down_and_fresh_refuse_while_a_job_runs(running: DockerInstallation) -> None:
    with hold(running.state_dir / "run" / "busy"):
        with pytest.raises(BuzzbenchError, match="inv down: job busy uses the stack"):
            kinds.down(running.settings)
        with pytest.raises(BuzzbenchError, match="--fresh: job busy uses the stack"):
            up(running, fresh=True)
    assert all(c.status == "running" for c in containers(running.compose_project).values() if c.service != "minio-init")


def test_data_outlive_down_and_not_fresh(running: DockerInstallation) -> None:
    remember(up(running))
    assert kinds.down(running.settings)
    assert ids(running) == {}
    assert volumes(running.compose_project)
    assert address(running.state_dir) is None
    assert not kinds.down(running.settings)
    assert remembers(up(running))
    assert not remembers(up(running, fresh=True))


def test_the_other_kind_takes_its_place(running: DockerInstallation) -> None:
    embedded = kinds.up(running.settings, keys.ensure(running.state_dir), "embedded")
    assert embedded.kind == "embedded"
    assert ids(running) == {}
    done = running.inv("down", DOCKER_HOST="unix:///nowhere/docker.sock")
    assert (done.returncode, done.stderr) == (0, "stack is down\n")
    assert up(running).kind == "compose"
    assert kinds.status(running.settings).services[0].port == running.postgres_port


def test_a_second_checkout_has_a_project_of_its_own(running: DockerInstallation, project: DockerInstallation) -> None:
    remember(up(running))
    up(project, fresh=True)
    assert project.compose_project != running.compose_project
    kinds.down(project.settings)
    assert remembers(up(running))


def test_data_of_other_keys_are_dropped_once_where_they_are_ours(
    running: DockerInstallation, capsys: pytest.CaptureFixture[str]
) -> None:
    remember(up(running))
    kinds.down(running.settings)
    (running.state_dir / "state.json").unlink()
    capsys.readouterr()
    assert not remembers(up(running))
    assert "was made with another password: its data are dropped and made anew" in capsys.readouterr().err


def test_data_that_are_nobodys_and_of_another_password_are_dropped_too(
    project: DockerInstallation, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the reference tool leaves them: without a label."""
    volume = project.database_volume()
    others = [f"--env=POSTGRES_{name}=another" for name in ("DB", "USER", "PASSWORD")]
    place = ["--env=PGDATA=/var/lib/postgresql/data/pgdata", f"--volume={volume}:/var/lib/postgresql/data"]
    before = docker("run", "--detach", "--rm", *others, *place, images.of("postgres"))
    wait_until(lambda: "accepting" in said_in(before, "pg_isready", "--host", "127.0.0.1"))
    docker("stop", before)
    found = up(project)
    assert "was made with another password: its data are dropped and made anew" in capsys.readouterr().err
    assert not remembers(found)


def said_in(container: str, *command: str) -> str:
    """What a command says in the container, however it ends."""
    return subprocess.run(["docker", "exec", container, *command], capture_output=True, text=True, check=False).stdout


def test_a_volume_that_is_full_is_told_in_the_databases_own_words(project: DockerInstallation) -> None:
    project.database_volume(*room(20), state=str(project.state_dir))
    with pytest.raises(BuzzbenchError, match=r"the service postgres ended with status 1[\s\S]*No space left on device"):
        up(project)
    assert project.processes() == []
    assert all(c.status != "running" for c in containers(project.compose_project).values())


def test_data_of_another_checkout_are_never_dropped(project: DockerInstallation) -> None:
    name = project.home.name
    volume = project.database_volume(state="/home/other/.benchmark")
    try:
        done = project.inv("up", "--stack", "compose", "--fresh", **project.with_stack)
        assert done.returncode == 3
        assert (
            f"inv: the Compose project {name}: its data are those of /home/other/.benchmark; use that one, or set "
            f"BUZZBENCH_COMPOSE_PROJECT={own_name(project.state_dir)}\n"
        ) in done.stderr
        assert volumes(name) == {volume}
    finally:
        docker("volume", "rm", volume)


def test_a_taken_port_is_named_with_its_holder(project: DockerInstallation) -> None:
    with socket.create_server(("127.0.0.1", project.postgres_port)), pytest.raises(MachineLacks) as raised:
        up(project)
    (problem,) = raised.value.problems
    assert problem.where == f"port {project.postgres_port} of postgres"
    assert problem.what.startswith(f"process {os.getpid()} (")
    assert problem.fix == "stop it, or set BUZZBENCH_POSTGRES_PORT to a free port"
    assert projects(f"label=buzzbench.state={project.state_dir}") == set()


def test_a_port_that_a_container_holds_is_named_by_it(project: DockerInstallation) -> None:
    name = f"{project.home.name}-holder"
    publish = f"127.0.0.1:{project.metrics_port}:80"
    docker("run", "--detach", "--rm", "--name", name, "--publish", publish, images.base(), "sleep", "60")
    try:
        with pytest.raises(MachineLacks, match=f"the container {name} holds it"):
            up(project)
    finally:
        docker("kill", name)


def test_an_image_that_cannot_be_pulled_is_named_with_its_setting(project: DockerInstallation) -> None:
    image = "localhost:1/nobody/buzz:1"
    done = project.inv("up", "--stack", "compose", **{**project.with_stack, "BUZZ_IMAGE": image})
    assert done.returncode == 3
    assert f"inv: the image {image} of relay: it can't be pulled: " in done.stderr
    assert "or set BUZZ_IMAGE to an image that is here" in done.stderr
    assert project.processes() == []


def test_a_service_that_fails_is_shown_with_its_last_lines(project: DockerInstallation) -> None:
    done = project.inv("up", "--stack", "compose", **{**project.with_stack, "BUZZ_IMAGE": images.of("mc")})
    assert done.returncode == 1
    assert "the service relay ended with status 1, " in done.stderr
    assert "  mc: not known here: []" in done.stderr
    assert project.processes() == []
    assert all(c.status != "running" for c in containers(project.compose_project).values())


def test_a_relay_that_says_it_is_ready_and_is_not_is_found_out(
    project: DockerInstallation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.stack.bringup.HEALTHY_S", 1.0)
    settings = replace(project.settings, buzz_image=images.of("hollow"))
    with pytest.raises(BuzzbenchError, match="the relay answered 404 to POST /events"):
        kinds.up(settings, keys.ensure(project.state_dir), "compose")
    assert address(project.state_dir) is None
    assert all(c.status != "running" for c in containers(project.compose_project).values())


def test_storage_that_refuses_the_keys_is_asked_once(project: DockerInstallation, tmp_path: Path) -> None:
    """Where it isn't ready yet it is asked again: the stand-in's first two answers are 503."""
    (tmp_path / "deploy" / "compose").mkdir(parents=True)
    refused = _production(project).replace(
        "      SECRET_KEY: ${BUZZ_S3_SECRET_KEY:?run `inv env`}", "      SECRET_KEY: wrong"
    )
    (tmp_path / "deploy" / "compose" / "compose.yml").write_text(refused)
    done = project.inv("up", "--stack", "compose", BUZZBENCH_BUZZ_SOURCE=str(tmp_path), **project.with_stack)
    assert done.returncode == 1
    assert "the service minio-init ended with status 1; its last lines:\n" in done.stderr
    assert done.stderr.count("was not made: HTTP Error 403: Forbidden") == 1


def test_no_engine_is_one_line(project: DockerInstallation) -> None:
    done = project.inv("up", "--stack", "compose", DOCKER_HOST="unix:///nowhere/docker.sock")
    assert done.returncode == 3
    assert "inv: --stack compose: the Docker engine does not answer: " in done.stderr
    assert "start Docker, or set DOCKER_HOST to an engine that runs" in done.stderr


def test_without_its_engine_a_stack_is_left_as_it_is(running: DockerInstallation) -> None:
    found = address(running.state_dir)
    for command in (["status"], ["down"], ["up", "--stack", "compose", "--fresh"]):
        done = running.inv(*command, DOCKER_HOST="unix:///nowhere/docker.sock", **running.with_stack)
        assert done.returncode != 0
        (line,) = [line for line in done.stderr.splitlines() if line.startswith("inv: ")]
        assert "annot connect to the Docker daemon" in line or "does not answer" in line
    assert "relay-1" in running.inv("logs").stdout
    assert address(running.state_dir) == found
    assert up(running) == found


def test_no_plugin_and_an_old_one_are_one_line(project: DockerInstallation, tmp_path: Path) -> None:
    real = subprocess.run(["which", "docker"], capture_output=True, text=True, check=True).stdout.strip()
    path = f"{tmp_path}:{os.environ['PATH']}"
    for answer, expected in (
        ("exit 1", "--stack compose: there is no `docker compose`; install Docker's Compose plugin"),
        ("echo 2.19.1", "--stack compose: Compose is 2.19.1, and 2.20 is the oldest that will do; renew it"),
    ):
        script = tmp_path / "docker"
        script.write_text(f'#!/bin/sh\nif [ "$1" = compose ]; then {answer}; else exec {real} "$@"; fi\n')
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        done = project.inv("up", "--stack", "compose", PATH=path)
        assert (done.returncode, expected in done.stderr) == (3, True), done.stderr


def test_a_checkouts_own_production_file_is_used(project: DockerInstallation, tmp_path: Path) -> None:
    """A file such as Buzz's: it publishes on every address, and has services that the benchmark doesn't need."""
    (tmp_path / "deploy" / "compose").mkdir(parents=True)
    (tmp_path / "deploy" / "compose" / "compose.yml").write_text(_production(project))
    done = project.inv("up", "--stack", "compose", BUZZBENCH_BUZZ_SOURCE=str(tmp_path), **project.with_stack)
    assert done.returncode == 0, done.stderr
    found = containers(project.compose_project)
    assert set(found) == {"postgres", "redis", "minio", "minio-init", "relay"}
    (relay,) = engine.inspect("container", [found["relay"].id])
    assert "ORIGIN=checkout" in relay["Config"]["Env"]
    assert {b["HostIp"] for b in relay["NetworkSettings"]["Ports"]["3000/tcp"]} == {
        "127.0.0.1",
        kept(project.state_dir).bridge,  # type: ignore[union-attr]
    }


def _production(project: DockerInstallation) -> str:
    ours = (Path(__file__).parents[2] / "compose" / "compose.yaml").read_text()
    ours = ours.replace("      BUZZ_BIND_ADDR:", "      ORIGIN: checkout\n      BUZZ_BIND_ADDR:")
    ours = ours.replace("127.0.0.1:${BUZZ_HTTP_PORT:?run `inv env`}:3000", "${BUZZ_HTTP_PORT:-3000}:3000")
    extra = f"  pairing-relay:\n    image: {images.base()}\n    command: ['sleep', 'infinity']\n"
    return ours.replace("  postgres:\n    image:", f"{extra}\n  postgres:\n    image:")


def test_a_checkout_without_its_file_is_named(project: DockerInstallation, tmp_path: Path) -> None:
    done = project.inv("up", "--stack", "compose", BUZZBENCH_BUZZ_SOURCE=str(tmp_path))
    assert done.returncode == 2
    assert "deploy/compose/compose.yml: no such file in the checkout that BUZZBENCH_BUZZ_SOURCE names" in done.stderr
