"""The forwarder, compiled once for all tests, and peers to lead it to."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from bench.xbuild.forwarder import build_here
from tests.forwarder.running import Echo, Forwarder, forwarder


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("rustc") is None:
        pytest.skip("the forwarder needs rustc")
    return build_here(tmp_path_factory.mktemp("forwarder"))


@pytest.fixture
def forward(program: Path) -> Iterator[Callable[..., Forwarder]]:
    """Starts forwarders with these pairs; they are ended with the test."""
    with ExitStack() as started:

        def start(*pairs: str) -> Forwarder:
            return started.enter_context(forwarder(program, *pairs))

        yield start


@pytest.fixture
def echo() -> Iterator[Echo]:
    with Echo(("127.0.0.1", 0)) as peer:
        yield peer
