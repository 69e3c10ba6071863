"""Who may speak on the websocket: the challenge, its answer, and the owner's word for an agent."""

from __future__ import annotations

import aiohttp
import pytest

from bench.nostr import Key
from tests.relay.running import WAIT_S, RunningRelay

NOT_AUTHENTICATED = "auth-required: not authenticated"


async def test_the_challenge_comes_first_and_the_owner_answers_it(relay: RunningRelay) -> None:
    async with relay.socket() as wire:
        assert len(wire.challenge) == 64
        answer = await wire.authenticate(relay.owner)
        assert answer[0] == "OK"
        assert answer[2:] == [True, ""]


async def test_an_agent_with_the_owners_attestation_is_a_member(relay: RunningRelay) -> None:
    agent, tag = relay.agent()
    async with relay.socket(agent, tag) as wire:
        await wire.silent()


@pytest.mark.parametrize("case", ["none", "a stranger's", "another agent's", "two"])
async def test_whoever_the_owner_does_not_attest_is_no_member(relay: RunningRelay, case: str) -> None:
    key = Key.generate()
    tags = {
        "none": [],
        "a stranger's": [Key.generate().attest(key.public)],
        "another agent's": [relay.agent()[1]],
        "two": [relay.owner.attest(key.public)] * 2,
    }[case]
    async with relay.socket() as wire:
        event = key.sign(22242, "", [["relay", relay.url], ["challenge", wire.challenge], *tags])
        await wire.send("AUTH", event)
        assert await wire.receive() == ["OK", event["id"], False, "restricted: not a relay member"]


async def test_after_a_failed_answer_the_connection_is_dead_for_authentication(relay: RunningRelay) -> None:
    async with relay.socket() as wire:
        right, wire.challenge = wire.challenge, "wrong"
        assert (await wire.authenticate(relay.owner))[2:] == [False, "auth-required: verification failed"]
        wire.challenge = right
        again = await wire.authenticate(relay.owner)
        assert again[2:] == [False, "auth-required: authentication already failed"]


async def test_before_authentication_every_request_says_so(relay: RunningRelay) -> None:
    async with relay.socket() as wire:
        assert await wire.publish(relay.owner.sign(0, "{}")) == [False, NOT_AUTHENTICATED]
        await wire.send("REQ", "s", {})
        assert await wire.receive() == ["NOTICE", NOT_AUTHENTICATED]
        assert await wire.receive() == ["CLOSED", "s", NOT_AUTHENTICATED]
        await wire.send("COUNT", "s", {})
        assert await wire.receive() == ["CLOSED", "s", NOT_AUTHENTICATED]


async def test_a_connection_authenticates_once(relay: RunningRelay) -> None:
    async with relay.socket(relay.owner) as wire:
        again = await wire.authenticate(relay.owner)
        assert again[2:] == [False, "auth-required: already authenticated"]
        assert await wire.publish(relay.owner.sign(0, "{}")) == [True, ""]


@pytest.mark.slow
async def test_who_does_not_authenticate_within_five_seconds_is_shown_out(relay: RunningRelay) -> None:
    async with relay.socket() as wire:
        assert await wire.receive() == ["NOTICE", f"{NOT_AUTHENTICATED} within 5 s"]
        message = await wire.socket.receive(WAIT_S)
        assert message.type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED)
