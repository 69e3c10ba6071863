"""A lease that breaks takes its calls along at once, also those that only a script thinks about: the job can go on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import asdict, replace
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from bench.gateway import cassette, control, service, upstream
from bench.gateway.cassette import Header
from bench.gateway.client import Lease
from bench.gateway.jobs import Principal, Registry
from bench.gateway.protocol import Endpoint, Grant, Recording, Registration
from bench.gateway.script import load_script
from tests.gateway.conftest import CONTEXT, Job, registration
from tests.gateway.test_service import shown
from tests.pipeline import wait_until

SLOW = load_script(
    """
worker:
  - name: think
    expect: ["write part 1"]
    think_s: [600, 600]
    do: [{say: "done"}]
""",
    "test",
).wire


class Inside:
    """A gateway in this process, on real sockets: its calls under way can be seen."""

    def __init__(self, registry: Registry, control_path: Path) -> None:
        self.registry, self.control = registry, control_path

    async def under_way(self, grant: Grant) -> Principal:
        """Return when the agent's call has come in."""
        principal = self.registry.find(grant.token)
        assert principal
        await asyncio.to_thread(wait_until, lambda: bool(principal.open))
        return principal


@pytest.fixture
async def inside(short_home: Path) -> AsyncIterator[Inside]:
    registry, client = Registry(), upstream.session()
    runner = web.ServerRunner(service.server(registry, client), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    path = short_home / "control"
    leases = await control.serve(path, registry, f"http://127.0.0.1:{runner.addresses[0][1]}")
    yield Inside(registry, path)
    leases.close()
    await registry.close()
    await runner.cleanup()
    await client.close()


async def thinking(lease: Lease, http: aiohttp.ClientSession, receipts: Path) -> tuple[Job, Grant]:
    """A job with an agent whose script takes ten minutes for its answer."""
    await lease.register(registration("j", receipts))
    job = Job(lease, http, receipts, "j")
    return job, await job.issue(endpoint="scripted", script=SLOW, context=CONTEXT)


async def test_a_call_that_a_script_thinks_about_is_cut_with_its_lease_and_the_job_goes_on(
    inside: Inside, http: aiohttp.ClientSession, tmp_path: Path
) -> None:
    receipts = tmp_path / "receipts.jsonl"
    lease = await Lease.open(inside.control)
    job, grant = await thinking(lease, http, receipts)
    call = asyncio.create_task(job.call(grant, shown("write part 1")))
    await inside.under_way(grant)
    lease._writer.transport.abort()  # as the kernel does for a process that is killed
    async with asyncio.timeout(30):
        assert ((await call).status, (await call).headers["x-buzzbench-error"]) == (401, "cut")
        async with await Lease.open(inside.control) as again:
            await again.register(registration("j", receipts))
    (receipt,) = job.receipts
    assert (receipt["outcome"], receipt["cost_usd_micros"]) == ("unknown", None)
    assert receipt["charged_usd_micros"] > 0, "its bound"


async def test_a_scripts_call_has_no_more_than_its_grace_when_its_trial_ends(
    inside: Inside, http: aiohttp.ClientSession, tmp_path: Path
) -> None:
    async with await Lease.open(inside.control) as lease:
        job, grant = await thinking(lease, http, tmp_path / "r")
        call = asyncio.create_task(job.call(grant, shown("write part 1")))
        await inside.under_way(grant)
        async with asyncio.timeout(30):
            usage = await lease.revoke("t1", grace_s=0.05)
            assert (await call).status == 401
    assert (usage["worker-1"].calls, usage["worker-1"].unknown_calls) == (1, 1)


async def test_who_goes_on_with_a_job_waits_until_its_end_has_left_its_files(inside: Inside, tmp_path: Path) -> None:
    recording = Recording(str(tmp_path / "cassette.jsonl"), "c", "0" * 64, None)
    wanted = replace(registration("j", tmp_path / "r"), record=recording)
    job = inside.registry.register(wanted, lambda _: None)
    ending = asyncio.create_task(inside.registry.end(job))
    await asyncio.sleep(0)
    assert job.ending is not None
    async with await Lease.open(inside.control) as lease:
        await lease.register(wanted)
        assert ending.done()


async def test_a_lease_that_breaks_while_its_job_is_taken_in_leaves_no_job(inside: Inside, tmp_path: Path) -> None:
    tape = tmp_path / "cassette.jsonl"
    tape.write_bytes(cassette.header_line(Header("j", "c", "0" * 64, None, {"anthropic": "anthropic"})))
    replaying: Registration = replace(
        registration("j", tmp_path / "r"),
        endpoints={"anthropic": Endpoint("replay", dialect="anthropic")},
        replay=str(tape),
    )
    reader, writer = await asyncio.open_unix_connection(inside.control)
    writer.write(json.dumps({"id": 1, "op": "register", **asdict(replaying)}).encode() + b"\n")
    writer.write_eof()
    assert await reader.read() == b""
    writer.close()
    async with await Lease.open(inside.control) as lease:
        await lease.register(replaying)
