"""A Docker engine, images for what can't be pulled, and installations of their own.

The engine is the one that DOCKER_HOST names (`.ci/docker.sh run …` starts one). These tests fail where there is none:
whoever asked for them by their marker wants to know.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.docker import engine
from tests.docker import images
from tests.docker.installation import DockerInstallation, new


def pytest_collection_finish(session: pytest.Session) -> None:
    """Have the images before the first test, whose time it would be otherwise: a minute, where there are none yet."""
    if session.config.option.collectonly or not any(item.get_closest_marker("docker") for item in session.items):
        return
    if engine.problem("the docker tests") is None:
        for role in images.VARIABLES:
            images.of(role)


@pytest.fixture(scope="session")
def docker_engine() -> Iterator[None]:
    problem = engine.problem("the docker tests")
    assert problem is None, problem
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BUZZBENCH_HEALTH_INTERVAL", "300ms")
        yield


@pytest.fixture(scope="session")
def task_image(docker_engine: None) -> Iterator[str]:
    """The tasks' image: what is here by that name, or our Debian under it for the time being."""
    ours = not images.exists(images.TASK_IMAGE)
    if ours:
        images.docker("tag", images.base(), images.TASK_IMAGE)
    yield images.TASK_IMAGE
    if ours:
        images.docker("image", "rm", images.TASK_IMAGE)


@pytest.fixture
def project(docker_engine: None) -> Iterator[DockerInstallation]:
    """An installation where nothing was ever made; all that it makes is gone at the end."""
    yield from _made()


@pytest.fixture(scope="module")
def shared(docker_engine: None) -> Iterator[DockerInstallation]:
    """An installation that the tests of a module share."""
    yield from _made()


def _made() -> Iterator[DockerInstallation]:
    made = new(Path(tempfile.mkdtemp(prefix="bzb-docker-")))
    try:
        yield made
    finally:
        made.remove()
        shutil.rmtree(made.home, ignore_errors=True)
