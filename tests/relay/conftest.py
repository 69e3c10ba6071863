"""One relay for a module's tests; each makes keys and channels of its own."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from bench.relay.store import SCHEMA
from bench.stack.postgres import Postgres
from tests.relay.running import RunningRelay, living_relay, new_database


@pytest.fixture(scope="module")
def module_database(postgres_server: Postgres) -> Iterator[str]:
    """The DSN of a database for a module's tests, because making one takes longer than most of them."""
    with new_database(postgres_server) as dsn:
        yield dsn


@pytest.fixture(scope="module")
def relay(module_database: str) -> Iterator[RunningRelay]:
    """A relay that no test stops."""
    with living_relay(module_database) as running:
        yield running


@pytest.fixture
def tables(module_database: str) -> str:
    """The DSN of a database with the relay's tables, empty."""
    with psycopg.connect(module_database) as connection:
        connection.execute(SCHEMA)
        connection.execute("TRUNCATE relay.events, relay.owners")
    return module_database


@pytest.fixture
def own_relay(database: str) -> Iterator[RunningRelay]:
    """A relay that the test may kill."""
    running = RunningRelay(database).start()
    yield running
    running.stop()
