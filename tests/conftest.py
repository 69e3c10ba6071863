"""Fixtures that more than one room uses: a real PostgreSQL server, and fresh databases on it."""

from __future__ import annotations

import itertools
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, settings

from bench.stack import pgprograms
from bench.stack.postgres import Postgres

_numbers = itertools.count(1)

# A machine that is busy makes examples slowly: that is no fault of what is tested.
settings.register_profile("whatever the machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("whatever the machine")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    """A running server in a directory of its own, gone at the end, also if the tests are killed."""
    home = Path(tempfile.mkdtemp(prefix="bzb-test-"))
    sockets = home / "s"
    sockets.mkdir(mode=0o700)
    server = Postgres(
        programs=pgprograms.find(None),
        data_dir=home / "pg18",
        socket_dir=sockets,
        log=home / "postgres.log",
        mode=pgprograms.launch_mode(),
        die_with=os.getpid() if sys.platform == "linux" else 0,
    )
    try:
        server.ensure()
        yield server
    finally:
        server.stop()
        shutil.rmtree(home)


@pytest.fixture
def database(postgres_server: Postgres) -> Iterator[str]:
    """The DSN of an empty database that only this test uses."""
    name = f"test_{next(_numbers)}"
    with psycopg.connect(postgres_server.dsn, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}".encode())
        yield postgres_server.dsn.replace("dbname=postgres", f"dbname={name}")
        server.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.fixture
def no_sandbox(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine on which bubblewrap makes none."""
    from bench.sandbox import probe

    probe.tools.cache_clear()
    monkeypatch.setattr(probe, "_candidates", lambda: iter(()))
    yield
    probe.tools.cache_clear()
