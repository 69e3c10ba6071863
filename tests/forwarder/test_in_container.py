"""The forwarder in a container that has nothing else: names, loopback and its end are as agents need them."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.docker.engine import bridge_address
from tests.docker.images import REPOSITORY, docker
from tests.forwarder.running import Echo, dial, echoed
from tests.pipeline import wait_until

pytestmark = [pytest.mark.docker, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An image without any file."""
    file = tmp_path_factory.mktemp("image") / "empty.tar"
    tarfile.open(file, "w").close()
    name = f"{REPOSITORY}/empty:forwarder"
    docker("import", str(file), name)
    yield name
    docker("image", "rm", name)


@contextmanager
def container(program: Path, image: str, *pairs: str, network: str = "bridge") -> Iterator[str]:
    """The forwarder as the only process of a container, listening."""
    options = ["--network", network, "--add-host", "host.docker.internal:host-gateway"]
    mount = f"{program.parent}:/programs:ro"
    name = docker("run", "--detach", *options, "--volume", mount, image, f"/programs/{program.name}", *pairs)
    try:
        wait_until(lambda: docker("logs", name).count("ready ") == len(pairs))
        yield name
    finally:
        docker("rm", "--force", name)


def test_the_host_is_reached_by_its_name(program: Path, empty: str) -> None:
    address = bridge_address()
    assert address, "the engine is on this host"
    with Echo((address, 0)) as echo:
        pair = f"0.0.0.0:3600=host.docker.internal:{echo.port}"
        with container(program, empty, pair) as name:
            inside = docker("inspect", "--format", "{{.NetworkSettings.Networks.bridge.IPAddress}}", name)
            with dial(3600, inside) as connection:
                assert echoed(connection, b"x" * 1_000_000) == b"x" * 1_000_000


def test_localhost_is_listened_on_where_ipv6_is_only_a_name(program: Path, empty: str) -> None:
    with container(program, empty, "localhost:3600=localhost:1", network="none") as name:
        assert docker("logs", name) == "ready localhost:3600=localhost:1"


def test_as_the_first_process_it_ends_when_it_is_told_to(program: Path, empty: str) -> None:
    with container(program, empty, "localhost:3600=localhost:1") as name:
        # Without a handler of its own the kernel would drop the signal, and ten seconds later kill it: 137.
        docker("stop", name)
        assert docker("inspect", "--format", "{{.State.ExitCode}}", name) == "0"
