"""The control socket: a lease holds a job, and everything dies with it; mistakes are answered, never with a key."""

from __future__ import annotations

import asyncio
import json
import stat
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bench.condition import Limits
from bench.gateway.client import GatewayError, Lease
from bench.gateway.protocol import Endpoint
from bench.prices import Price
from tests.gateway.conftest import CONTEXT, Gateway, Job, registration, start_gateway
from tests.gateway.test_service import SCRIPT, shown
from tests.gateway.upstream import KEY, Upstream


async def test_the_socket_is_for_its_owner_alone(gateway: Gateway) -> None:
    assert stat.S_IMODE(gateway.control.stat().st_mode) == 0o600
    assert stat.S_IMODE((gateway.home / "ready").stat().st_mode) == 0o600


async def test_tokens_are_random_and_long(job: Job) -> None:
    tokens = {(await job.issue(f"worker-{n}")).token for n in range(20)}
    assert len(tokens) == 20
    assert min(map(len, tokens)) >= 43


async def test_when_the_lease_ends_every_token_is_dead(job: Job, upstream: Upstream) -> None:
    upstream.gate.clear()
    one, two = await job.issue(), await job.issue("worker-2")
    under_way = asyncio.create_task(job.call(one))
    await upstream.arrived.acquire()
    await job.lease.close()
    assert (await under_way).status == 401
    assert (await job.call(two)).status == 401
    (receipt,) = job.receipts
    assert receipt["outcome"] == "unknown"
    assert receipt["charged_usd_micros"] > 0


