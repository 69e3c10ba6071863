"""Many clients, an upstream that breaks off, and a gateway that is killed twice: the books still add up.

`inv stress` makes 10,000 calls of it (issue 6: "receipts equal the upstream's ledger exactly").
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bench import costs
from bench.condition import Limits
from bench.gateway.backoff import Patience
from bench.gateway.client import Lease
from bench.gateway.ledger import Amount
from bench.gateway.protocol import Endpoint, Grant, Issue, Registration
from bench.prices import UNKNOWN, Tokens, bound_usd_micros, cost_usd_micros, sheet_sha256
from tests.gateway import unruly
from tests.gateway.conftest import PRICES, Gateway, start_gateway
from tests.gateway.unruly import Billed, Unruly
from tests.gateway.upstream import KEY, sha256

TRIALS = 8
PATHS = {"anthropic": "/v1/messages", "openai": "/v1/chat/completions"}
ONE_ATTEMPT = Patience(retries=0, first_wait_s=0.001)
STREAMED, FOR_AN_HOUR = 0.5, 0.3
IMPATIENT, PATIENCE_S = 0.1, 0.02
"""The part of the calls whose clients go away, and within which time they do."""


@dataclass(frozen=True)
class Agent:
    """One client, how many calls it makes, and how many there are. Some have caps that bite before their end."""

    number: int
    calls: int
    clients: int

    @property
    def name(self) -> str:
        return f"agent-{self.number}"

    @property
    def trial(self) -> str:
        return f"trial-{self.number % TRIALS}"

    @property
    def endpoint(self) -> str:
        return ("anthropic", "openai")[self.number % 2]

    @property
    def limits(self) -> Limits:
        """A call costs about 500 micro-dollars, has some 200 tokens, and reserves three times as much."""
        return Limits(
            usd_micros=300 * self.calls + 3_000 if self.number % 4 == 0 else None,
            tokens=100 * self.calls + 1_000 if self.number % 5 == 0 else None,
            calls=self.calls // 3 + 1 if self.number % 6 == 0 else None,
        )

    @property
    def trial_limits(self) -> Limits:
        """Of the first two trials alone."""
        number, agents = self.number % TRIALS, self.clients // TRIALS
        return Limits(
            usd_micros=300 * self.calls * agents + 10_000 if number == 0 else None,
            calls=self.calls * agents // 2 if number == 1 else None,
        )

    def body(self, number: int, chance: random.Random) -> bytes:
        bound = "max_tokens" if self.endpoint == "anthropic" else "max_completion_tokens"
        text = f"call {number} " + "x" * chance.randint(0, 200)
        streamed: dict[str, Any] = (
            {"stream": True, "stream_options": {"include_usage": True}} if chance.random() < STREAMED else {}
        )
        if bound == "max_tokens":
            streamed.pop("stream_options", None)
            if chance.random() < FOR_AN_HOUR:
                streamed["cache_control"] = {"type": "ephemeral", "ttl": "1h"}
        return json.dumps(
            {"model": "m", bound: chance.randint(1, 60), "messages": [{"role": "user", "content": text}], **streamed}
        ).encode()


@dataclass
class World:
    """A job that outlives its gateway, its clients, and what they were told."""

    home: Path
    receipts: Path
    upstream: Unruly
    agents: list[Agent]
    budget: Limits
    chance: random.Random
    gateway: Gateway = field(init=False)
    lease: Lease = field(init=False)
    grants: dict[str, Grant] = field(default_factory=dict)
    serving: asyncio.Event = field(default_factory=asyncio.Event)
    kill_at: frozenset[int] = frozenset()
    kills: list[asyncio.Task[None]] = field(default_factory=list)
    sent: dict[str, bytes] = field(default_factory=dict)
    told: Counter[str] = field(default_factory=Counter)
    answered: set[str] = field(default_factory=set)

    async def start(self) -> None:
        """A gateway with the job, which goes on, and a token for each agent."""
        self.gateway = await asyncio.to_thread(start_gateway, self.home)
        self.lease = await Lease.open(self.gateway.control)
        endpoints = {
            "anthropic": Endpoint("anthropic", self.upstream.url, KEY),
            "openai": Endpoint("openai", f"{self.upstream.url}/v1", KEY),
        }
        sheet = sheet_sha256(PRICES)
        await self.lease.register(
            Registration(
                "chaos", str(self.receipts), endpoints, PRICES, sheet, budget=self.budget, patience=ONE_ATTEMPT
            )
        )
        for agent in self.agents:
            issue = Issue(
                agent.trial, "task", agent.name, "agent", agent.endpoint, ("m",), agent.limits, agent.trial_limits
            )
            self.grants[agent.name] = await self.lease.issue(issue)
        self.serving.set()

    async def kill(self) -> None:
        """Kill the gateway amid its work, and start another."""
        self.gateway.process.kill()
        await asyncio.to_thread(self.gateway.process.wait)
        await self.lease.close()
        await self.start()

    async def client(self, http: aiohttp.ClientSession, agent: Agent) -> None:
        """Make the agent's calls, one after the other; nobody calls while there is no gateway."""
        for _ in range(agent.calls):
            await self.serving.wait()
            body = agent.body(len(self.sent), self.chance)
            self.sent[sha256(body)] = body
            if len(self.sent) in self.kill_at:
                self.serving.clear()
                self.kills.append(asyncio.create_task(self.kill()))
            self.told[await self._call(http, agent, body)] += 1

    async def _call(self, http: aiohttp.ClientSession, agent: Agent, body: bytes) -> str:
        grant = self.grants[agent.name]
        headers = {"x-api-key": grant.token, "content-type": "application/json"}
        patience_s = self.chance.uniform(0, PATIENCE_S) if self.chance.random() < IMPATIENT else None
        try:
            async with (
                asyncio.timeout(patience_s),
                http.post(grant.base_url + PATHS[agent.endpoint], data=body, headers=headers) as answer,
            ):
                await answer.read()
        except TimeoutError:
            return "gone away"
        except aiohttp.ClientPayloadError:
            return "cut short"
        except aiohttp.ClientError:
            return "gateway lost"
        if answer.status == 200:
            self.answered.add(sha256(body))
        return answer.headers.get("x-buzzbench-error") or str(answer.status)


