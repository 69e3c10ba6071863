"""What the gateway itself answers: forged, dead and mistaken calls, in each dialect's own form; and scripted models."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from bench.condition import Limits
from bench.gateway.protocol import Grant
from bench.gateway.script import load_script
from tests.gateway.conftest import CONTEXT, Gateway, Job
from tests.gateway.upstream import Upstream, sha256

CHAT = "/v1/chat/completions"
TOOLS = [{"name": n} for n in ("shell", "send_message", "done")]
SCRIPT = load_script(
    """
worker:
  - name: write
    expect: ["write part {{index}}"]
    do:
      - run: "echo {{index}}"
      - send: {mention: [orch], text: "REPORT {{index}}", reply: true}
""",
    "test",
).wire


async def test_healthz_answers(job: Job, gateway: Gateway) -> None:
    async with job.http.get(f"{gateway.url}/healthz") as response:
        assert (response.status, await response.json()) == (200, {"ok": True})


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/v1/models"), ("GET", "/v1/messages"), ("POST", "/v1/embeddings")]
)
async def test_other_paths_say_what_there_is(job: Job, gateway: Gateway, method: str, path: str) -> None:
    async with job.http.request(method, gateway.url + path) as response:
        assert (response.status, response.headers["x-buzzbench-error"]) == (404, "not_found")
        message = (await response.json())["error"]["message"]
    assert message == (
        f"there is no {method} {path} here, only POST /v1/messages, POST /v1/chat/completions, POST /v1/responses"
    )


async def test_clients_of_anthropic_are_told_so_in_their_own_form(job: Job, gateway: Gateway) -> None:
    headers = {"anthropic-version": "2023-06-01"}
    async with job.http.post(f"{gateway.url}/v1/messages/count_tokens", headers=headers) as response:
        assert (response.status, (await response.json())["error"]["type"]) == (404, "not_found_error")


@pytest.mark.parametrize("token", ["", "forged"])
async def test_a_forged_token_is_unauthorized(job: Job, gateway: Gateway, upstream: Upstream, token: str) -> None:
    anthropic = await job.call(Grant(token, gateway.url))
    assert (anthropic.status, anthropic.json["error"]["type"]) == (401, "authentication_error")
    assert anthropic.json["error"]["message"] == (
        "this gateway knows no such token: it was never issued, or its job has ended"
    )
    openai = await job.call(Grant(token, gateway.url), path=CHAT)
    assert (openai.status, openai.json["error"]["code"]) == (401, "unauthorized")
    assert upstream.ledger == []


async def test_a_late_call_is_refused_and_counted(job: Job, upstream: Upstream) -> None:
    grant = await job.issue()
    await job.call(grant)
    await job.lease.revoke("t1")
    late = await job.call(grant)
    assert (late.status, late.headers["x-buzzbench-error"]) == (401, "revoked")
    assert late.json["error"]["message"] == "this token is dead: the agent's trial or its job has ended"
    assert len(upstream.ledger) == 1
    usage = (await job.lease.usage("t1"))["worker-1"]
    assert (usage.calls, usage.refused_calls) == (1, 1)
    assert [r["outcome"] for r in job.receipts] == ["ok", "refused"]


async def test_a_new_token_replaces_the_agents_old_one(job: Job) -> None:
    old, new = await job.issue(), await job.issue()
    assert (await job.call(old)).status == 401
    assert (await job.call(new)).status == 200
    assert (await job.lease.usage("t1"))["worker-1"].refused_calls == 1


async def test_another_trials_token_counts_for_its_own_trial_and_opens_no_other(job: Job, upstream: Upstream) -> None:
    mine = await job.issue(models=("m",), trial_limits=Limits(calls=1))
    other = await job.issue(trial="t2", endpoint="openai", trial_limits=Limits(calls=5))
    assert (await job.call(mine)).status == 200
    assert (await job.call(other)).status == 403, "the other trial's endpoint is not this one's"
    assert (await job.call(other, path=CHAT)).status == 200
    await job.lease.revoke("t1")
    assert (await job.call(mine)).status == 401
    assert (await job.call(other, path=CHAT)).status == 200, "one trial's end is not the other's"
    usage = (await job.lease.usage("t1"))["worker-1"], (await job.lease.usage("t2"))["worker-1"]
    assert [(used.calls, used.refused_calls) for used in usage] == [(1, 1), (2, 1)]


async def test_a_model_outside_the_list_is_forbidden(job: Job) -> None:
    body = {"model": "dear", "max_tokens": 5, "messages": []}
    reply = await job.call(await job.issue(), body)
    assert (reply.status, reply.json["error"]["type"]) == (403, "permission_error")
    assert reply.json["error"]["message"] == "worker-1 may not call model 'dear'; allowed: m"


async def test_models_to_fall_back_to_are_forbidden(job: Job) -> None:
    body = {"model": "m", "models": ["dear"], "max_tokens": 5, "messages": []}
    reply = await job.call(await job.issue(endpoint="openai"), body, path=CHAT)
    assert (reply.status, reply.json["error"]["code"]) == (403, "model")
    assert reply.json["error"]["message"] == "worker-1 may name one model only: leave out `models`"


async def test_the_other_dialect_is_forbidden_with_the_right_path(job: Job) -> None:
    reply = await job.call(await job.issue(), path=CHAT)
    assert (reply.status, reply.json["error"]["code"]) == (403, "endpoint")
    assert reply.json["error"]["message"] == "endpoint anthropic speaks anthropic: call /v1/messages instead"
    reply = await job.call(await job.issue(endpoint="openai"))
    assert reply.json["error"]["message"] == (
        "endpoint openai speaks openai: call /v1/chat/completions or /v1/responses instead"
    )
    grant = await scripted(job, "scripted-openai")
    reply = await job.call(grant, {"model": "m", "input": "x"}, path="/v1/responses")
    assert reply.json["error"]["message"] == (
        "endpoint scripted-openai speaks openai: call /v1/chat/completions instead"
    )


@pytest.mark.parametrize("path", ["/v1/messages", CHAT, "/v1/responses"])
@pytest.mark.parametrize(
    ("body", "status", "code", "message"),
    [
        (b"{", 400, "bad_request", "the body is no JSON"),
        (b"[]", 400, "bad_request", "the body is no JSON object"),
        ({"messages": [], "input": []}, 400, "bad_request", "`model` is missing"),
        (
            {"model": "dear", "messages": [], "input": []},
            403,
            "model",
            "worker-1 may not call model 'dear'; allowed: m",
        ),
        (b" " * (32 * 1024 * 1024 + 1), 413, "too_large", "the body is over 32 MB"),
    ],
    ids=["no-json", "no-object", "no-model", "other-model", "too-large"],
)
async def test_a_bad_request_says_what_is_wrong_in_the_dialects_own_form(
    job: Job, upstream: Upstream, path: str, body: Any, status: int, code: str, message: str
) -> None:
    is_anthropic = path == "/v1/messages"
    reply = await job.call(await job.issue(endpoint="anthropic" if is_anthropic else "openai"), body, path=path)
    assert (reply.status, reply.headers["x-buzzbench-error"]) == (status, code)
    error = reply.json["error"]
    assert error["message"].startswith(message)
    if is_anthropic:
        kinds = {400: "invalid_request_error", 403: "permission_error", 413: "request_too_large"}
        assert (reply.json["type"], error["type"]) == ("error", kinds[status])
    else:
        kind = "permission_error" if status == 403 else "invalid_request_error"
        assert error == {"message": error["message"], "type": kind, "param": None, "code": code}
    assert upstream.ledger == []
    assert job.receipts[0]["outcome"] == "refused"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            {"model": "m", "messages": []},
            "a budget holds for this call, so it needs a bound: set max_tokens (or the like), or have the manifest say "
            "prices.m.max_output_tokens",
        ),
        (
            {
                "model": "m",
                "max_tokens": 1,
                "messages": [
                    {"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "http:x"}}]}
                ],
            },
            "a budget holds for this call, so send its images and files inline, not by reference",
        ),
    ],
)
async def test_under_a_budget_each_call_needs_a_bound(job: Job, body: Any, message: str) -> None:
    reply = await job.call(await job.issue(limits=Limits(usd_micros=10**9)), body)
    assert (reply.status, reply.json["error"]["message"]) == (400, message)
    assert (await job.call(await job.issue(limits=Limits(calls=9)), body)).status == 200


async def test_a_cap_refuses_with_a_reason_for_people_and_a_notice(job: Job, upstream: Upstream) -> None:
    grant = await job.issue(limits=Limits(calls=1))
    async with job.lease.notices("t1") as notices:
        assert (await job.call(grant)).status == 200
        reply = await job.call(grant)
        notice = await anext(notices)
    reason = (
        "the agent worker-1 has a cap of 1 call: 1 call spent, 0 calls reserved by calls under way, and this call "
        "may take 1 call"
    )
    assert (reply.status, reply.headers["x-buzzbench-error"]) == (402, "agent_budget")
    assert reply.json["error"] == {
        "type": "billing_error",
        "message": f"Buzzbench budget: {reason}. This call was not sent.",
    }
    assert (notice.kind, notice.trial, notice.agent, notice.reason) == ("agent_budget", "t1", "worker-1", reason)
    assert (await job.lease.usage("t1"))["worker-1"].capped_calls == 1


async def test_each_scopes_cap_has_its_own_name_and_notice(job: Job, upstream: Upstream) -> None:
    """An agent may meet its own cap first and the trial's later: each is told."""
    one = await job.issue(limits=Limits(calls=1), trial_limits=Limits(calls=2))
    two = await job.issue("worker-2", trial_limits=Limits(calls=2))
    async with job.lease.notices("t1") as notices:
        first, own, second, trials = [await job.call(grant) for grant in (one, one, two, two)]
        later = await job.issue(limits=None, trial_limits=Limits(calls=2))
        again = await job.call(later)
        kinds = [(notice.agent, notice.kind) for notice in [await anext(notices) for _ in range(3)]]
    assert (first.status, second.status) == (200, 200)
    assert [reply.headers["x-buzzbench-error"] for reply in (own, trials, again)] == [
        "agent_budget",
        "trial_budget",
        "trial_budget",
    ]
    assert kinds == [("worker-1", "agent_budget"), ("worker-2", "trial_budget"), ("worker-1", "trial_budget")]
    usage = await job.lease.usage("t1")
    assert (usage["worker-1"].capped_calls, usage["worker-2"].capped_calls) == (1, 0)


