"""The HTTP bridge, call by call: who may, in which form it answers, and what it says when something is wrong."""

from __future__ import annotations

import json
import uuid

import aiohttp
import pytest

from bench.nostr import Key, tag_value, verified
from tests.relay.running import RunningRelay, add, create

NOT_A_MEMBER = {
    "error": "relay_membership_required",
    "message": "You must be a relay member to access this relay",
}
UNKNOWN_HOST = {"error": "relay: no community is configured for this host"}


async def test_an_event_is_accepted_in_the_form_of_the_wire(relay: RunningRelay) -> None:
    channel, event = create(relay.owner)
    answer = {"event_id": event["id"], "accepted": True, "message": ""}
    assert await relay.post("/events", event, relay.owner) == (200, answer)
    assert await relay.post("/events", event, relay.owner) == (200, {**answer, "message": "duplicate:"})
    again = relay.owner.sign(9007, "", [["h", channel], ["name", "again"]])
    exists = {"event_id": again["id"], "accepted": False, "message": "duplicate: channel already exists"}
    assert await relay.post("/events", again, relay.owner) == (200, exists)


async def test_a_rejected_event_is_an_error_with_its_status(relay: RunningRelay) -> None:
    channel, event = create(relay.owner)
    await relay.post("/events", event, relay.owner)
    agent, tag = relay.agent()
    cases = [
        (relay.owner, relay.owner.sign(4, "x"), 400, "restricted: unknown event kind"),
        (relay.owner, relay.owner.sign(9, "x"), 400, "invalid: channel-scoped events must include an h tag"),
        (relay.owner, {**event, "sig": "0" * 128, "id": "0" * 64}, 400, "invalid: bad id or signature"),
        (relay.owner, relay.owner.sign(20001, "on"), 400, "invalid: kind 20001 is only accepted via WebSocket"),
        (
            relay.owner,
            agent.sign(0, "{}"),
            403,
            "invalid: event pubkey does not match authenticated identity",
        ),
        (agent, agent.sign(9, "x", [["h", channel]]), 400, "restricted: not a channel member"),
    ]
    for key, given, status, text in cases:
        sent_tag = tag if key is agent else None
        assert await relay.post("/events", given, key, tag=sent_tag) == (status, {"error": text})


async def test_a_query_answers_with_a_list_of_events_filter_by_filter(relay: RunningRelay) -> None:
    channel, event = create(relay.owner)
    await relay.post("/events", event, relay.owner)
    message = relay.owner.sign(9, "hello", [["h", channel]])
    await relay.post("/events", message, relay.owner)
    by_kind, by_id = {"#h": [channel], "kinds": [9]}, {"ids": [message["id"]]}
    assert await relay.post("/query", [by_kind], relay.owner) == (200, [message])
    assert await relay.post("/query", [by_kind, by_id], relay.owner) == (200, [message, message])
    assert await relay.post("/count", [by_kind, by_id], relay.owner) == (200, {"count": 1})


async def test_a_query_has_any_number_of_filters_and_pages_by_until_and_id(relay: RunningRelay) -> None:
    wanted = {"kinds": [9], "limit": 0}
    assert await relay.post("/query", [wanted] * 11, relay.owner) == (200, [])
    assert await relay.post("/query", [], relay.owner) == (200, [])
    assert await relay.post("/count", [], relay.owner) == (200, {"count": 0})
    text = "invalid: before_id is an event's id, and needs until beside it"
    for bad in ({"before_id": "a" * 64}, {"before_id": "a", "until": 1}):
        assert await relay.post("/query", [{**wanted, **bad}], relay.owner) == (400, {"error": text})


async def test_a_reaction_is_answered_as_a_duplicate_until_it_is_taken_back(relay: RunningRelay) -> None:
    channel, event = create(relay.owner)
    await relay.post("/events", event, relay.owner)
    message = relay.owner.sign(9, "hello", [["h", channel]])
    await relay.post("/events", message, relay.owner)
    first, again, other = (
        relay.owner.sign(7, emoji, [["e", message["id"]], ["x", x]]) for emoji, x in (("", "1"), ("+", "2"), ("-", "3"))
    )
    for given, accepted, text in ((first, True, ""), (again, False, "duplicate: reaction already exists")):
        answer = {"event_id": given["id"], "accepted": accepted, "message": text}
        assert await relay.post("/events", given, relay.owner) == (200, answer)
    assert (await relay.post("/events", other, relay.owner))[1]["accepted"] is True
    await relay.post("/events", relay.owner.sign(5, "", [["e", first["id"]]]), relay.owner)
    assert (await relay.post("/events", again, relay.owner))[1]["accepted"] is True


