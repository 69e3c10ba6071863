"""Trials' handles in PostgreSQL: kept once, for whoever comes later."""

from __future__ import annotations

import psycopg
import pytest

from bench import schema
from bench.errors import BuzzbenchError
from bench.run.handles import HandleStore
from bench.run.keeper import Keeper
from bench.stack import StackAddress
from bench.trial.handles import Handle

HANDLE = Handle("alpha__1", "org/alpha", "c1", "ab" * 32, "cd" * 32, {"orch": "ef" * 32})
EVENT = {"event": "provisioned", **HANDLE.__dict__}


@pytest.fixture
def dsn(database: str) -> str:
    schema.apply(StackAddress("embedded", "", database, "", ""))
    return database


def rows(dsn: str) -> list[tuple[object, ...]]:
    with psycopg.connect(dsn) as connection:
        return connection.execute("SELECT job, trial, channel, agents FROM benchmark.trial_handle").fetchall()


def test_a_handle_is_kept_once_however_often_it_is_stored(dsn: str) -> None:
    store = HandleStore(dsn, "lb-team")
    store.store(HANDLE)
    store.store(HANDLE)
    store.close()
    assert rows(dsn) == [("lb-team", "alpha__1", "c1", {"orch": "ef" * 32})]


def test_a_database_that_does_not_answer_is_said_before_a_trial_begins() -> None:
    with pytest.raises(BuzzbenchError, match=r"PostgreSQL doesn't answer: .*; `inv status`, then `inv up`"):
        Keeper("host=/nowhere dbname=none", "lb-team").open()


def test_a_database_that_goes_away_meanwhile_is_said_once_and_stops_nothing(dsn: str) -> None:
    said: list[str] = []
    keeper = Keeper(dsn, "lb-team")
    keeper.open()
    with psycopg.connect(dsn, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    keeper.see(EVENT, said.append)
    keeper.see(EVENT, said.append)
    assert len(said) == 1
    assert "handles of trials are not kept any more" in said[0]


def test_other_events_are_none_of_its_business(dsn: str) -> None:
    keeper = Keeper(dsn, "lb-team")
    keeper.open()
    keeper.see({"event": "done"}, pytest.fail)
    keeper.see(EVENT, pytest.fail)
    keeper.close()
    assert len(rows(dsn)) == 1
