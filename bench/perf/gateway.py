"""What the gateway adds to a call: the same model asked directly and through it, in turns, receipts and budgets on.

LiteLLM's proxy is a third way where it can start; its extras are not in our lock. `pip install 'litellm[proxy]'` into
an environment of its own, and set BUZZBENCH_LITELLM to its `litellm` program.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from statistics import median

import aiohttp
import yaml

from bench.condition import Limits
from bench.errors import BuzzbenchError, InvalidInput
from bench.gateway.client import Lease
from bench.gateway.protocol import Endpoint, Issue, Registration
from bench.perf import Figure
from bench.perf.modelload import Way, calls, chunk_delays
from bench.perf.pipeline import Bench, installation
from bench.perf.timing import quantile, served
from bench.prices import Price
from bench.stack import address

PASSES = 5
SECONDS = 1.5
CLIENTS = 16
STREAMS = 16
PROVIDER_KEY = "sk-perf"
LITELLM = "BUZZBENCH_LITELLM"
READY_S = 60.0


def measure() -> Iterator[Figure]:
    """Added milliseconds for a call, at one and at sixteen clients, and for a streamed chunk; LiteLLM's beside.

    Raises InvalidInput where BUZZBENCH_LITELLM names no program.
    """
    if (program := os.environ.get(LITELLM)) and not shutil.which(program):
        raise InvalidInput.of(LITELLM, f"there is no program {program}", "name LiteLLM's proxy, or unset it")
    with installation(up=False) as bench, served("bench.perf.fakemodel") as port:
        bench.inv("up")
        yield from asyncio.run(_measure(bench, f"http://127.0.0.1:{port}"))


async def _measure(bench: Bench, model: str) -> list[Figure]:
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)))
        direct = Way("direct", model, PROVIDER_KEY)
        ours = await stack.enter_async_context(_through_gateway(bench, model))
        others = [stack.enter_context(_litellm(model))] if os.environ.get(LITELLM) else []
        ways = [direct, ours, *others]
        alone = await _in_turns(http, ways, clients=1)
        many = await _in_turns(http, ways, clients=CLIENTS)
        chunks = [await _chunks(http, ways, streams) for streams in (1, STREAMS)]
    added = [_added(alone, 1), _added(many, 1)]
    figures = [
        Figure("gateway: added to a call, 1 client, p50", added[0], "ms", 1.5, note=_note(alone)),
        Figure(f"gateway: added to a call, {CLIENTS} clients, p50", added[1], "ms", 4.0, note=_note(many)),
        Figure("gateway: added to a chunk, 1 stream, p50", chunks[0], "ms", 0.5),
        Figure(f"gateway: added to a chunk, {STREAMS} streams, p50", chunks[1], "ms", 0.5),
    ]
    if others:
        figures += [
            Figure("gateway: added p50 / LiteLLM's, 1 client", added[0] / _added(alone, 2), "x", 0.1),
            Figure(f"gateway: added p50 / LiteLLM's, {CLIENTS} clients", added[1] / _added(many, 2), "x", 0.1),
            Figure(
                f"gateway: calls per second / LiteLLM's, {CLIENTS} clients",
                _rate(many, 1) / _rate(many, 2),
                "x",
                10.0,
                at_least=True,
            ),
        ]
    else:
        figures.append(Figure("gateway: beside LiteLLM's proxy", 0, "", note=f"not measured: {LITELLM} is not set"))
    return figures


type Taken = list[list[list[float]]]
"""All calls' times: of each way, of each pass."""


async def _in_turns(http: aiohttp.ClientSession, ways: list[Way], *, clients: int) -> Taken:
    """The ways take turns, so that a slow moment hits each."""
    taken: Taken = [[] for _ in ways]
    for way in ways:
        await calls(http, way, clients=clients, seconds=SECONDS / 3)
    for _ in range(PASSES):
        for way, passes in zip(ways, taken, strict=True):
            passes.append(await calls(http, way, clients=clients, seconds=SECONDS))
    return taken


async def _chunks(http: aiohttp.ClientSession, ways: list[Way], streams: int) -> float:
    """What our way, the second, adds to the first one's median delay: the median of pairs."""
    added = []
    for _ in range(PASSES):
        direct, ours = [quantile(await chunk_delays(http, way, streams=streams), 0.5) for way in ways[:2]]
        added.append(ours - direct)
    return median(added)


def _added(taken: Taken, way: int, share: float = 0.5) -> float:
    """What a way adds to the direct one: the median of pairs, each made one after the other."""
    pairs = zip(taken[0], taken[way], strict=True)
    return median(quantile(through, share) - quantile(direct, share) for direct, through in pairs)


def _rate(taken: Taken, way: int) -> float:
    """Calls per second."""
    return sum(map(len, taken[way])) / PASSES / SECONDS


def _note(taken: Taken) -> str:
    direct = median(quantile(times, 0.5) for times in taken[0])
    return f"direct {direct:.2f}, p99 +{_added(taken, 1, 0.99):.1f}, {_rate(taken, 1):.0f} calls/s"


@asynccontextmanager
async def _through_gateway(bench: Bench, model: str) -> AsyncIterator[Way]:
    stack = address(bench.state_dir)
    assert stack
    price = Price(3_000_000, 300_000, 3_750_000, 15_000_000)
    plenty = Limits(usd_micros=10**12, tokens=10**12, calls=10**9)
    lease = await Lease.open(stack.gateway_control)
    try:
        await lease.register(
            Registration(
                job="perf",
                receipts=str(bench.state_dir / "perf-receipts.jsonl"),
                endpoints={"model": Endpoint("openai", f"{model}/v1", PROVIDER_KEY)},
                prices={"m": price},
                prices_sha256="0" * 64,
                budget=plenty,
            )
        )
        grant = await lease.issue(
            Issue(
                trial="perf__1",
                task="perf",
                agent="solo",
                member="solo",
                endpoint="model",
                models=("m",),
                limits=plenty,
                trial_limits=plenty,
                script=None,
                context=None,
            )
        )
        yield Way("gateway", grant.base_url, grant.token)
    finally:
        await lease.close()


@contextmanager
def _litellm(model: str) -> Iterator[Way]:
    """LiteLLM's proxy, one worker, with a master key. Raises BuzzbenchError where it does not come up."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    key = "sk-buzzbench-perf-master-key"
    params = {"model": "openai/m", "api_base": f"{model}/v1", "api_key": PROVIDER_KEY}
    config = {
        "model_list": [{"model_name": "m", "litellm_params": params}],
        "general_settings": {"master_key": key},
    }
    with tempfile.TemporaryDirectory() as home:
        path = Path(home) / "config.yaml"
        path.write_text(yaml.safe_dump(config), encoding="utf-8")
        process = subprocess.Popen(
            [os.environ[LITELLM], "--config", str(path), "--host", "127.0.0.1", "--port", str(port)],
            env=os.environ | {"LITELLM_LOCAL_MODEL_COST_MAP": "True"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            _wait(port, process)
            yield Way("LiteLLM's proxy", f"http://127.0.0.1:{port}", key)
        finally:
            process.terminate()
            process.wait()


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + READY_S
    while process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    raise BuzzbenchError("LiteLLM's proxy did not come up", where=LITELLM)
