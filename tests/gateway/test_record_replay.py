"""A job is recorded through a real gateway at a fake upstream, and played again through it without one."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from bench.condition import Limits
from bench.gateway import cassette
from bench.gateway.client import GatewayError, Lease
from bench.gateway.protocol import Context, Endpoint, Grant, Recording, Registration
from bench.nostr import Key
from tests.gateway.conftest import Gateway, Job, Reply, registration
from tests.gateway.upstream import KEY, Upstream

EVENTS = [f"{n:02x}" * 32 for n in range(1, 40)]


def context(channel: str = "6f1c0f3e-1111-4222-8333-944444444444") -> Context:
    """Another trial: fresh keys and a fresh channel."""
    return Context(channel, "user", {name: Key.generate().public for name in ("user", "orch", "worker-1", "worker-2")})


@dataclass
class Run:
    """One run of a team at the gateway: who asks what, in the order of the test."""

    job: Job
    context: Context = field(default_factory=context)
    trial: str = "t__1"
    grants: dict[str, Grant] = field(default_factory=dict)
    talks: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    async def ask(self, agent: str, text: str, **more: Any) -> Reply:
        """The agent's next call: its conversation so far, and a text."""
        if agent not in self.grants:
            self.grants[agent] = await self.job.issue(
                agent, trial=self.trial, task="buzz/hello", context=self.context, **more
            )
        talk = self.talks.setdefault(agent, [])
        talk.append({"role": "user", "content": [{"type": "text", "text": text}]})
        reply = await self.job.call(self.grants[agent], {"model": "m", "max_tokens": 50, "messages": talk})
        if reply.status == 200:
            talk.append({"role": "assistant", "content": reply.json["content"]})
        return reply

    async def end(self) -> None:
        await self.job.lease.revoke(self.trial)


@asynccontextmanager
async def leased(gateway: Gateway, http: aiohttp.ClientSession, given: Registration) -> AsyncIterator[Job]:
    async with await Lease.open(gateway.control) as lease:
        await lease.register(given)
        yield Job(lease, http, Path(given.receipts), given.job)


@dataclass
class Studio:
    """Records jobs, and plays what was recorded."""

    gateway: Gateway
    http: aiohttp.ClientSession
    upstream: Upstream
    home: Path

    @property
    def tape(self) -> Path:
        return self.home / cassette.FILE_NAME

    def recording(self, **changes: Any) -> Any:
        given = registration(f"{self.home.name}-rec", self.home / "recorded.jsonl", self.upstream)
        recording = Recording(str(self.tape), "team", "ab" * 32)
        return leased(self.gateway, self.http, replace(given, record=recording, **changes))

    def replaying(self, tape: Path | None = None, **changes: Any) -> Any:
        given = registration(f"{self.home.name}-rep", self.home / "replayed.jsonl")
        endpoints = {name: Endpoint("replay", dialect=name) for name in ("anthropic", "openai")}
        replayed = replace(given, endpoints=endpoints, replay=str(tape or self.tape), **changes)
        return leased(self.gateway, self.http, replayed)


@pytest.fixture
def studio(gateway: Gateway, http: aiohttp.ClientSession, upstream: Upstream, tmp_path: Path) -> Studio:
    return Studio(gateway, http, upstream, tmp_path)


def says(upstream: Upstream, *texts: str, **headers: str) -> None:
    """Let the upstream answer these texts, one after the other."""
    left = list(texts)

    async def respond(request: web.Request) -> web.StreamResponse:
        usage = {"input_tokens": 10 * len(left), "output_tokens": len(left)}
        content = [{"type": "text", "text": left.pop(0)}]
        return web.json_response({"id": "msg_01", "content": content, "usage": usage}, headers=headers)

    upstream.respond = respond