async def test_messages_are_searched_by_whole_words(relay: RunningRelay) -> None:
    channel, event = create(relay.owner)
    await relay.post("/events", event, relay.owner)
    message = relay.owner.sign(9, "Two needles, one haystack", [["h", channel]])
    edit = relay.owner.sign(40003, "needles", [["h", channel], ["e", message["id"]]])
    nul = relay.owner.sign(9, "needles \0", [["h", channel]])
    for given in (message, edit):
        assert (await relay.post("/events", given, relay.owner))[0] == 200
    assert (await relay.post("/events", nul, relay.owner))[0] == 400
    for search, found in (("NEEDLES", [message]), ("haystack two", [message]), ("needle", []), ("", [])):
        wanted = {"kinds": [9, 40003], "#h": [channel], "search": search}
        assert await relay.post("/query", [wanted], relay.owner) == (200, found), search


async def test_an_outsider_finds_nothing_of_a_private_channel(relay: RunningRelay) -> None:
    channel, event = create(relay.owner)
    await relay.post("/events", event, relay.owner)
    agent, tag = relay.agent()
    for wanted in ({"#h": [channel], "kinds": [9]}, {"#d": [channel], "kinds": [39000]}, {"ids": [event["id"]]}):
        assert await relay.post("/query", [wanted], agent, tag=tag) == (200, [])
        assert await relay.post("/count", [wanted], agent, tag=tag) == (200, {"count": 0})
    await relay.post("/events", add(relay.owner, channel, agent.public), relay.owner)
    status, found = await relay.post("/query", [{"kinds": [39002], "#p": [agent.public]}], agent, tag=tag)
    assert (status, [tag_value(each, "d") for each in found]) == (200, [channel])


async def test_gated_kinds_need_ones_own_p(relay: RunningRelay) -> None:
    text = "restricted: p-gated kinds require #p tag matching your pubkey"
    assert await relay.post("/query", [{"kinds": [44200]}], relay.owner) == (403, {"error": text})
    # One that names no kinds asks for those, too: of a channel as well, by this way.
    for everything in ({}, {"#h": [str(uuid.uuid4())]}, {"authors": [relay.owner.public]}):
        assert await relay.post("/query", [everything], relay.owner) == (403, {"error": text})
    assert await relay.post("/query", [{"ids": ["00" * 32]}], relay.owner) == (200, [])
    assert await relay.post("/query", [{"kinds": [44200], "ids": ["00" * 32]}], relay.owner) == (403, {"error": text})
    own = {"kinds": [44200], "#p": [relay.owner.public]}
    assert await relay.post("/query", [own], relay.owner) == (200, [])


async def test_an_agent_needs_its_attestation_with_each_call(relay: RunningRelay) -> None:
    agent, tag = relay.agent()
    assert await relay.post("/query", [{"kinds": [9], "limit": 0}], agent) == (403, NOT_A_MEMBER)
    assert await relay.post("/query", [{"kinds": [9], "limit": 0}], agent, tag=tag) == (200, [])
    assert await relay.post("/query", [{"kinds": [9], "limit": 0}], agent) == (403, NOT_A_MEMBER)
    stranger = Key.generate().attest(agent.public)
    assert await relay.post("/query", [{"kinds": [9], "limit": 0}], agent, tag=stranger) == (403, NOT_A_MEMBER)


async def test_an_agent_known_from_its_websocket_needs_the_header_all_the_same(relay: RunningRelay) -> None:
    agent, tag = relay.agent()
    async with relay.socket(agent, tag):
        assert await relay.post("/query", [{"kinds": [9], "limit": 0}], agent) == (403, NOT_A_MEMBER)


async def test_a_request_is_good_once_and_for_its_body_only(relay: RunningRelay) -> None:
    url, body = f"{relay.http_url}/query", b'[{"kinds":[9],"limit":0}]'
    proof = {"Authorization": relay.owner.authorize("POST", url, body)}
    async with aiohttp.ClientSession(headers=proof) as session:
        statuses = []
        for sent in (b"[{}]", body, body):
            async with session.post(url, data=sent) as response:
                statuses.append((response.status, await response.json()))
    wrong = "auth-required: NIP-98: payload is not the SHA-256 of the body"
    assert statuses[0] == (401, {"error": wrong})
    assert statuses[1] == (200, [])
    assert statuses[2] == (401, {"error": "auth-required: NIP-98: this event was used before"})
    status, answer = await relay.post("/query", [], relay.owner, headers={"Authorization": "none"})
    assert (status, answer) == (
        401,
        {"error": "auth-required: the Authorization header needs a NIP-98 event"},
    )


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        (b"{", 400, "invalid: not JSON: "),
        (b'["\\ud800"]', 400, "invalid: the text holds a lone surrogate, which is not valid Unicode"),
        (b"{}", 400, "invalid: a query is a list of filters"),
        (b"[5]", 400, "invalid: a filter is a JSON object"),
        (b"[" + b" " * (1024 * 1024) + b"]", 413, "the body exceeds 1048576 bytes"),
    ],
    ids=["broken", "surrogate", "no list", "no filter", "too long"],
)
async def test_a_bad_body_is_refused(relay: RunningRelay, body: bytes, status: int, text: str) -> None:
    got, answer = await relay.post("/query", body, relay.owner)
    assert got == status
    assert answer["error"].startswith(text)