HOLDER = """
import asyncio, json, sys
from bench.gateway.client import Lease
from bench.gateway.protocol import Endpoint, Issue, Registration
from bench.prices import Price

async def main():
    control, url, key, receipts = json.loads(sys.stdin.readline())
    lease = await Lease.open(control)
    endpoints, prices = {"e": Endpoint("anthropic", url, key)}, {"m": Price(1, 1, 1, 1)}
    await lease.register(Registration("killed", receipts, endpoints, prices, ""))
    grant = await lease.issue(Issue("t", "hello", "w", "w", "e", ("m",)))
    print(grant.token, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


async def test_a_killed_job_leaves_dead_tokens_and_can_come_back(
    gateway: Gateway, upstream: Upstream, job: Job, tmp_path: Path
) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLDER, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    receipts = tmp_path / "killed.jsonl"
    process.stdin.write(json.dumps([str(gateway.control), upstream.url, KEY, str(receipts)]).encode() + b"\n")
    await process.stdin.drain()
    token = (await process.stdout.readline()).decode().strip()
    grant = replace(await job.issue(), token=token)
    assert (await job.call(grant)).status == 200
    async with await Lease.open(gateway.control) as other:
        with pytest.raises(GatewayError, match="job killed is running: another process holds its lease"):
            await other.register(registration("killed", receipts))
    process.kill()
    await process.wait()
    while (reply := await job.call(grant)).status == 200:
        pass
    assert reply.status == 401
    budget = Limits(calls=1)
    async with await Lease.open(gateway.control) as again:
        await again.register(registration("killed", receipts, upstream, budget))
        back = Job(again, job.http, receipts, "killed")
        refused = await back.call(await back.issue())
    assert refused.status == 402, "earlier calls count against the job's budget"
    assert refused.json["error"]["message"].startswith("Buzzbench budget: the job killed has a cap of 1 call: ")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"endpoint": "nowhere"}, "worker-1: endpoint 'nowhere' is not registered; there are: "),
        ({"models": ("dear",)}, "worker-1: model 'dear' has no price"),
        ({"endpoint": "scripted"}, "worker-1: a scripted endpoint needs `script` and `context`"),
        (
            {"endpoint": "scripted", "script": {"w": [{"name": "a"}]}, "context": CONTEXT},
            "script of hello: w[0].do: is missing",
        ),
    ],
)
async def test_an_agent_that_does_not_fit_the_job_is_refused(job: Job, change: dict[str, Any], message: str) -> None:
    with pytest.raises(GatewayError) as raised:
        await job.issue(**change)
    assert str(raised.value).startswith(f"the gateway refused `issue`: {message}")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"endpoints": {"e": Endpoint("anthropic", "api.x", KEY)}}, "endpoint e: 'api.x' is no http(s) address"),
        ({"prices": {"m": Price(-1, 0, 0, 0)}}, "prices of m: a price is negative"),
        ({"receipts": "/nowhere/r.jsonl"}, "receipts /nowhere/r.jsonl: No such file or directory"),
        ({"endpoints": {"e": {"provider": "x", "api_key": KEY}}}, "endpoints.e.provider: "),
    ],
)
async def test_a_job_that_cannot_be_served_is_refused_without_its_keys(
    gateway: Gateway, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    async with await Lease.open(gateway.control) as lease:
        with pytest.raises(GatewayError) as raised:
            await lease.register(replace(registration("odd", tmp_path / "r"), **change))
    assert message in str(raised.value)
    assert KEY not in str(raised.value)
    assert KEY not in gateway.log


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b"{", "no request: JSONDecodeError"),
        (b"[1]", "no request: TypeError"),
        (b'{"id": 1}', "'op' is missing"),
        (b'{"id": 1, "op": "dance"}', "there is no op 'dance'"),
        (b'{"id": 1, "op": "usage", "trial": "t"}', "register a job first"),
    ],
)
async def test_a_line_that_is_no_request_is_answered(gateway: Gateway, line: bytes, error: str) -> None:
    reader, writer = await asyncio.open_unix_connection(gateway.control)
    writer.write(line + b"\n")
    reply = json.loads(await reader.readline())
    assert (reply["ok"], reply["error"]) == (False, error)
    writer.close()
    await writer.wait_closed()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
async def test_no_answer_goes_out_when_its_receipt_cannot_be_written(
    gateway: Gateway, upstream: Upstream, http: aiohttp.ClientSession
) -> None:
    async with await Lease.open(gateway.control) as lease:
        await lease.register(registration("full", Path("/dev/full"), upstream))
        job = Job(lease, http, Path("/dev/full"), "full")
        grant = await job.issue(endpoint="scripted", script=SCRIPT, context=CONTEXT)
        async with lease.notices("t1") as notices:
            reply = await job.call(grant, shown("write part 1"))
            notice = await anext(notices)
    reason = "the receipt can't be written: No space left on device"
    assert (reply.status, reply.json["error"]["message"]) == (500, reason)
    assert (notice.kind, notice.reason) == ("receipts_failed", reason)


async def test_a_lease_registers_one_job(job: Job, tmp_path: Path) -> None:
    with pytest.raises(GatewayError, match=f"this lease has job {job.name} already"):
        await job.lease.register(registration("second", tmp_path / "r"))


async def test_no_gateway_is_an_error_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(GatewayError, match="no gateway answers: No such file or directory; run `inv up`"):
        await Lease.open(tmp_path / "none")


async def test_a_gateway_that_dies_is_told_to_whoever_listens(short_home: Path, tmp_path: Path) -> None:
    gateway = start_gateway(short_home)
    lease = await Lease.open(gateway.control)
    await lease.register(registration("j", tmp_path / "r"))
    async with lease.notices("t") as notices:
        gateway.process.kill()
        gateway.process.wait()
        heard = [notice async for notice in notices]
    assert [(n.kind, n.reason) for n in heard] == [("gateway_lost", "the gateway ended the connection")]
    with pytest.raises(GatewayError, match="the gateway ended the connection"):
        await lease.usage("t")
    async with lease.notices("t") as notices:
        assert (await anext(notices)).kind == "gateway_lost", "also to those who come late"
    await lease.close()
    again = start_gateway_over(short_home)
    assert again.stop() == 0


async def test_sigterm_books_what_is_under_way(
    short_home: Path, upstream: Upstream, http: aiohttp.ClientSession, tmp_path: Path
) -> None:
    gateway = start_gateway(short_home)
    upstream.gate.clear()
    async with await Lease.open(gateway.control) as lease:
        await lease.register(registration("j", tmp_path / "r", upstream))
        job = Job(lease, http, tmp_path / "r", "j")
        grant = await job.issue()
        call = asyncio.create_task(job.call(grant))
        await upstream.arrived.acquire()
        gateway.process.terminate()
        assert (await call).status == 401
        assert await asyncio.to_thread(gateway.process.wait, 30) == 0
    assert [r["outcome"] for r in job.receipts] == ["unknown"]
    assert not gateway.control.exists()


async def test_a_second_gateway_leaves_the_first_ones_socket_alone(gateway: Gateway, short_home: Path) -> None:
    config = {"host": "127.0.0.1", "port": 0, "control": str(gateway.control), "ready_file": str(short_home / "r")}
    code, errors = await run_gateway(json.dumps(config))
    assert (code, errors) == (1, f"{gateway.control}: another gateway listens there")
    async with await Lease.open(gateway.control):
        pass


async def test_a_configuration_that_is_none_is_an_error() -> None:
    code, errors = await run_gateway('{"host": "127.0.0.1"}')
    assert code == 2
    assert errors.startswith("standard input: no configuration of the gateway (KeyError: 'port'); give ")


async def test_the_provider_key_is_nowhere_but_in_memory(job: Job, gateway: Gateway, upstream: Upstream) -> None:
    grant = await job.issue()
    await job.call(grant)
    upstream.ledger.clear()
    with pytest.raises(GatewayError):
        await job.issue(models=("dear",))
    process = Path("/proc") / str(gateway.process.pid)
    seen = [path.read_bytes() for path in (*gateway.home.iterdir(), job.receipts_path) if path.is_file()]
    if process.exists():
        seen += [(process / "cmdline").read_bytes(), (process / "environ").read_bytes()]
    seen.append(repr((registration("x", job.receipts_path, upstream), grant)).encode())
    assert len(seen) > 4
    assert not any(KEY.encode() in data or grant.token.encode() in data for data in seen)


def start_gateway_over(home: Path) -> Gateway:
    """A gateway where a killed one left its files."""
    (home / "ready").unlink()
    assert (home / "control").exists()
    return start_gateway(home)


async def run_gateway(config: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.gateway", stdin=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    _, errors = await process.communicate(config.encode())
    assert process.returncode is not None
    return process.returncode, errors.decode().strip()
