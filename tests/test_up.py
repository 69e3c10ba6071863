"""`inv up`, `down` and `status` on real services: sound after any accident, and never more than was asked for."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from bench import down, keys, status, up
from bench.errors import BuzzbenchError, InvalidInput, MachineLacks
from bench.processes import ProcessId, identify, wait_until
from bench.settings import ROOT, Settings
from bench.stack import StackAddress, StackStatus, address, embedded, paths, pgprograms, probe
from bench.stack.jobs import hold
from tests.ports import free_port


@contextmanager
def project() -> Iterator[Settings]:
    """Settings of a project of the tests' own, whose services are gone at the end."""
    home = Path(tempfile.mkdtemp(prefix="bzb-test-"))
    made = Settings(state_dir=home / "state", jobs_dir=home / "jobs", relay_port=free_port())
    try:
        yield made
    finally:
        embedded.down(made)
        shutil.rmtree(home)


@pytest.fixture
def new() -> Iterator[Settings]:
    """A project where nothing was ever made."""
    with project() as made:
        yield made


@pytest.fixture(scope="module")
def settings() -> Iterator[Settings]:
    """A project whose stack a test may hurt and stop as it likes: the next `up` finds it healed."""
    with project() as made:
        yield made


@pytest.fixture
def state(settings: Settings) -> keys.State:
    return keys.ensure(settings.state_dir)


def pids(settings: Settings) -> dict[str, int]:
    return {s.name: s.pid for s in embedded.status(settings).services if s.state == "running" and s.pid}


def processes(settings: Settings) -> dict[str, ProcessId]:
    found = {name: identify(pid) for name, pid in pids(settings).items()}
    return {name: process for name, process in found.items() if process}


def kill(process: ProcessId) -> None:
    process.signal(signal.SIGKILL)
    assert wait_until(lambda: not process.alive(), 10)


def profiles(found: StackAddress, state: keys.State) -> list[str]:
    """The ids of the owner's profiles that the relay has: proof of what survived."""
    authority = found.relay_url.removeprefix("ws://")
    port = int(authority.rpartition(":")[2])
    asked = [{"authors": [state.owner.public], "kinds": [0]}]
    return [event["id"] for event in probe.post(port, authority, "/query", asked, state.owner)]


def remember(found: StackAddress, text: str) -> None:
    with psycopg.connect(found.dsn) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS remembered (t text)")
        connection.execute("INSERT INTO remembered VALUES (%s)", [text])


def remembered(found: StackAddress) -> bool:
    with psycopg.connect(found.dsn) as connection:
        return connection.execute("SELECT to_regclass('remembered')").fetchone() != (None,)


