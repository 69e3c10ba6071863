"""What is said of an engine that is not there, old or half there: by a stand-in for the docker command."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.docker import engine
from bench.docker.engine import DockerFailed

type Fake = Callable[[str], None]


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    """Puts a shell script in the place of `docker`."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def put(script: str) -> None:
        (tmp_path / "docker").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "docker").chmod(0o755)

    return put


def test_no_docker_command(tmp_path: Path) -> None:
    found = engine.problem("-e docker", {"PATH": str(tmp_path)}, instead="-e sandbox")
    assert str(found) == (
        "-e docker: there is no docker command; install Docker with its Compose plugin, or use -e sandbox"
    )
    assert found
    assert found.lacks


def test_an_engine_that_does_not_answer(fake: Fake) -> None:
    said = "Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?"
    fake(f"echo null; echo '{said}' >&2; exit 1")
    assert str(engine.problem("--stack compose")) == (
        f"--stack compose: the Docker engine does not answer: {said}; "
        "start Docker, or set DOCKER_HOST to an engine that runs"
    )


def test_an_engine_without_the_plugin(fake: Fake) -> None:
    fake("""[ "$1" = version ] && echo '{"Version": "27.1", "Arch": "arm64"}' && exit; exit 1""")
    assert str(engine.problem("x")) == "x: there is no `docker compose`; install Docker's Compose plugin"
    assert engine.absence("x") is None
    assert engine.engine() == engine.Engine("27.1", "arm64")


@pytest.mark.parametrize("said", ["2.20.0", "v2.30.3-desktop.1", "2.26.1-4", "5.0"])
def test_a_compose_that_will_do(fake: Fake, said: str) -> None:
    fake(f"""[ "$1" = version ] && echo '{{"Version": "27.1", "Arch": "arm64"}}' && exit; echo {said}""")
    assert engine.problem("x") is None


@pytest.mark.parametrize("said", ["2.19.9", "1.29.2", "unknown"])
def test_a_compose_that_is_too_old(fake: Fake, said: str) -> None:
    fake(f"""[ "$1" = version ] && echo '{{"Version": "27.1", "Arch": "arm64"}}' && exit; echo {said}""")
    assert str(engine.problem("x")) == f"x: Compose is {said}, and 2.20 is the oldest that will do; renew it"


def test_a_command_that_fails_says_its_last_line(fake: Fake) -> None:
    fake("echo first >&2; echo last >&2; exit 1")
    with pytest.raises(DockerFailed, match=r"^docker network ls: last$"):
        engine.docker("network", "ls")


def test_a_command_that_hangs_is_no_answer(fake: Fake) -> None:
    fake("exec sleep 30")
    with pytest.raises(DockerFailed, match=r"^docker version: no answer within 0.2 s$"):
        engine.docker("version", timeout_s=0.2)


def test_what_is_gone_is_left_out_of_an_inspection(fake: Fake) -> None:
    fake("""echo '[{"Id": "a"}]'; echo 'Error: No such container: b' >&2; exit 1""")
    assert engine.inspect("container", ["a", "b"]) == [{"Id": "a"}]
    fake("echo '[]'; echo 'Error: permission denied' >&2; exit 1")
    with pytest.raises(DockerFailed, match="permission denied"):
        engine.inspect("container", ["a"])