def tokens(receipts: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    classes = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
    return [(r["agent"], r["outcome"], r["status"], *(r[name] for name in classes)) for r in receipts]


async def test_a_replay_needs_no_upstream_and_its_answers_speak_of_this_run(studio: Studio, upstream: Upstream) -> None:
    says(upstream, f"I answer {EVENTS[0]} after 0.31 s", "done")
    async with studio.recording() as job:
        run = Run(job)
        await run.ask("orch", f"Event ID: {EVENTS[0]}, took 0.31 s, in #{run.context.channel}")
        await run.ask("orch", f"Event ID: {EVENTS[1]}")
        await run.end()
        recorded = job.receipts
    upstream.respond = None
    async with studio.replaying() as job:
        again = Run(job, context("0a0b0c0d-1111-4222-8333-944444444444"))
        first = await again.ask("orch", f"Event ID: {EVENTS[7]}, took 0.99 s, in #{again.context.channel}")
        second = await again.ask("orch", f"Event ID: {EVENTS[8]}")
        assert first.json["content"][0]["text"] == f"I answer {EVENTS[7]} after 0.99 s"
        assert second.json["content"][0]["text"] == "done"
        replayed = job.receipts
    assert tokens(replayed) == tokens(recorded)
    assert upstream.ledger == []
    assert {r["provider"] for r in replayed} == {"replay"}
    assert {r["cassette_sha256"] for r in replayed} == {cassette.read(studio.tape).sha256}
    assert {r["cost_usd_micros"] for r in replayed} == {0}
    assert [r["charged_usd_micros"] for r in replayed] == [r["cost_usd_micros"] for r in recorded]
    assert {r["cassette_sha256"] for r in recorded} == {None}


async def test_neither_keys_nor_tokens_nor_identities_are_on_a_cassette(studio: Studio, upstream: Upstream) -> None:
    encoded = base64.b64encode(KEY.encode()).decode()
    says(upstream, f"your key is {KEY}, {encoded}", secret_header=KEY)
    async with studio.recording() as job:
        run = Run(job)
        await run.ask("orch", "hi")
        grant = run.grants["orch"]
        secret = Key.generate()
        await run.ask("orch", f"env: TOKEN={grant.token} KEY={KEY} {secret.nsec} {secret.secret}")
        await run.end()
    text = studio.tape.read_text()
    for value in (KEY, encoded, grant.token, secret.nsec, secret.secret, *run.context.members.values()):
        assert value not in text
    assert "your key is [secret], [secret]" in text


async def test_the_order_of_answers_stays_however_fast_they_are(studio: Studio, upstream: Upstream) -> None:
    """worker-1 was slow, and orch heard worker-2 first: in the replay, too."""
    says(upstream, "w2", "heard w2", "w1", "heard w1")
    async with studio.recording() as job:
        run = Run(job)
        await run.ask("worker-2", "task 2")
        await run.ask("orch", "report of w2")
        await run.ask("worker-1", "task 1")
        await run.ask("orch", "report of w1")
        await run.end()
    async with studio.replaying() as job:
        again = Run(job)
        early = asyncio.create_task(again.ask("worker-1", "task 1"))
        await again.ask("worker-2", "task 2")
        assert not early.done()
        await again.ask("orch", "report of w2")
        assert (await early).json["content"][0]["text"] == "w1"
        assert (await again.ask("orch", "report of w1")).status == 200


async def test_each_attempt_at_a_task_plays_its_own(studio: Studio, upstream: Upstream) -> None:
    says(upstream, "first", "second")
    async with studio.recording() as job:
        for number in (1, 2):
            run = Run(job, trial=f"t__{number}")
            await run.ask("orch", "go")
            await run.end()
    async with studio.replaying() as job:
        texts = [(await Run(job, trial=f"other__{n}").ask("orch", "go")).json["content"][0]["text"] for n in (1, 2)]
    assert texts == ["first", "second"]


async def test_errors_of_the_upstream_are_played_as_they_came(studio: Studio, upstream: Upstream) -> None:
    async def down(request: web.Request) -> web.StreamResponse:
        return web.json_response({"error": {"type": "x", "message": "no"}}, status=403)

    upstream.respond = down
    async with studio.recording() as job:
        run = Run(job)
        recorded = await run.ask("orch", "go")
        await run.end()
    async with studio.replaying() as job, job.lease.notices("t__1") as notices:
        again = Run(job)
        replayed = await again.ask("orch", "go")
        assert (replayed.status, replayed.json) == (recorded.status, recorded.json)
        assert (await anext(notices)).kind == "upstream_refused"


async def test_a_call_that_was_cut_waits_for_the_trials_end_again(studio: Studio, upstream: Upstream) -> None:
    upstream.gate.clear()
    async with studio.recording() as job:
        run = Run(job)
        waiting = asyncio.create_task(run.ask("orch", "go"))
        await upstream.arrived.acquire()
        await run.end()
        assert (await waiting).status == 401
    assert cassette.read(studio.tape).calls[0].answer is None
    async with studio.replaying() as job:
        again = Run(job)
        waiting = asyncio.create_task(again.ask("orch", "go"))
        done, _ = await asyncio.wait({waiting}, timeout=0.3)
        assert not done
        await again.end()
        assert (await waiting).status == 401
        assert [r["outcome"] for r in job.receipts] == ["unknown"]


async def test_a_call_after_the_recorded_end_waits_and_is_none_when_the_trial_ends(
    studio: Studio, upstream: Upstream
) -> None:
    """In the recording the trial was over before the agent came to it."""
    says(upstream, "done")
    async with studio.recording() as job:
        run = Run(job)
        await run.ask("orch", "go")
        await run.end()
    async with studio.replaying() as job, job.lease.notices("t__1") as notices:
        again = Run(job)
        await again.ask("orch", "go")
        more = asyncio.create_task(again.ask("orch", "more"))
        done, _ = await asyncio.wait({more}, timeout=0.3)
        assert not done
        usage = await job.lease.revoke("t__1")
        assert (await more).status == 401
        assert (usage["orch"].calls, usage["orch"].unknown_calls) == (1, 0)
        assert [r["outcome"] for r in job.receipts] == ["ok", "refused"]
        nothing = asyncio.ensure_future(anext(notices))
        assert not (await asyncio.wait({nothing}, timeout=0.1))[0]
        nothing.cancel()


async def test_what_was_not_recorded_is_a_fault_that_shows_the_nearest_and_the_first_difference(
    studio: Studio, upstream: Upstream
) -> None:
    says(upstream, "one", "two")
    async with studio.recording() as job:
        run = Run(job)
        await run.ask("orch", "the task")
        await run.ask("orch", "REPORT of worker-1")
        await run.end()
    async with studio.replaying() as job, job.lease.notices("t__1") as notices:
        again = Run(job)
        await again.ask("orch", "the task")
        missed = await again.ask("orch", "REPORT of worker-2")
        told = (
            "call 2 of orch in attempt 1 at buzz/hello was not recorded like this; it differs first at "
            "messages[2].content[0].text: recorded 'REPORT of worker-1', now 'REPORT of worker-2'"
        )
        assert missed.status == 422
        assert missed.headers["x-buzzbench-error"] == "replay_miss"
        assert missed.json["error"]["message"] == f"replay_miss: {told}"
        notice = await anext(notices)
        assert (notice.kind, notice.reason) == ("replay_miss", told)
        again.talks["orch"].pop()
        assert (await again.ask("orch", "REPORT of worker-1")).status == 422, "a miss stays"
        assert [(r["outcome"], r["cost_usd_micros"]) for r in job.receipts] == [("ok", 0), ("error", 0), ("error", 0)]


async def test_a_cap_bites_in_a_replay_as_it_did(studio: Studio, upstream: Upstream) -> None:
    says(upstream, "one", "two")
    limits = Limits(calls=1)
    async with studio.recording() as job:
        run = Run(job)
        await run.ask("orch", "go", limits=limits)
        assert (await run.ask("orch", "more")).status == 402
        await run.end()
        recorded = job.receipts
    async with studio.replaying() as job:
        again = Run(job)
        await again.ask("orch", "go", limits=limits)
        assert (await again.ask("orch", "more")).status == 402
        assert tokens(job.receipts) == tokens(recorded)


async def test_a_call_that_waits_for_its_turn_holds_nothing_of_a_budget_that_others_need(
    studio: Studio, upstream: Upstream
) -> None:
    """With a cap below the recording, each would wait for the other until the trial's time is over."""
    says(upstream, "w2", "heard w2", "w1")
    async with studio.recording() as job:
        run = Run(job)
        await run.ask("worker-2", "task 2")
        await run.ask("orch", "report of w2")
        await run.ask("worker-1", "task 1")
        await run.end()
    async with studio.replaying(budget=Limits(calls=2)) as job, asyncio.timeout(20):
        again = Run(job)
        early = asyncio.create_task(again.ask("worker-1", "task 1"))
        assert not (await asyncio.wait({early}, timeout=0.3))[0]
        assert (await again.ask("worker-2", "task 2")).status == 200
        assert (await again.ask("orch", "report of w2")).status == 200
        refused = await early
        assert (refused.status, refused.headers["x-buzzbench-error"]) == (402, "job_budget")
        assert [(r["agent"], r["outcome"]) for r in job.receipts] == [
            ("worker-2", "ok"),
            ("orch", "ok"),
            ("worker-1", "refused"),
        ]


def streams(upstream: Upstream, *pieces: bytes, whole: bool = True) -> None:
    """Let the upstream send these pieces of a stream one by one, then end it or break off."""

    async def respond(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
            await asyncio.sleep(0.02)
        if not whole:
            assert request.transport is not None
            request.transport.abort()
        return response

    upstream.respond = respond


def event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def anthropic(text: str, size: int = 9) -> list[bytes]:
    """An Anthropic stream whose text comes in pieces."""
    parts = [text[n : n + size] for n in range(0, len(text), size)]
    return [
        event("message_start", message={"id": "msg_01X", "usage": {"input_tokens": 11, "output_tokens": 1}}),
        *(event("content_block_delta", index=0, delta={"type": "text_delta", "text": part}) for part in parts),
        event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 7}),
        event("message_stop"),
    ]


