"""Model calls over a real socket: what each failure becomes. The upstream is a fake at the wire."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from bench.harness.models import GatewayUnreachable, Model, ModelFailed
from bench.harness.talk import Generation, Reply, Said
from tests.harness.test_dialects import ANTHROPIC_ANSWER


class Upstream:
    """Answers every call with what the test set."""

    def __init__(self) -> None:
        self.response = web.json_response(ANTHROPIC_ANSWER)
        self.requests: list[Any] = []
        app = web.Application()
        app.router.add_post("/v1/messages", self.answer)
        self.server = TestServer(app)

    async def answer(self, request: web.Request) -> web.Response:
        self.requests.append((dict(request.headers), await request.json()))
        return self.response


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    made = Upstream()
    await made.server.start_server()
    yield made
    await made.server.close()


async def ask(base_url: str) -> Reply:
    async with aiohttp.ClientSession() as http:
        model = Model(http, base_url=base_url, token="T", dialect="anthropic", generation=Generation("m", 100))
        return await model.complete(system="s", conversation=[Said("hello")], tools=[])


async def test_a_call_carries_the_token_and_brings_the_answer(upstream: Upstream) -> None:
    reply = await ask(str(upstream.server.make_url("")))
    assert reply.text == "I look."
    headers, body = upstream.requests[0]
    assert (headers["x-api-key"], body["model"]) == ("T", "m")


async def test_an_upstreams_error_keeps_its_status_and_message(upstream: Upstream) -> None:
    error = {"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}}
    upstream.response = web.json_response(error, status=401)
    with pytest.raises(ModelFailed, match="401 authentication_error: invalid x-api-key") as caught:
        await ask(str(upstream.server.make_url("")))
    assert (caught.value.status, caught.value.refusal) == (401, "")


async def test_the_gateways_own_refusal_is_told_apart(upstream: Upstream) -> None:
    error = {"error": {"message": "Buzzbench budget: …", "code": "trial_budget"}}
    upstream.response = web.json_response(error, status=402, headers={"x-buzzbench-error": "trial_budget"})
    with pytest.raises(ModelFailed) as caught:
        await ask(str(upstream.server.make_url("")))
    assert caught.value.refusal == "trial_budget"


@pytest.mark.parametrize(
    ("response", "kind"),
    [
        (web.Response(text="<html>", status=502), "not_json"),
        (web.json_response({"content": 3}), "unexpected_form"),
        (web.json_response("down", status=500), "error"),
    ],
)
async def test_an_answer_of_another_form_is_a_failure_of_the_call(
    upstream: Upstream, response: web.Response, kind: str
) -> None:
    upstream.response = response
    with pytest.raises(ModelFailed) as caught:
        await ask(str(upstream.server.make_url("")))
    assert caught.value.kind == kind


async def test_a_gateway_that_is_gone_is_no_models_failure(upstream: Upstream) -> None:
    url = str(upstream.server.make_url(""))
    await upstream.server.close()
    with pytest.raises(GatewayUnreachable, match="the gateway doesn't answer"):
        await ask(url)
