"""`inv schema`: the `benchmark` schema in the stack's PostgreSQL, by numbered migrations.

`bench/sql/NNNN_name.sql` are applied in order, each once, all in one transaction under an advisory lock. A migration
that was applied is history: changing its file is an error; a change of the schema is a new file.
"""

from __future__ import annotations

import hashlib
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import psycopg

from bench.errors import BuzzbenchError
from bench.stack import StackAddress

SQL = Path(__file__).parent / "sql"
LOCK = 0x62757A7A62656E63
"""The advisory lock of migrations: "buzzbenc" in ASCII, so that no other program takes it by chance."""
RETRY_S = 0.1
CONNECT_S = 5

JOURNAL = b"""
CREATE SCHEMA IF NOT EXISTS benchmark;
CREATE TABLE IF NOT EXISTS benchmark.migrations (
    name       text PRIMARY KEY,
    sha256     text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);
"""


@dataclass(frozen=True)
class Migration:
    """One file, such as `0001_benchmark.sql`."""

    name: str
    statements: bytes

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.statements).hexdigest()


def apply(address: StackAddress, *, wait_s: float = 60, directory: Path = SQL) -> list[str]:
    """Have the schema current, and say so in one line. The names of the migrations applied now.

    Where PostgreSQL doesn't answer, as while it settles, it is tried again for `wait_s` seconds (row U4). Raises
    BuzzbenchError naming the migration that failed, changed or is unknown.
    """
    migrations = read(directory)
    end = time.monotonic() + wait_s
    while True:
        try:
            with psycopg.connect(address.dsn, connect_timeout=CONNECT_S) as connection:
                applied = _migrate(connection, migrations)
            break
        except psycopg.OperationalError as error:
            if time.monotonic() > end:
                raise BuzzbenchError(
                    f"PostgreSQL did not answer for {wait_s:g} s: {str(error).strip()}",
                    where="schema",
                    fix="see `inv status` and postgres.log",
                ) from None
        time.sleep(RETRY_S)
    print(f"schema applied: {', '.join(applied)}" if applied else "schema is current", file=sys.stderr)
    return applied


def read(directory: Path) -> list[Migration]:
    """The directory's migrations in order. Raises BuzzbenchError where their numbers are not 1, 2, 3 and so on."""
    found = [Migration(path.stem, path.read_bytes()) for path in sorted(directory.glob("*.sql"))]
    for number, migration in enumerate(found, 1):
        if not re.fullmatch(f"{number:04}_[a-z0-9_]+", migration.name):
            raise BuzzbenchError(f"expected {number:04}_<name>.sql here", where=f"{directory / migration.name}.sql")
    return found


def _migrate(connection: psycopg.Connection, migrations: list[Migration]) -> list[str]:
    connection.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
    connection.execute(JOURNAL)
    rows = connection.execute("SELECT name, sha256 FROM benchmark.migrations").fetchall()
    known = {str(name): str(digest) for name, digest in rows}
    unknown = sorted(known.keys() - {migration.name for migration in migrations})
    if unknown:
        raise BuzzbenchError(
            f"the database has {', '.join(unknown)}, which this version doesn't know",
            where="schema",
            fix="use the version that applied it, or drop the data with `inv up --fresh`",
        )
    applied = []
    for migration in migrations:
        if migration.name not in known:
            _execute(connection, migration)
            applied.append(migration.name)
        elif known[migration.name] != migration.sha256:
            raise BuzzbenchError(
                "it was changed after it was applied",
                where=f"bench/sql/{migration.name}.sql",
                fix="put the change into a new migration, or drop the data with `inv up --fresh`",
            )
    return applied


def _execute(connection: psycopg.Connection, migration: Migration) -> None:
    try:
        connection.execute(migration.statements)
    except psycopg.OperationalError:
        raise  # the server went away; all is tried again
    except psycopg.Error as error:
        raise BuzzbenchError(str(error).strip(), where=f"bench/sql/{migration.name}.sql") from None
    connection.execute(
        "INSERT INTO benchmark.migrations (name, sha256) VALUES (%s, %s)", [migration.name, migration.sha256]
    )