def openai(text: str, size: int = 9) -> list[bytes]:
    """A stream of chat completions that tells its usage in a chunk of its own."""
    parts = [text[n : n + size] for n in range(0, len(text), size)]
    values = [{"id": "chatcmpl-9", "choices": [{"index": 0, "delta": {"content": part}}]} for part in parts]
    usage = {"id": "chatcmpl-9", "choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 7}}
    return [*(f"data: {json.dumps(value)}\n\n".encode() for value in (*values, usage)), b"data: [DONE]\n\n"]


DIALECTS = {"anthropic": (anthropic, "/v1/messages"), "openai": (openai, "/v1/chat/completions")}


def asking(event_id: str) -> dict[str, Any]:
    messages = [{"role": "user", "content": f"Event ID: {event_id}"}]
    return {"model": "m", "max_tokens": 50, "stream": True, "messages": messages}


def text_of(reply: Reply) -> str:
    """What a client puts together of a stream."""
    text = ""
    for line in reply.data.decode().splitlines():
        if line.startswith("data: {"):
            value = json.loads(line[6:])
            text += value.get("delta", {}).get("text") or ""
            text += "".join(choice["delta"].get("content") or "" for choice in value.get("choices", ()))
    return text


async def streamed(job: Job, dialect: str, event_id: str, told: Context) -> Reply:
    grant = await job.issue("orch", task="buzz/hello", context=told, endpoint=dialect)
    return await job.call(grant, asking(event_id), path=DIALECTS[dialect][1])


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_stream_is_played_event_by_event_with_this_runs_values(
    dialect: str, studio: Studio, upstream: Upstream
) -> None:
    """Also where the report of its usage was taken out for a client that hadn't asked for it."""
    text = f'{{"reply_to": "{EVENTS[0]}"}}'
    streams(upstream, *DIALECTS[dialect][0](text))
    async with studio.recording() as job:
        recorded = await streamed(job, dialect, EVENTS[0], context())
        before = job.receipts
    timing = cassette.read(studio.tape).calls[0].timing
    assert len(timing.chunks_ms) == len(DIALECTS[dialect][0](text))
    assert list(timing.chunks_ms) == sorted(timing.chunks_ms)
    assert timing.chunks_ms[-1] > timing.chunks_ms[0] > 0
    async with studio.replaying() as job:
        replayed = await streamed(job, dialect, EVENTS[7], context())
        after = job.receipts
    assert replayed.headers["content-type"].startswith("text/event-stream")
    assert (text_of(recorded), text_of(replayed)) == (text, text.replace(EVENTS[0], EVENTS[7]))
    assert replayed.data.count(b"\n\n") == recorded.data.count(b"\n\n")
    assert tokens(after) == tokens(before) == [("orch", "ok", 200, 11, 0, 0, 7)]
    assert (after[0]["streamed"], after[0]["provider"]) == (True, "replay")


async def test_a_stream_that_broke_off_breaks_off_again(studio: Studio, upstream: Upstream) -> None:
    streams(upstream, *anthropic("as far as this")[:3], whole=False)
    async with studio.recording() as job:
        with pytest.raises(aiohttp.ClientPayloadError):
            await streamed(job, "anthropic", EVENTS[0], context())
        before = job.receipts
    async with studio.replaying() as job:
        with pytest.raises(aiohttp.ClientPayloadError):
            await streamed(job, "anthropic", EVENTS[7], context())
        after = job.receipts
    assert [r["reason"] for r in after] == [r["reason"] for r in before]
    assert tokens(after) == tokens(before) == [("orch", "unknown", 200, 11, 0, 0, None)]


async def test_the_place_of_a_stream_is_where_its_client_has_all_of_it(studio: Studio, upstream: Upstream) -> None:
    """What a client does with its last event comes after it, however long the books take."""
    streams(upstream, *anthropic("go on"))
    async with studio.recording() as job:
        told = context()
        grant = await job.issue("orch", task="buzz/hello", context=told)
        other = await job.issue("worker-1", task="buzz/hello", context=told)
        sent = {"x-api-key": grant.token, "content-type": "application/json"}
        async with job.http.post(grant.base_url + "/v1/messages", json=asking(EVENTS[0]), headers=sent) as response:
            async for line in response.content:
                if b"message_stop" in line:
                    break
            says(upstream, "done")
            body = {"model": "m", "max_tokens": 50, "messages": [{"role": "user", "content": "go"}]}
            assert (await job.call(other, body)).status == 200
            await response.read()
    first, second = cassette.read(studio.tape).calls
    assert first.timing.answered is not None
    assert first.timing.answered < second.timing.asked


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"replay": "/nowhere/tape"}, "/nowhere/tape: no such cassette"),
        ({"replay": None}, "endpoint anthropic replays, and the job has no cassette of it"),
    ],
)
async def test_a_job_that_can_not_be_played_is_refused(studio: Studio, change: dict[str, Any], told: str) -> None:
    given = registration("refused", studio.home / "r.jsonl")
    given = replace(given, endpoints={"anthropic": Endpoint("replay", dialect="anthropic")}, **change)
    with pytest.raises(GatewayError, match=told):
        async with leased(studio.gateway, studio.http, given):
            pass


