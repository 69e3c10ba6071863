"""A relay that no test stops, and one that a test may kill."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench.stack.postgres import Postgres
from tests.relay.running import RunningRelay, living_relay, new_database


@pytest.fixture(scope="module")
def relay(postgres_server: Postgres) -> Iterator[RunningRelay]:
    with new_database(postgres_server) as dsn, living_relay(dsn) as running:
        yield running


@pytest.fixture
def mortal(database: str) -> Iterator[RunningRelay]:
    """A relay that the test may kill."""
    running = RunningRelay(database).start()
    yield running
    running.stop()
