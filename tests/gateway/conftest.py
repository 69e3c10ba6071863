"""A gateway in its own process, a lease on it, and an upstream that demands a key."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bench.condition import Limits
from bench.costs import calls_of
from bench.gateway.backoff import Patience
from bench.gateway.client import Lease
from bench.gateway.protocol import Context, Endpoint, Grant, Issue, Registration
from bench.prices import Price, sheet_sha256
from tests.gateway import upstream as standin

PRICES = {"m": Price(3_000_000, 300_000, 3_750_000, 15_000_000, cache_write_1h=6_000_000)}
"""Micro-dollars per million tokens."""

PATIENCE = Patience(retries=2, first_wait_s=0.01, longest_wait_s=60)


@dataclass
class Gateway:
    """A gateway's process and where it is reached."""

    process: subprocess.Popen[bytes]
    home: Path
    url: str

    @property
    def control(self) -> Path:
        return self.home / "control"

    @property
    def log(self) -> str:
        return (self.home / "log").read_text()

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(timeout=30)


def start_gateway(home: Path) -> Gateway:
    """A gateway that serves; its files lie in `home`."""
    ready = home / "ready"
    ready.unlink(missing_ok=True)
    config = {"host": "127.0.0.1", "port": 0, "control": str(home / "control"), "ready_file": str(ready)}
    with (home / "log").open("ab") as log:
        process = subprocess.Popen([sys.executable, "-m", "bench.gateway"], stdin=subprocess.PIPE, stderr=log)
    assert process.stdin is not None
    process.stdin.write(json.dumps(config).encode())
    process.stdin.close()
    while not ready.exists():
        assert process.poll() is None, (home / "log").read_text()
        time.sleep(0.01)
    return Gateway(process, home, f"http://127.0.0.1:{json.loads(ready.read_text())['port']}")


@pytest.fixture
def short_home() -> Iterator[Path]:
    """A directory whose path is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="bzb-gw-") as home:
        yield Path(home)


@pytest.fixture(scope="session")
def gateway() -> Iterator[Gateway]:
    """The gateway that most tests share."""
    with tempfile.TemporaryDirectory(prefix="bzb-gw-") as home:
        running = start_gateway(Path(home))
        yield running
        assert running.stop() == 0, running.log


@pytest.fixture
async def upstream() -> AsyncIterator[standin.Upstream]:
    async with standin.running() as running:
        yield running


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        yield session


@dataclass
class Reply:
    """What a call got."""

    status: int
    headers: dict[str, str]
    data: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.data)


@dataclass
class Job:
    """A registered job, for tests: issues tokens and makes calls."""

    lease: Lease
    http: aiohttp.ClientSession
    receipts_path: Path
    name: str
    tokens: dict[str, Grant] = field(default_factory=dict)

    async def issue(self, agent: str = "worker-1", **fields: Any) -> Grant:
        told = {
            "trial": "t1",
            "task": "hello",
            "member": agent.split("-")[0],
            "endpoint": "anthropic",
            "models": ("m",),
        }
        grant = await self.lease.issue(Issue(agent=agent, **{**told, **fields}))
        self.tokens[agent] = grant
        return grant

    async def call(self, grant: Grant, body: Any = None, *, path: str = "/v1/messages", **headers: str) -> Reply:
        """One model call with a token; `body` replaces the usual one, bytes go as they are."""
        given = (
            {"model": "m", "max_tokens": 50, "messages": [{"role": "user", "content": "hi"}]} if body is None else body
        )
        data = given if isinstance(given, bytes) else json.dumps(given).encode()
        sent = {"x-api-key": grant.token, "content-type": "application/json", **headers}
        async with self.http.post(grant.base_url + path, data=io.BytesIO(data), headers=sent) as response:
            return Reply(response.status, {k.lower(): v for k, v in response.headers.items()}, await response.read())

    @property
    def receipts(self) -> list[dict[str, Any]]:
        """One for each call, the last."""
        return calls_of(self.receipts_path, [])


def registration(
    job: str,
    receipts: Path,
    upstream: standin.Upstream | None = None,
    budget: Limits | None = None,
    key: str = standin.KEY,
) -> Registration:
    """A job with every kind of endpoint."""
    endpoints = {
        "scripted": Endpoint("scripted", dialect="anthropic"),
        "scripted-openai": Endpoint("scripted", dialect="openai"),
    }
    if upstream is not None:
        endpoints["anthropic"] = Endpoint("anthropic", upstream.url, key)
        endpoints["openai"] = Endpoint("openai", upstream.openai_url, key)
    return Registration(
        job=job,
        receipts=str(receipts),
        endpoints=endpoints,
        prices=PRICES,
        prices_sha256=sheet_sha256(PRICES),
        budget=budget,
        patience=PATIENCE,
    )


CONTEXT = Context(channel="c" * 8, user="user", members={"user": "00" * 32, "orch": "aa" * 32, "worker-1": "bb" * 32})


@pytest.fixture
async def job(
    gateway: Gateway, upstream: standin.Upstream, http: aiohttp.ClientSession, tmp_path: Path
) -> AsyncIterator[Job]:
    """A job without a budget on the shared gateway."""
    receipts = tmp_path / "receipts.jsonl"
    async with await Lease.open(gateway.control) as lease:
        await lease.register(registration(tmp_path.name, receipts, upstream))
        yield Job(lease, http, receipts, tmp_path.name)
