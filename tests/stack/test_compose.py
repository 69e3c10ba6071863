"""The compose stack's files, names and containers, as far as they can be judged without an engine."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from bench import env, keys
from bench.errors import InvalidInput
from bench.settings import ROOT, Settings
from bench.stack import project
from bench.stack.containers import Container
from bench.stack.project import Kept, Project

COMPOSE = ROOT / "compose"
STACK = ("compose.yaml", "benchmark.yaml")
RUNNING = Container("relay", "c1", "running", "healthy", 0, 0, "2026-01-31T00:00:00Z", frozenset())


def services(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((COMPOSE / name).read_text())["services"]
    return found


def test_every_variable_of_the_environment_file_is_used(tmp_path: Path) -> None:
    text = "".join((COMPOSE / name).read_text() for name in STACK)
    used = set(re.findall(r"\$\{(\w+)", text))
    assert set(env.variables(Settings(), keys.ensure(tmp_path))) - used == set()


def test_every_variable_of_it_is_demanded() -> None:
    for name in STACK:
        for variable, rest in re.findall(r"\$\{(\w+)([^}]*)\}", (COMPOSE / name).read_text()):
            assert rest.startswith((":?", ":-")), variable
            assert rest.startswith(":?") or variable.startswith("BUZZBENCH_"), variable


def test_images_but_buzzs_own_are_pinned_by_digest() -> None:
    for name, service in services("compose.yaml").items():
        if name != "relay":
            assert re.search(r"@sha256:[0-9a-f]{64}\}$", service["image"]), name


def test_services_check_their_health_and_wait_for_each_other() -> None:
    found = services("compose.yaml")
    assert all(service.get("healthcheck") for name, service in found.items() if name != "minio-init")
    assert {name: needed["condition"] for name, needed in found["relay"]["depends_on"].items()} == {
        "postgres": "service_healthy",
        "redis": "service_healthy",
        "minio": "service_healthy",
        "minio-init": "service_completed_successfully",
    }
    assert not any("container_name" in service for service in found.values())


def test_ports_are_published_on_named_addresses_only() -> None:
    for name in (*STACK, "bridge.yaml"):
        for service in services(name).values():
            for port in service.get("ports", []):
                assert port.startswith(("127.0.0.1:", "${BUZZBENCH_BRIDGE:?")), port


def test_every_volume_says_whose_it_is() -> None:
    declared = yaml.safe_load((COMPOSE / "compose.yaml").read_text())["volumes"]
    labelled = yaml.safe_load((COMPOSE / "benchmark.yaml").read_text())["volumes"]
    assert declared.keys() == labelled.keys()
    assert all("buzzbench.state" in volume["labels"] for volume in labelled.values())


@pytest.mark.parametrize("folder", ["Buzz.Bench", "a", "UPPER_case", "büzz", "x" * 80, "..."])
def test_names_of_projects_fit_compose_and_differ_by_place(folder: str) -> None:
    first = project.own_name(Path("/home/me") / folder / ".benchmark")
    second = project.own_name(Path("/home/you") / folder / ".benchmark")
    assert first != second
    for name in (first, second):
        assert re.fullmatch(r"buzz-benchmark-[a-z0-9-]*[0-9a-f]{6}", name)
        assert len(name) <= 63


def test_a_name_that_was_set_wins_over_the_one_that_was_kept() -> None:
    assert project.name_for(Settings(compose_project="mine"), "kept") == "mine"
    assert project.name_for(Settings(), "kept") == "kept"


def test_what_an_up_keeps_is_read_back_and_damage_counts_as_nothing(tmp_path: Path) -> None:
    assert project.kept(tmp_path) is None
    project.keep(tmp_path, Kept("name", "172.17.0.1", "f"))
    assert project.kept(tmp_path) == Kept("name", "172.17.0.1", "f")
    (tmp_path / "compose.json").write_text('{"name": ')
    assert project.kept(tmp_path) is None


def test_whatever_makes_the_containers_changes_the_fingerprint(tmp_path: Path) -> None:
    settings, state = Settings(state_dir=tmp_path), keys.ensure(tmp_path)
    made = Project("p", settings, state, "172.17.0.1")
    others = [
        replace(made, bridge=None),
        replace(made, name="q"),
        replace(made, state=replace(state, postgres_password="another")),
        replace(made, settings=replace(settings, buzz_image="local/buzz:2")),
        replace(made, settings=replace(settings, redis_image="valkey:8")),
    ]
    assert len({each.fingerprint for each in (made, *others)}) == 6
    assert made.fingerprint == Project("p", settings, state, "172.17.0.1").fingerprint


def test_a_checkouts_file_is_published_on_loopback_through_its_own_variable(tmp_path: Path) -> None:
    state = keys.ensure(tmp_path)
    ours = Project("p", Settings(state_dir=tmp_path), state, None)
    assert ours.variables["BUZZ_HTTP_PORT"] == "3600"
    theirs = Project("p", Settings(state_dir=tmp_path, buzz_source=tmp_path), state, None)
    assert theirs.variables["BUZZ_HTTP_PORT"] == "127.0.0.1:3600"
    with pytest.raises(InvalidInput, match=r"deploy/compose/compose\.yml: no such file in the checkout"):
        _ = theirs.files


@pytest.mark.parametrize(
    ("container", "failed", "how"),
    [
        (RUNNING, False, "is healthy"),
        (replace(RUNNING, health="starting"), False, "is starting"),
        (replace(RUNNING, health="unhealthy"), True, "is unhealthy"),
        (replace(RUNNING, status="exited", health=""), False, "ended with status 0"),
        (replace(RUNNING, status="exited", exit_code=3), True, "ended with status 3"),
        (replace(RUNNING, status="restarting", exit_code=3, restarts=1), False, "ended with status 3, 1 times over"),
        (replace(RUNNING, status="restarting", exit_code=3, restarts=2), True, "ended with status 3, 2 times over"),
    ],
)
def test_when_a_container_has_failed(container: Container, failed: bool, how: str) -> None:
    assert (container.has_failed, container.how) == (failed, how)