async def test_parallel_calls_never_pass_a_cap(job: Job, upstream: Upstream) -> None:
    cap = 30_000
    upstream.usage_of = lambda number, body: {
        "input_tokens": len(json.dumps(body)),
        "output_tokens": body["max_tokens"],
    }
    grants = [await job.issue(f"worker-{n}", trial_limits=Limits(usd_micros=cap)) for n in range(4)]
    replies = await asyncio.gather(*(job.call(grants[n % 4]) for n in range(64)))
    assert {r.status for r in replies} == {200, 402}
    assert len([r for r in replies if r.status == 200]) == len(upstream.ledger) > 10
    spent = sum(r["cost_usd_micros"] for r in job.receipts)
    assert spent == sum(u.cost_usd_micros or 0 for u in (await job.lease.usage("t1")).values()) <= cap


async def test_a_call_waits_while_calls_under_way_hold_its_room(job: Job, upstream: Upstream) -> None:
    upstream.gate.clear()
    grant = await job.issue(limits=Limits(usd_micros=1_500))
    calls = [asyncio.create_task(job.call(grant)) for _ in range(2)]
    await upstream.arrived.acquire()
    await job.lease.usage("t1")
    assert upstream.arrived.locked(), "the second call has not gone out"
    upstream.gate.set()
    assert [(await call).status for call in calls] == [200, 200]


