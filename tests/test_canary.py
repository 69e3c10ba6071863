"""Providers' keys stay in the gateway and with the caller: canaries are planted in a whole job, and looked for."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import aiohttp
import psycopg
import pytest
from psycopg import sql

from bench import records
from bench.gateway.cassette import FILE_NAME as CASSETTE
from bench.gateway.client import Lease
from bench.gateway.protocol import Endpoint, Issue, Registration
from bench.prices import Price
from bench.reading import jsonl
from bench.stack import address
from tests.canary import KEYS, WANTED, Model, Ran, play, serving
from tests.hidden import search
from tests.pipeline import contents, new_installation, remove

pytestmark = pytest.mark.timeout(180)


@pytest.mark.parametrize(
    "leak",
    [
        "error: bad key {key}",
        '{{"a": "{first}", "b": "{second}"}}',
        "authorization={quoted}",
        "Basic {basic}",
        "x{basic_later}",
    ],
)
def test_every_way_of_leaking_a_key_is_seen(leak: str) -> None:
    key = KEYS["CANARY_LEAD"]
    text = leak.format(
        key=key,
        first=key[: len(key) // 2],
        second=key[len(key) // 2 :],
        quoted=quote(key, safe=""),
        basic=base64.b64encode(f"user:{key}".encode()).decode(),
        basic_later=base64.urlsafe_b64encode(f"ab{key}{key}".encode()).decode(),
    )
    assert search(text.encode(), WANTED)


def test_what_only_looks_like_a_key_is_let_be() -> None:
    assert not search(f"sk-lead {hashlib.sha256(b'event').hexdigest()} sk-help/ CANARY_LEAD".encode(), WANTED)


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with serving() as model:
        yield model


@pytest.fixture(scope="module")
def ran(model: Model) -> Iterator[Ran]:
    installation = new_installation(Path(tempfile.mkdtemp(prefix="bzb-canary-")))
    try:
        yield play(installation, model.url, "-e", "sandbox")
    finally:
        remove(installation)


@pytest.mark.slow
def test_the_upstream_had_its_keys_and_the_team_did_its_work(ran: Ran, model: Model) -> None:
    job = records.read_job(ran.directory)
    assert [(trial.outcome.outcome, trial.outcome.reason) for trial in job.trials] == [("passed", "")]
    assert (model.refused, model.served) == ([], job.spend.calls)
    assert {r["dialect"] for r in jsonl.read(ran.directory / records.RECEIPTS, [])} == {"openai", "anthropic"}


@pytest.mark.slow
def test_no_file_that_is_left_holds_a_key(ran: Ran) -> None:
    files = contents(ran.installation.home)
    assert {name: found for name, data in files.items() if (found := search(data, WANTED))} == {}
    assert not search(ran.output.encode(), WANTED)
    searched = {path.relative_to(ran.installation.home).parts[:2] for path in files}
    assert {("state", "logs"), ("jobs", "canary")} <= searched
    assert ran.directory / CASSETTE in files


@pytest.mark.slow
def test_no_process_but_the_caller_was_given_a_key(ran: Ran) -> None:
    if sys.platform != "linux":
        pytest.skip("only Linux shows every process's arguments and environment")
    assert ran.watch.looks > 20
    services = {ran.installation.service(name) for name in ("postgres", "relay", "gateway")}
    assert services <= ran.watch.seen.keys()
    for part in ("bench.run", "bwrap"):
        assert any(part in command for command in ran.watch.seen.values()), f"{part} was not looked at"
    assert ran.watch.found == set()


@pytest.mark.slow
def test_the_database_holds_no_key(ran: Ran) -> None:
    stack = address(ran.installation.state_dir)
    assert stack
    rows = 0
    tables = (
        "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema IN ('benchmark', 'relay')"
    )
    with psycopg.connect(stack.dsn) as connection:
        names = connection.execute(tables).fetchall()
        assert {schema for schema, _ in names} == {"benchmark", "relay"}
        for name in names:
            for row in connection.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(*name))):
                rows += 1
                assert not search(repr(row).encode(), WANTED), name
    assert rows > 20


@pytest.mark.slow
def test_a_late_call_is_turned_away_and_counted(ran: Ran, model: Model) -> None:
    stack = address(ran.installation.state_dir)
    assert stack
    served = model.served

    async def call_late() -> int:
        async with await Lease.open(stack.gateway_control) as lease:
            endpoints = {"e": Endpoint("anthropic", model.url, KEYS["CANARY_HELPER"])}
            receipts = str(ran.installation.home / "late.jsonl")
            await lease.register(Registration("late", receipts, endpoints, {"m": Price(1, 1, 1, 1)}, ""))
            grant = await lease.issue(Issue("t", "task", "worker-1", "worker", "e", ("m",)))
        body = {"model": "m", "max_tokens": 1, "messages": []}
        async with (
            aiohttp.ClientSession() as http,
            http.post(f"{grant.base_url}/v1/messages", json=body, headers={"x-api-key": grant.token}) as answer,
        ):
            return answer.status

    assert asyncio.run(call_late()) == 401
    assert model.served == served
    assert ran.installation.inv("down").returncode == 0
    log = (ran.installation.state_dir / "logs" / "gateway.log").read_text()
    assert "1 calls came with no known token" in log