@pytest.mark.parametrize("path", ["/events", "/query", "/count"])
async def test_another_host_is_told_that_it_is_unknown(relay: RunningRelay, path: str) -> None:
    assert await relay.post(path, [], relay.owner, headers={"Host": "relay.example"}) == (404, UNKNOWN_HOST)
    wrong_port = {"Host": f"localhost:{relay.port + 1}"}
    assert await relay.post(path, [], relay.owner, headers=wrong_port) == (404, UNKNOWN_HOST)


async def test_a_websocket_to_another_host_is_refused(relay: RunningRelay) -> None:
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
            await session.ws_connect(relay.url, headers={"Host": "relay.example"})
    assert caught.value.status == 404


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "[::1]"])
async def test_the_loopback_names_are_one(relay: RunningRelay, name: str) -> None:
    url = f"http://{name}:{relay.port}/query"
    proof = {"Authorization": relay.owner.authorize("POST", url, b'[{"kinds":[9],"limit":0}]')}
    async with aiohttp.ClientSession(headers=proof) as session:
        try:
            async with session.post(url, data=b'[{"kinds":[9],"limit":0}]') as response:
                assert (response.status, await response.json()) == (200, [])
            async with session.ws_connect(url.replace("http", "ws").replace("/query", "/")) as socket:
                challenge = (await socket.receive_json())[1]
                answer = relay.owner.answer_challenge(challenge, f"ws://{name}:{relay.port}")
                await socket.send_json(["AUTH", answer])
                assert (await socket.receive_json())[2] is True
        except aiohttp.ClientConnectorError:
            assert name == "[::1]", "a machine may lack IPv6"


async def test_health_and_information_need_no_host_and_no_key(relay: RunningRelay) -> None:
    anywhere = {"Host": "anywhere"}
    assert await relay.get("/_readiness", **anywhere) == (200, b'{"status":"ready"}')
    assert await relay.get("/_liveness", **anywhere) == (200, b'{"status":"alive"}')
    assert await relay.get("/health", **anywhere) == (200, b"ok")
    for path in ("/", "/info"):
        status, body = await relay.get(path, Accept="application/nostr+json", **anywhere)
        told = json.loads(body)
        assert (status, told["self"]) == (200, relay.key.public)
        assert told["limitation"]["max_message_length"] == 524_288
        assert told["limitation"]["auth_required"] is True


async def test_a_presence_can_be_asked_for_though_it_is_not_stored(relay: RunningRelay) -> None:
    agent, tag = relay.agent()
    asked = {"kinds": [40902], "authors": [agent.public, relay.owner.public]}
    async with relay.socket(agent, tag) as wire:
        await wire.publish(agent.sign(20001, "away"))
        status, [answer] = await relay.post("/query", [asked], relay.owner)
        assert status == 200
        assert verified(answer)
        assert (answer["pubkey"], answer["content"]) == (relay.key.public, "away")
        assert answer["tags"] == [["p", agent.public]]
        await wire.publish(agent.sign(20001, "offline"))
        assert await relay.post("/query", [asked], relay.owner) == (200, [])


async def test_an_agents_profile_decides_who_adds_it(relay: RunningRelay) -> None:
    (agent, tag), (other, other_tag) = relay.agent(), relay.agent()
    policy = agent.sign(10100, '{"channel_add_policy":"owner_only"}')
    assert (await relay.post("/events", policy, agent, tag=tag))[0] == 200
    channel, event = create(other)
    assert (await relay.post("/events", event, other, tag=other_tag))[0] == 200
    text = "invalid: the key's profile lets it be added by owner_only"
    addition = add(other, channel, agent.public)
    assert await relay.post("/events", addition, other, tag=other_tag) == (400, {"error": text})
    mine, event = create(relay.owner)
    await relay.post("/events", event, relay.owner)
    assert (await relay.post("/events", add(relay.owner, mine, agent.public), relay.owner))[0] == 200


async def test_a_deleted_channel_is_gone_for_good(relay: RunningRelay) -> None:
    channel, event = create(relay.owner)
    await relay.post("/events", event, relay.owner)
    deletion = relay.owner.sign(9008, "", [["h", channel]])
    assert (await relay.post("/events", deletion, relay.owner))[0] == 200
    assert await relay.post("/query", [{"#h": [channel], "kinds": [9, 9007]}], relay.owner) == (200, [])
    message = relay.owner.sign(9, "x", [["h", channel]])
    gone = (400, {"error": "restricted: not a channel member"})
    assert await relay.post("/events", message, relay.owner) == gone
    anew = relay.owner.sign(9007, "", [["h", channel], ["name", "anew"]])
    answer = (await relay.post("/events", anew, relay.owner))[1]
    assert answer["message"] == "duplicate: channel already exists"


async def test_unknown_paths_are_not_found(relay: RunningRelay) -> None:
    assert (await relay.get(f"/{uuid.uuid4()}"))[0] == 404