def test_up_from_nothing_gives_a_working_stack_and_again_changes_nothing(
    new: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    state = keys.ensure(new.state_dir)
    found = up.up(new, state, "embedded", fresh=False)
    assert capsys.readouterr().err == (
        f"stack is up: relay ws://localhost:{new.relay_port}, gateway {found.gateway_url}\n"
    )
    assert address(new.state_dir) == found
    assert profiles(found, state)
    running = pids(new)
    assert set(running) == {"postgres", "relay", "gateway"}

    written = (new.state_dir / "stack.json").stat()
    assert written.st_mode & 0o777 == 0o600
    assert up.up(new, state, "embedded", fresh=False) == found
    assert pids(new) == running
    assert (new.state_dir / "stack.json").stat().st_ino == written.st_ino


def test_down_leaves_no_process_and_no_socket_and_again_is_nothing(
    settings: Settings, state: keys.State, capsys: pytest.CaptureFixture[str]
) -> None:
    found = embedded.up(settings, state)
    were = processes(settings)
    assert len(were) == 3
    capsys.readouterr()
    assert down.down(settings)
    assert capsys.readouterr().err == "stack is down\n"
    assert not any(process.alive() for process in were.values())
    assert address(settings.state_dir) is None
    assert not Path(found.gateway_control).parent.exists()
    assert not down.down(settings)
    assert capsys.readouterr().err == "stack is down already\n"


def test_down_where_nothing_ever_was_makes_nothing(new: Settings) -> None:
    assert not embedded.down(new)
    assert embedded.status(new) == StackStatus((), (), None)
    assert not new.state_dir.exists()


@pytest.mark.parametrize("name", ["postgres", "relay", "gateway"])
def test_a_killed_service_is_started_again_and_the_others_stay(
    settings: Settings, state: keys.State, name: str
) -> None:
    first = embedded.up(settings, state)
    remember(first, "before the kill")
    before = processes(settings)
    kill(before[name])
    again = embedded.up(settings, state)
    after = processes(settings)
    assert {other for other in before if after[other] == before[other]} == set(before) - {name}
    assert remembered(again)


def test_data_outlive_down_and_fresh_drops_them_but_not_the_keys(settings: Settings, state: keys.State) -> None:
    found = embedded.up(settings, state)
    remember(found, "of the first stack")
    embedded.down(settings)
    found = embedded.up(settings, state)
    assert remembered(found)
    were = processes(settings)
    before = keys.state_path(settings.state_dir).read_bytes()
    found = embedded.up(settings, state, fresh=True)
    assert not any(process.alive() for process in were.values())
    assert not remembered(found)
    assert keys.state_path(settings.state_dir).read_bytes() == before


def test_a_taken_port_is_named_with_its_holder_and_nothing_is_started(new: Settings) -> None:
    state = keys.ensure(new.state_dir)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", new.relay_port))
        listener.listen()
        with pytest.raises(MachineLacks) as refused:
            embedded.up(new, state)
        said = str(refused.value)
        assert said.startswith(f"port {new.relay_port} of the relay: process {os.getpid()} (")
        assert said.endswith("holds it; stop it, or set BUZZBENCH_RELAY_PORT to a free port")
        assert refused.value.exit_code == 3
        assert not (new.state_dir / "pg18").exists()
        shown = {service.name: service for service in embedded.status(new).services}
        assert shown["relay"].state == "foreign"
        assert shown["relay"].pid == os.getpid()
        assert shown["postgres"].state == "stopped"


def test_a_listener_on_ipv6_alone_takes_the_port_too(new: Settings) -> None:
    state = keys.ensure(new.state_dir)
    with socket.socket(socket.AF_INET6) as listener:
        try:
            listener.bind(("::1", new.relay_port))
        except OSError:
            pytest.skip("no IPv6 on this machine")
        listener.listen()
        with pytest.raises(MachineLacks, match=f"port {new.relay_port} of the relay"):
            embedded.up(new, state)


def test_a_damaged_note_of_the_datas_keys_is_named_not_state_json(settings: Settings, state: keys.State) -> None:
    embedded.up(settings, state)
    note = settings.state_dir / "database.json"
    whole = note.read_text()
    try:
        for damage in ("", "{", "[]", "{}"):
            note.write_text(damage)
            said = r"database\.json(:1)?: is damaged .*; delete it if state\.json is the one"
            with pytest.raises(InvalidInput, match=said):
                embedded.up(settings, state)
    finally:
        note.write_text(whole)


def test_a_damaged_address_has_a_way_out(settings: Settings, state: keys.State) -> None:
    embedded.up(settings, state)
    (settings.state_dir / "stack.json").write_text("{")
    with pytest.raises(InvalidInput, match=r"stack\.json:1: is damaged .*; run `inv down`, then `inv up`"):
        up.up(settings, state, "embedded", fresh=False)
    assert down.down(settings)
    assert up.up(settings, state, "embedded", fresh=False) == address(settings.state_dir)


def test_a_second_checkout_is_told_of_the_first_ones_relay(settings: Settings, state: keys.State) -> None:
    embedded.up(settings, state)
    second = replace(settings, state_dir=settings.state_dir.with_name("second"))
    with pytest.raises(MachineLacks, match=rf"process {pids(settings)['relay']} \(.*bench\.relay .*\).* holds it"):
        embedded.up(second, keys.ensure(second.state_dir))
    assert not embedded.down(second)


def test_a_moved_port_moves_the_relay_and_says_so(
    settings: Settings, state: keys.State, capsys: pytest.CaptureFixture[str]
) -> None:
    before = up.up(settings, state, "embedded", fresh=False)
    assert "has moved" not in capsys.readouterr().err
    first = processes(settings)
    moved = replace(settings, relay_port=free_port())
    found = up.up(moved, state, "embedded", fresh=False)
    assert f"the relay has moved from {before.relay_url} to {found.relay_url}\n" in capsys.readouterr().err
    assert found.relay_url == f"ws://localhost:{moved.relay_port}"
    assert not first["relay"].alive()
    assert processes(moved)["postgres"] == first["postgres"]


def test_two_at_once_share_one_stack(new: Settings) -> None:
    state = keys.ensure(new.state_dir)
    found: list[StackAddress] = []
    threads = [threading.Thread(target=lambda: found.append(embedded.up(new, state))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2
    assert len(set(found)) == 1


def test_a_running_job_keeps_the_stack(settings: Settings, state: keys.State) -> None:
    found = embedded.up(settings, state)
    running = pids(settings)
    with hold(settings.state_dir / "run" / "lb-1"):
        with pytest.raises(BuzzbenchError, match="inv down: job lb-1 uses the stack"):
            embedded.down(settings)
        with pytest.raises(BuzzbenchError, match="--fresh: job lb-1 uses the stack"):
            embedded.up(settings, state, fresh=True)
        with pytest.raises(BuzzbenchError, match="the running stack is of other settings or older code: job lb-1"):
            embedded.up(replace(settings, relay_port=free_port()), state)
        assert embedded.up(settings, state) == found
        assert embedded.status(settings).jobs == ("lb-1",)
    assert pids(settings) == running


def test_data_of_other_keys_are_refused_with_the_two_ways_on(new: Settings) -> None:
    state = keys.ensure(new.state_dir)
    embedded.up(new, state)
    embedded.down(new)
    keys.state_path(new.state_dir).unlink()
    with pytest.raises(
        InvalidInput,
        match=r"other keys than those in state.json; restore that state.json, or drop the data with `inv up --fresh`",
    ):
        embedded.up(new, keys.ensure(new.state_dir))
    assert pids(new) == {}
    embedded.up(new, keys.ensure(new.state_dir), fresh=True)


@pytest.mark.parametrize("name", ["relay", "gateway"])
def test_a_service_that_hangs_is_replaced(
    settings: Settings, state: keys.State, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded.up(settings, state)
    before = processes(settings)
    before[name].signal(signal.SIGSTOP)
    with monkeypatch.context() as impatient:
        impatient.setattr(probe, "TIMEOUT_S", 1.0)
        impatient.setattr(embedded, "PROVE_S", 0.0)
        impatient.setattr("bench.stack.process.STOP_S", 0.1)
        embedded.up(settings, state)
    after = processes(settings)
    assert {other for other in before if after[other] == before[other]} == set(before) - {name}


@pytest.mark.skipif(sys.platform != "linux" or os.getuid() != 0, reason="only root has to become another user")
def test_where_root_may_make_no_namespace_the_data_lie_where_another_user_can_reach_them(
    new: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = keys.ensure(new.state_dir)
    mode = f"drop:{pgprograms.other_user()}"
    try:
        pgprograms.check_reachable(mode, pgprograms.find(None))
    except MachineLacks as closed:
        pytest.skip(str(closed))
    monkeypatch.setattr(pgprograms, "launch_mode", lambda: mode)
    try:
        found = embedded.up(new, state)
        remember(found, "as another user")
        embedded.down(new)
        assert remembered(embedded.up(new, state))
        assert not remembered(embedded.up(new, state, fresh=True))
        assert not (new.state_dir / "pg18").exists()
    finally:
        embedded.down(new)
        shutil.rmtree(paths.database_places(new.state_dir, mode)[0].parent)


def test_a_failure_half_way_leaves_nothing_running(new: Settings) -> None:
    state = keys.ensure(new.state_dir)
    embedded.up(new, state)
    embedded.down(new)
    (new.state_dir / "pg18" / "postgresql.conf").write_text("no_such_setting = 1\n")
    with pytest.raises(BuzzbenchError, match="PostgreSQL did not start"):
        embedded.up(new, state)
    assert pids(new) == {}
    assert address(new.state_dir) is None


@pytest.mark.parametrize("when", ["relay.json", "pg18.part", "pg18", "relay.ready"])
def test_up_that_is_killed_half_way_is_finished_by_the_next(new: Settings, when: str) -> None:
    state = keys.ensure(new.state_dir)
    program = (
        "import sys, pathlib\n"
        "from bench import keys; from bench.settings import Settings; from bench.stack import embedded\n"
        "s = Settings(state_dir=pathlib.Path(sys.argv[1]), relay_port=int(sys.argv[2]))\n"
        "embedded.up(s, keys.ensure(s.state_dir))\n"
    )
    caller = subprocess.Popen([sys.executable, "-c", program, str(new.state_dir), str(new.relay_port)], cwd=ROOT)
    assert wait_until(lambda: any(new.state_dir.rglob(when)) or caller.poll() is not None, 60)
    caller.kill()
    caller.wait()
    found = embedded.up(new, state)
    assert profiles(found, state)
    assert set(pids(new)) == {"postgres", "relay", "gateway"}


def test_a_stack_is_found_from_a_session_with_another_runtime_directory(
    settings: Settings, state: keys.State, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded.down(settings)
    other = settings.state_dir.parent / "x"
    other.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(other))
    found = embedded.up(settings, state)
    assert found.gateway_control.startswith(str(other))
    running = pids(settings)
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert embedded.up(settings, state) == found
    assert pids(settings) == running


def test_status_is_shown_for_people_and_for_programs(
    settings: Settings, state: keys.State, capsys: pytest.CaptureFixture[str]
) -> None:
    found = embedded.up(settings, state)
    running = pids(settings)
    status.status(settings, as_json=True)
    shown = json.loads(capsys.readouterr().out)
    assert shown["address"]["relay_url"] == found.relay_url
    assert {service["name"]: service["pid"] for service in shown["services"]} == running
    status.status(settings, as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith(f"relay     running  pid {running['relay']}  port {settings.relay_port}  for ")
    embedded.down(settings)
    status.status(settings, as_json=False)
    assert capsys.readouterr().out.splitlines()[-1] == "the stack is down; `inv up` starts it"
