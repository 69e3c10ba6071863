"""How containers reach relay and gateway: by sockets of this machine, else by a name of this host."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench.harness.buzz.kit import Routes, team_file
from bench.places import door_dir
from bench.stack.paths import LONGEST_SOCKET_PATH, make_door_dir, remove_door_dir
from bench.trial import reach
from bench.trial.doors import Doors

RELAY, GATEWAY = "ws://localhost:3600", "http://127.0.0.1:4000"
PORTS = {"relay": 3600, "gateway": 4000}


@dataclass
class Container:
    """An environment as far as its kind and its mounts go."""

    kind: str = "docker"
    mounted: Path | None = None

    def type(self) -> str:
        return self.kind

    def is_path_mounted(self, environment_path: str, host_path: Path) -> bool:
        return environment_path == "/opt/buzzbench/doors" and host_path == self.mounted


@pytest.fixture
async def doors() -> AsyncIterator[Doors]:
    made = Doors()
    yield made
    await made.close()


@pytest.fixture
def session(tmp_path: Path) -> Any:
    return SimpleNamespace(provisioner=SimpleNamespace(relay_ws_url=RELAY, gateway_url=GATEWAY, doors=str(tmp_path)))


async def test_a_container_with_the_sockets_needs_no_network(doors: Doors, tmp_path: Path) -> None:
    dialled = await reach.dialled(doors, tmp_path, Container(mounted=tmp_path), PORTS, "127.0.0.9")
    names = {path.name.partition("-")[0]: path.name for path in tmp_path.iterdir()}
    assert dialled == [f"unix:/opt/buzzbench/doors/{names[name]}" for name in PORTS]
    routes = Routes(RELAY, GATEWAY, *dialled)
    assert f"bzb_forward='localhost:3600={dialled[0]} 127.0.0.1:0={dialled[1]}'\n" in team_file(routes, "c", "/bin")


async def test_an_engine_in_a_machine_of_its_own_has_no_sockets_of_ours(doors: Doors, tmp_path: Path) -> None:
    dialled = await reach.dialled(doors, tmp_path, Container(mounted=tmp_path), PORTS, None)
    assert dialled == ["host.docker.internal:3600", "host.docker.internal:4000"]
    assert [*tmp_path.iterdir()] == []


async def test_without_the_sockets_the_bridge_has_the_doors(doors: Doors, tmp_path: Path) -> None:
    dialled = await reach.dialled(doors, tmp_path, Container(), PORTS, "127.0.0.9")
    assert all(way.startswith("host.docker.internal:") for way in dialled)
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("kind", ["docker", "daytona"])
async def test_a_name_of_this_host_that_is_given_is_the_way(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv(reach.HOST_VARIABLE, "10.0.0.7")
    found = await reach.routes(session, Container(kind, mounted=tmp_path))
    assert (found.relay, found.gateway) == ("10.0.0.7:3600", "10.0.0.7:4000")


async def test_a_sandbox_shares_this_hosts_network(session: Any) -> None:
    assert await reach.routes(session, Container("sandbox")) == Routes(RELAY, GATEWAY)


@pytest.mark.parametrize(
    ("environment", "environ", "doors", "expected"),
    [
        ("docker", {}, Path("/d"), True),
        ("docker", {"DOCKER_HOST": "unix:///x.sock"}, Path("/d"), True),
        ("docker", {"DOCKER_HOST": "tcp://far:1"}, Path("/d"), False),
        ("docker", {reach.HOST_VARIABLE: "10.0.0.7"}, Path("/d"), False),
        ("docker", {}, None, False),
        ("daytona", {}, Path("/d"), False),
    ],
)
def test_sockets_are_for_an_engine_of_this_machine(
    environment: str, environ: dict[str, str], doors: Path | None, expected: bool
) -> None:
    assert reach.by_sockets(environment, environ, doors) is expected


def test_the_sockets_directory_is_the_same_for_each_run_and_closed_to_other_users(tmp_path: Path) -> None:
    """It is a part of a job's configuration, which a resume compares; and a socket's path must be short."""
    made = make_door_dir(tmp_path / "a" / "state")
    try:
        assert made == door_dir(tmp_path / "a" / "state") == make_door_dir(tmp_path / "a" / "state")
        assert made != door_dir(tmp_path / "b" / "state")
        assert (made.parent.stat().st_mode & 0o777, made.stat().st_mode & 0o777) == (0o700, 0o755)
        assert len(str(made / "gateway-4194304.sock")) <= LONGEST_SOCKET_PATH
        (made / "relay-1.sock").touch()
    finally:
        remove_door_dir(tmp_path / "a" / "state")
    assert not made.parent.exists()
