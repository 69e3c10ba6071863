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


TWO = """
orch:
  - name: delegate
    expect: ["make the file"]
    do:
      - send: {mention: [worker-1], text: "please write it"}
  - name: look
    expect: ["REPORT"]
    do:
      - run: "sleep 4"
  - name: finish
    on: result
    do:
      - done: "all of it"
worker-1:
  - name: report
    expect: ["please write it"]
    do:
      - send: {mention: [orch], text: "REPORT"}
worker-2: []
"""


async def test_real_agents_are_held_to_what_they_reported(real: Any) -> None:
    """The orchestrator's last turn was killed, and is not due; a worker that was never asked owes nothing."""
    trial = await real.trial(real.bench.task("reported", TWO))
    await trial.run()
    assert trial.facts["labels"] == []
    told = trial.facts["self_report"]
    assert {name: facts["verdict"] for name, facts in told.items()} == {
        "orch": "agrees",
        "worker-1": "agrees",
        "worker-2": "nothing_due",
    }
    assert told["worker-1"]["metered_input_tokens"] == told["worker-1"]["input_tokens"] > 0


async def test_real_agents_that_report_nothing_are_labelled(real: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Case 23."""
    monkeypatch.setattr("bench.trial.selfreport.METRIC", 44_299)
    trial = await real.trial(real.bench.task("silent-adapter", TWO))
    await trial.run()
    assert trial.facts["labels"] == ["self_report_missing"]
    assert trial.facts["self_report"]["worker-1"]["verdict"] == "missing"
    assert trial.facts["self_report"]["worker-1"]["metered_input_tokens"] > 0