async def scripted(job: Job, endpoint: str = "scripted", **fields: Any) -> Grant:
    return await job.issue(endpoint=endpoint, script=SCRIPT, context=CONTEXT, **fields)


def shown(text: str, **fields: Any) -> dict[str, Any]:
    block = f"[Buzz event: @mention]\nEvent ID: {'ab' * 32}\nContent: {text}\n"
    return {"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": block}], "tools": TOOLS, **fields}


async def test_the_scripted_model_answers_with_tool_calls_and_a_receipt(job: Job) -> None:
    grant = await scripted(job)
    reply = await job.call(grant, shown("write part 1"))
    assert reply.status == 200
    assert [(b["name"], b["input"]) for b in reply.json["content"]] == [
        ("shell", {"command": "echo 1"}),
        ("send_message", {"text": "REPORT 1", "mention": ["orch"], "reply_to": "ab" * 32}),
    ]
    (receipt,) = job.receipts
    assert (receipt["provider"], receipt["model"], receipt["outcome"]) == ("scripted", "m", "ok")
    assert receipt["cost_usd_micros"] > 0


async def test_the_scripted_model_speaks_openai(job: Job) -> None:
    grant = await scripted(job, "scripted-openai")
    tools = [{"type": "function", "function": {"name": "buzz-dev-mcp__shell"}}]
    reply = await job.call(grant, shown("write part 1", tools=tools), path=CHAT)
    (call,) = reply.json["choices"][0]["message"]["tool_calls"]
    assert call["function"]["name"] == "buzz-dev-mcp__shell"
    assert json.loads(call["function"]["arguments"])["command"] == (
        "(\necho 1\n)\n(\nbuzz messages send --channel cccccccc '--content=REPORT 1' "
        f"--mention {'aa' * 32} --reply-to {'ab' * 32}\n)"
    )


