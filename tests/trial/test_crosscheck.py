"""What agents report is on the relay for their owner alone: asked there, and held against receipts."""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from bench.channel import RelayClient, RelayRefused
from bench.nostr import Key
from bench.prices import Tokens
from bench.trial import crosscheck
from bench.trial.calls import Call
from tests.standins import programs
from tests.trial.services import Stack
from tests.trial.test_selfreport import metric


def call(agent: str) -> Call:
    """A turn of one call: 100 tokens in, 5 out."""
    return Call(agent, 0.0, 1.0, "ok", 200, Tokens(10, 80, 10, 5), 0)


async def test_the_owner_reads_what_agents_reported(shared_stack: Stack) -> None:
    owner, lead, worker = shared_stack.state.owner, Key.generate(), Key.generate()
    url = shared_stack.address.relay_url
    async with aiohttp.ClientSession() as http:
        client = RelayClient(url, lead, auth_tag=owner.attest(lead.public), session=http)
        await client.connect()
        await client.publish(metric(lead, "a", 1, 40, 2, to=owner))
        await client.publish(metric(lead, "a", 2, 100, 5, to=owner))
        with pytest.raises(RelayRefused):
            await client.query([{"kinds": [44200], "#p": [owner.public]}])
        await client.close()
        session: Any = SimpleNamespace(owner=owner, http=http, provisioner=SimpleNamespace(relay_ws_url=url))
        seats = [
            SimpleNamespace(key=key, agent=SimpleNamespace(name=name))
            for name, key in (("orch", lead), ("worker-1", worker))
        ]
        cast: Any = SimpleNamespace(seats=seats)
        check = await crosscheck.of_trial(session, cast, [call("orch"), call("worker-1")], stopped_at=100.0)
    assert {name: compared.verdict for name, compared in check.agents.items()} == {
        "orch": "agrees",
        "worker-1": "missing",
    }
    assert check.labels == ("self_report_missing",)


@pytest.mark.parametrize("length", [1, 31, 32, 33, 256, 257, 900, 5000])
def test_what_the_stand_ins_encrypt_their_owner_can_read(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oracle is the library that Buzz's own owner would use."""
    monkeypatch.syspath_prepend(str(programs.SOURCE))
    nip44, nostr = importlib.import_module("nip44"), importlib.import_module("nostr")
    owner, agent = Key.generate(), Key.generate()
    sealed = nip44.encrypt(nostr.Key(agent.secret).shared_x(owner.public), "é" + "x" * (length - 1))
    assert owner.decrypt(agent.public, sealed) == "é" + "x" * (length - 1)