async def test_a_cassette_that_can_not_be_written_refuses_the_job(studio: Studio) -> None:
    recording = Recording("/nowhere/tape", "team", "ab" * 32)
    given = replace(registration("refused", studio.home / "r.jsonl"), record=recording)
    with pytest.raises(GatewayError, match="cassette /nowhere/tape: No such file or directory"):
        async with leased(studio.gateway, studio.http, given):
            pass


async def test_a_job_that_goes_on_is_recorded_on_the_same_cassette(studio: Studio, upstream: Upstream) -> None:
    says(upstream, "one", "two", "three")
    async with studio.recording() as job:
        for number in (1, 2):
            run = Run(job, trial=f"t__{number}")
            await run.ask("orch", f"go {number}")
            await run.end()
    (studio.home / "t__2").mkdir()
    async with studio.recording() as job:
        run = Run(job, trial="t__3")
        await run.ask("orch", "go 3")
        await run.end()
    found = cassette.read(studio.tape)
    texts = [call.request["messages"][0]["content"][0]["text"] for call in found.calls]
    assert (texts, found.attempts) == (["go 2", "go 3"], {"buzz/hello": 2})


async def test_a_call_whose_client_left_between_two_steps_leaves_no_hole_in_the_cassette(studio: Studio) -> None:
    async with studio.recording() as job:
        run = Run(job)
        await run.ask("worker-1", "one")
        await job.lease.rest(run.trial, grace_s=0, cut=True)
        leaving = asyncio.create_task(job.call(run.grants["worker-1"]))
        await job.call(await job.issue("orch", trial="other", context=context()))
        leaving.cancel()
        await asyncio.wait({leaving})
        await job.lease.step(run.trial, "two")
        await run.ask("worker-1", "two")
        await run.end()
    numbers = [c.address.number for c in cassette.read(studio.tape).calls if c.address.agent == "worker-1"]
    assert numbers == list(range(1, len(numbers) + 1))


async def test_a_call_that_a_budget_refuses_is_not_on_the_cassette_and_is_refused_again(studio: Studio) -> None:
    async with studio.recording() as job:
        run = Run(job)
        assert (await run.ask("worker-1", "one", trial_limits=Limits(calls=1))).status == 200
        assert (await run.ask("worker-1", "two")).status == 402
        await run.end()
    assert len(cassette.read(studio.tape).calls) == 1
    async with studio.replaying() as job:
        again = Run(job)
        assert (await again.ask("worker-1", "one", trial_limits=Limits(calls=1))).status == 200
        assert (await again.ask("worker-1", "two")).status == 402