@pytest.mark.parametrize(("endpoint", "path"), [("scripted", "/v1/messages"), ("scripted-openai", CHAT)])
async def test_the_scripted_model_streams_to_clients_that_ask_for_it(job: Job, endpoint: str, path: str) -> None:
    tools = [{"type": "function", "function": tool, **tool} for tool in TOOLS]
    reply = await job.call(await scripted(job, endpoint), shown("write part 1", tools=tools, stream=True), path=path)
    assert reply.headers["content-type"] == "text/event-stream"
    assert b"echo 1" in reply.data
    assert b'"usage":{"prompt_tokens"' not in reply.data, "the client did not ask"
    (receipt,) = job.receipts
    assert (receipt["outcome"], receipt["tool_calls"], receipt["response_sha256"]) == ("ok", 2, sha256(reply.data))
    assert receipt["cost_usd_micros"] > 0


@pytest.mark.parametrize(
    ("messages", "kind", "reason"),
    [
        (["sing"], "script_mismatch", "step 'write' of worker-1 expected 'write part 1', but was shown: 'sing'"),
        (
            ["write part 1", "more"],
            "script_exhausted",
            "worker-1 has no step left (its last was 'write'), but was shown: 'more'",
        ),
    ],
)
async def test_a_script_fault_is_an_error_and_a_notice(job: Job, messages: list[str], kind: str, reason: str) -> None:
    grant = await scripted(job)
    async with job.lease.notices("t1") as notices:
        for number, text in enumerate(messages):
            body = shown(text)
            body["messages"][0]["content"] = body["messages"][0]["content"].replace("ab", f"{number:02x}")
            reply = await job.call(grant, body)
        notice = await anext(notices)
    assert (reply.status, reply.headers["x-buzzbench-error"]) == (422, kind)
    assert reply.json["error"] == {"type": "invalid_request_error", "message": f"{kind}: {reason}"}
    assert (notice.kind, notice.reason) == (kind, reason)
    assert (job.receipts[-1]["outcome"], job.receipts[-1]["cost_usd_micros"]) == ("error", 0)


async def test_a_tool_that_is_not_offered_is_a_mismatch(job: Job) -> None:
    reply = await job.call(await scripted(job), shown("write part 1", tools=[{"name": "done"}]))
    assert reply.json["error"]["message"] == (
        "script_mismatch: step 'write' of worker-1: the tool 'shell' is not offered: done"
    )


async def test_a_scripted_models_calls_count_against_a_budget(job: Job) -> None:
    grant = await scripted(job, limits=Limits(usd_micros=10))
    assert (await job.call(grant, shown("write part 1"))).status == 402
