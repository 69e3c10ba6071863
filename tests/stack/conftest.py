"""Servers and states that a test may hurt."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from bench.stack.postgres import Postgres


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A directory whose path is short enough for unix sockets."""
    with _short_path() as path:
        yield path


@pytest.fixture
def new_server(postgres_server: Postgres, short_path: Path) -> Iterator[Postgres]:
    """A server of the test's own that has no database yet."""
    made = _in(short_path, postgres_server)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def module_server(postgres_server: Postgres) -> Iterator[Postgres]:
    with _short_path() as path:
        made = _in(path, postgres_server)
        made.ensure()
        yield made
        made.stop()


@pytest.fixture
def server(module_server: Postgres) -> Postgres:
    """A running server that a test may stop and kill as it likes: the next finds it healed."""
    module_server.ensure()
    return module_server


@contextmanager
def _short_path() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="bzb-test-"))
    try:
        yield path
    finally:
        shutil.rmtree(path)


def _in(path: Path, like: Postgres) -> Postgres:
    return replace(like, data_dir=path / "pg18", socket_dir=path, log=path / "postgres.log")
