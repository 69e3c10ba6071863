"""What a stack needs, and a real one: written to and read from with every kind of key."""

from __future__ import annotations

import json
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from bench import keys
from bench.doctor import stack
from bench.stack import address
from tests.doctor.conftest import Make
from tests.pipeline import Installation, new_installation, remove
from tests.planning.kit import Project


def test_keys_that_are_not_made_yet_are_no_fault_and_wide_ones_are(make: Make, home: Project) -> None:
    context = make()
    assert stack.identity(context).detail == "not made yet: the first run makes them"
    state = keys.ensure(context.settings.state_dir)
    assert stack.identity(context).detail == f"of {state.user.npub}"
    keys.state_path(context.settings.state_dir).chmod(0o644)
    wide = stack.identity(context)
    assert (wide.state, wide.detail) == ("warn", f"others may read {home.root}/state/state.json")


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_a_taken_port_is_named_with_its_holder(make: Make, family: socket.AddressFamily, host: str) -> None:
    """Case 36: on either family."""
    with socket.socket(family) as server:
        try:
            server.bind((host, 0))
        except OSError:
            pytest.skip("this machine has no IPv6")
        server.listen()
        port = server.getsockname()[1]
        found = stack.own_ports(make({"relay_port": port}))
        assert found.state == "fail"
        assert found.detail.startswith(f"{port} of the relay is held by process ")
        assert found.fix == "stop it, or set BUZZBENCH_RELAY_PORT to a free port"


def test_a_free_port_is_said_to_be_so(make: Make) -> None:
    context = make()
    assert stack.own_ports(context).detail == f"{context.settings.relay_port} is free on IPv4 and IPv6"


def test_programs_that_are_not_there_are_named(make: Make, tmp_path: Path) -> None:
    assert stack.programs(make()).state == "ok"
    from bench.doctor.check import run

    (result,) = run(stack.CHECKS[:1], make({"pg_bin": tmp_path}))
    assert (result.state, result.fix) == ("fail", "name the directory that has them")
    assert "no program initdb or postgres in " in result.detail


@pytest.fixture(scope="module")
def installed() -> Iterator[Installation]:
    installation = new_installation(Path(tempfile.mkdtemp(prefix="bzb-doctor-")))
    try:
        yield installation
    finally:
        remove(installation)


def examined(installed: Installation, *words: str, **environ: str) -> tuple[int, dict[str, dict[str, Any]]]:
    done = installed.inv("doctor", "--json", *words, **{"CI": ""} | environ)
    return done.returncode, {check["name"]: check for check in json.loads(done.stdout)["checks"]}


@pytest.mark.slow
def test_nothing_is_started_or_written(tmp_path: Path) -> None:
    fresh = new_installation(tmp_path)
    code, checks = examined(fresh)
    assert (code, checks["stack"]["state"], checks["signed by user"]["detail"]) == (0, "skip", "it needs stack")
    assert list(tmp_path.iterdir()) == []
    assert fresh.processes() == []


@pytest.mark.slow
def test_a_damaged_state_is_a_failure_and_the_cause_of_what_is_not_looked_at(tmp_path: Path) -> None:
    damaged = new_installation(tmp_path)
    damaged.state_dir.mkdir(mode=0o700)
    (damaged.state_dir / "state.json").write_text("{")
    code, checks = examined(damaged)
    assert (code, checks["keys"]["state"]) == (3, "fail")
    assert checks["keys"]["fix"].startswith("restore it from a backup")
    assert checks["signed by owner"] == {
        "name": "signed by owner",
        "state": "skip",
        "detail": "it needs keys",
        "fix": "",
    }


@pytest.mark.slow
def test_with_a_stack_every_kind_of_key_writes_and_reads(installed: Installation) -> None:
    assert installed.inv("up").returncode == 0
    for _ in range(2):
        code, checks = examined(installed)
        assert code == 0, [check for check in checks.values() if check["state"] == "fail"]
        for name in ("stack", "gateway", "ports", "clock", "signed by owner", "signed by user", "signed by agent"):
            assert checks[name]["state"] == "ok", checks[name]
    assert "of the relay's" in checks["clock"]["detail"]
    found = address(installed.state_dir)
    assert found
    with psycopg.connect(found.dsn) as connection:
        rows = connection.execute("SELECT count(*) FROM relay.events WHERE kind = 0").fetchone()
    assert rows == (3,), "a profile of each key, however often the doctor came"


@pytest.mark.slow
def test_strict_counts_what_was_skipped(installed: Installation) -> None:
    """Case 50."""
    code, checks = examined(installed, "--strict")
    assert code == 3
    assert {check["state"] for check in checks.values()} & {"warn", "skip"}
    assert examined(installed, CI="true")[0] == 3
