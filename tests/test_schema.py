"""The benchmark schema is applied once, whole, and its history can't be rewritten in silence."""

from __future__ import annotations

import hashlib
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from bench import schema
from bench.errors import BuzzbenchError
from bench.stack import StackAddress
from bench.stack.postgres import Postgres

NAMES = [migration.name for migration in schema.read(schema.SQL)]
NEXT = f"{len(NAMES) + 1:04}"


APPLIED = {
    "0001_benchmark": "9b9e8f3d2b8a48b9",
    "0002_trial_handle": "0ed9fe013be189f7",
    "0003_replay": "31583946312442db",
    "0004_attempts": "89106bedbdca3df4",
    "0005_steps": "618ecebe104d5455",
    "0006_copied_jobs": "3c4e4eea9e787807",
    "0007_calls_that_went_out": "f82231eae63a78af",
}
"""The beginning of each shipped migration's SHA-256. There are databases that have them: none may change, not even
in its comments."""


def at(dsn: str) -> StackAddress:
    return StackAddress("embedded", "ws://localhost:1", dsn, "http://127.0.0.1:1", "unused")


@pytest.fixture
def migrations(tmp_path: Path) -> Path:
    """A copy of the shipped migrations that a test may change."""
    return Path(shutil.copytree(schema.SQL, tmp_path / "sql"))


def test_what_databases_have_already_is_never_edited() -> None:
    """A change is a migration of its own; a new one gets its line above."""
    assert {m.stem: hashlib.sha256(m.read_bytes()).hexdigest()[:16] for m in schema.SQL.glob("*.sql")} == APPLIED


def test_all_tables_are_there_and_a_second_run_changes_nothing(
    database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert schema.apply(at(database)) == NAMES
    assert capsys.readouterr().err == f"schema applied: {', '.join(NAMES)}\n"
    assert schema.apply(at(database)) == []
    assert capsys.readouterr().err == "schema is current\n"
    with psycopg.connect(database) as connection:
        rows = connection.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'benchmark'"
        ).fetchall()
    assert {"trial_manifest", "llm_receipts", "spans", "trial_handle"} <= {name for (name,) in rows}


def test_two_at_once_apply_each_migration_once(database: str) -> None:
    applied: list[str] = []
    threads = [threading.Thread(target=lambda: applied.extend(schema.apply(at(database)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert applied == NAMES


def test_a_changed_migration_is_refused(database: str, migrations: Path) -> None:
    schema.apply(at(database), directory=migrations)
    with (migrations / "0001_benchmark.sql").open("a") as file:
        file.write("\n-- later thought\n")
    with pytest.raises(BuzzbenchError, match=r"0001_benchmark\.sql: it was changed after it was applied; put the"):
        schema.apply(at(database), directory=migrations)


def test_a_database_of_a_newer_version_is_refused(database: str, migrations: Path) -> None:
    (migrations / f"{NEXT}_next.sql").write_text("CREATE TABLE benchmark.more ()")
    assert schema.apply(at(database), directory=migrations) == [*NAMES, f"{NEXT}_next"]
    with pytest.raises(BuzzbenchError, match=f"the database has {NEXT}_next, which this version doesn't know"):
        schema.apply(at(database))


def test_a_migration_that_fails_leaves_nothing_of_itself_or_the_others(database: str, migrations: Path) -> None:
    (migrations / f"{NEXT}_broken.sql").write_text("CREATE TABLE benchmark.half (); SELECT no_such_thing();")
    with pytest.raises(
        BuzzbenchError, match=rf"bench/sql/{NEXT}_broken\.sql: function no_such_thing\(\) does not exist"
    ):
        schema.apply(at(database), directory=migrations)
    with psycopg.connect(database) as connection:
        assert connection.execute("SELECT to_regnamespace('benchmark')").fetchone() == (None,)


def test_a_gap_in_the_numbers_is_named(tmp_path: Path) -> None:
    (tmp_path / "0002_second.sql").touch()
    with pytest.raises(BuzzbenchError, match=r"0002_second\.sql: expected 0001_<name>\.sql here"):
        schema.read(tmp_path)


def test_it_waits_for_a_server_that_is_still_starting(postgres_server: Postgres, database: str, tmp_path: Path) -> None:
    late = replace(postgres_server, data_dir=tmp_path / "pg", socket_dir=tmp_path, log=tmp_path / "postgres.log")
    done: list[str] = []
    applying = threading.Thread(target=lambda: done.extend(schema.apply(at(late.dsn))))
    applying.start()
    try:
        late.ensure()
        applying.join()
        assert done == NAMES
    finally:
        late.stop()
        applying.join()


def test_a_server_that_never_answers_is_said_to(tmp_path: Path) -> None:
    with pytest.raises(BuzzbenchError, match=r"schema: PostgreSQL did not answer for 0 s: (?s:.*); see `inv status`"):
        schema.apply(at(f"host={tmp_path} user=buzz dbname=postgres"), wait_s=0)


def test_the_migrations_need_no_extension() -> None:
    """The wheel has neither pgcrypto nor uuid-ossp (MEASURED.md section 1), and production is PostgreSQL 17."""
    for migration in schema.read(schema.SQL):
        words = migration.statements.lower()
        assert b"create extension" not in words
        assert b"uuidv7" not in words