async def play(home: Path, receipts: Path, calls: int, clients: int, seed: int) -> World:
    """Make the calls, with two kills of the gateway on the way, and end it in order."""
    agents = [Agent(number, calls // clients + (number < calls % clients), clients) for number in range(clients)]
    budget = Limits(usd_micros=400 * calls, tokens=200 * calls, calls=calls)
    async with unruly.running(random.Random(seed)) as upstream:
        world = World(home, receipts, upstream, agents, budget, random.Random(seed + 1))
        world.kill_at = frozenset((calls // 3, 2 * calls // 3))
        await world.start()
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
            await asyncio.gather(*(world.client(http, agent) for agent in agents))
        await asyncio.gather(*world.kills)
        await world.lease.close()
        assert await asyncio.to_thread(world.gateway.stop) == 0
    return world


@pytest.mark.parametrize(
    ("calls", "clients"),
    [(200, 16), pytest.param(10_000, 64, marks=[pytest.mark.stress, pytest.mark.timeout(900)])],
)
async def test_receipts_and_caps_hold_through_disconnects_cuts_and_two_kills(
    short_home: Path, tmp_path: Path, calls: int, clients: int
) -> None:
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")
    world = await play(short_home, tmp_path / "receipts.jsonl", calls, clients, seed)
    receipts = costs.calls_of(world.receipts, [])
    made = {receipt["request_sha256"]: receipt for receipt in receipts if receipt["outcome"] != "refused"}
    outcomes = Counter(receipt["outcome"] for receipt in receipts)
    print(dict(world.told), dict(outcomes), Counter(entry.fate for entry in world.upstream.ledger.values()))

    assert (sum(world.told.values()), len(world.kills)) == (calls, 2)
    assert {
        "200",
        "500",
        "upstream",
        "agent_budget",
        "trial_budget",
        "gone away",
        "gateway lost",
        "cut short",
    } <= world.told.keys()
    assert outcomes["open"] > 0, "the kills found calls under way"
    assert len(made) == sum(receipt["outcome"] != "refused" for receipt in receipts), "one receipt each"
    assert world.upstream.ledger.keys() <= made.keys(), "no call went out without one"
    assert world.answered <= {digest for digest, receipt in made.items() if receipt["outcome"] == "ok"}
    for digest, receipt in made.items():
        check(receipt, world.sent[digest], world.upstream.ledger.get(digest))
    check_caps(world, made.values())
    spend = sum(costs.by_trial(receipts).values(), costs.NOTHING)
    known = [digest for digest, receipt in made.items() if receipt["cost_usd_micros"] is not None]
    assert spend.calls == len(made)
    assert spend.unknown_calls == len(made) - len(known)
    assert spend.cost_usd_micros == sum(cost(world.upstream.ledger[digest].tokens) for digest in known)


def check(receipt: dict[str, Any], body: bytes, billed: Billed | None) -> None:
    """A completed call's receipt is the ledger's entry; a cut one's is charged its bound, never below the entry."""
    wanted = json.loads(body)
    output = wanted.get("max_tokens") or wanted["max_completion_tokens"]
    for_an_hour = "cache_control" in wanted
    bound = bound_usd_micros(PRICES["m"], prompt_tokens=len(body), output_tokens=output, for_an_hour=for_an_hour)
    tokens = costs.tokens_of(receipt)
    charged = receipt["charged_usd_micros"], receipt["charged_tokens"]
    match receipt["outcome"]:
        case "ok":
            assert billed is not None
            assert (billed.fate, tokens) == ("whole", billed.tokens)
            assert receipt["cost_usd_micros"] == cost(tokens)
            assert charged == (cost(tokens), tokens.total)
        case "error":
            assert billed is not None
            assert (billed.fate, charged) == ("failed", (0, 0))
        case "unknown" if receipt["cost_usd_micros"] is not None:
            assert billed is not None, "a stream that was cut after its report"
            assert tokens == billed.tokens
            assert charged == (receipt["cost_usd_micros"], tokens.total) == (cost(tokens), tokens.total)
        case "unknown" | "open":
            assert receipt["cost_usd_micros"] is None
            assert tokens.output is None, "of a stream that was cut the prompt may be known"
            assert tokens == UNKNOWN or (billed is not None and tokens.prompt == billed.tokens.prompt)
            assert charged == (bound, len(body) + output)
            assert billed is None or cost(billed.tokens) <= bound
        case other:
            pytest.fail(f"an outcome {other}")


def check_caps(world: World, made: Iterable[dict[str, Any]]) -> None:
    """No cap was passed, at any scope, in any unit."""
    sums: dict[tuple[str, str], Amount] = {}
    for receipt in made:
        charge = Amount(receipt["charged_usd_micros"], receipt["charged_tokens"], 1)
        for scope in (("agent", receipt["agent"]), ("trial", receipt["trial"]), ("job", "chaos")):
            sums[scope] = sums.get(scope, Amount()) + charge
    caps = {("job", "chaos"): world.budget}
    for agent in world.agents:
        caps |= {("agent", agent.name): agent.limits, ("trial", agent.trial): agent.trial_limits}
    for scope, limits in caps.items():
        for unit in ("usd_micros", "tokens", "calls"):
            cap = getattr(limits, unit)
            assert cap is None or getattr(sums.get(scope, Amount()), unit) <= cap, (scope, unit)


def cost(tokens: Tokens) -> int:
    found = cost_usd_micros(PRICES["m"], tokens)
    assert found is not None
    return found
