"""Tasks in steps: receipts say in which one a call came, and between two of them no call goes out."""

from __future__ import annotations

import asyncio

from bench.condition import Limits
from bench.gateway.protocol import AgentUsage
from tests.gateway.conftest import Job
from tests.gateway.upstream import Upstream


async def test_receipts_name_the_step_in_which_their_call_came(job: Job) -> None:
    grant, other = await job.issue(), await job.issue(trial="t2")
    await job.lease.step("t1", "draft")
    await job.call(grant)
    await job.call(other)
    await job.lease.step("t1", "review")
    await job.call(grant)
    assert [(r["trial"], r["step"]) for r in job.receipts] == [("t1", "draft"), ("t2", None), ("t1", "review")]


async def test_between_two_steps_the_trials_tokens_rest_and_then_live_on(job: Job, upstream: Upstream) -> None:
    grant, other = await job.issue(), await job.issue(trial="t2")
    await job.lease.step("t1", "draft")
    await job.call(grant)
    used = await job.lease.rest("t1", grace_s=0, cut=True)
    assert used["worker-1"].calls == 1
    resting = asyncio.create_task(job.call(grant))
    assert (await job.call(other)).status == 200
    assert len(upstream.ledger) == 2
    await job.lease.step("t1", "review")
    assert (await resting).status == 200
    assert [(r["outcome"], r["step"]) for r in job.receipts if r["trial"] == "t1"] == [
        ("ok", "draft"),
        ("ok", "review"),
    ]


async def test_a_call_that_waits_for_a_step_that_never_comes_ends_with_its_token(job: Job, upstream: Upstream) -> None:
    grant = await job.issue()
    await job.lease.step("t1", "draft")
    await job.lease.rest("t1", grace_s=0, cut=True)
    resting = asyncio.create_task(job.call(grant))
    await job.call(await job.issue(trial="t2"))
    await job.lease.revoke("t1")
    assert (await resting).headers["x-buzzbench-error"] == "revoked"
    assert len(upstream.ledger) == 1


async def test_a_call_under_way_at_a_steps_end_may_end_within_the_grace(job: Job, upstream: Upstream) -> None:
    grant = await job.issue()
    await job.lease.step("t1", "draft")
    upstream.gate.clear()
    calling = asyncio.create_task(job.call(grant))
    await upstream.arrived.acquire()
    resting = asyncio.create_task(job.lease.rest("t1", grace_s=30, cut=True))
    upstream.gate.set()
    assert (await resting)["worker-1"].unknown_calls == 0
    assert (await calling).status == 200
    assert [(r["step"], r["outcome"]) for r in job.receipts] == [("draft", "ok")]


async def test_a_call_that_nobody_hears_is_cut_and_one_that_is_awaited_goes_on(job: Job, upstream: Upstream) -> None:
    grant = await job.issue()
    upstream.gate.clear()
    for cut in (False, True):
        await job.lease.step("t1", "draft")
        calling = asyncio.create_task(job.call(grant))
        await upstream.arrived.acquire()
        await job.lease.rest("t1", grace_s=0, cut=cut)
        if cut:
            assert (await calling).headers["x-buzzbench-error"] == "cut"
        else:
            upstream.gate.set()
            assert (await calling).status == 200
            upstream.gate.clear()
    assert [r["outcome"] for r in job.receipts] == ["ok", "unknown"]


async def test_a_call_under_way_has_gone_out_in_its_step_and_a_refused_one_in_none(
    job: Job, upstream: Upstream
) -> None:
    """Or a team that still waits for its model's answer would be taken for one that never played."""
    grant = await job.issue(limits=Limits(calls=1))
    await job.lease.step("t1", "draft")
    upstream.gate.clear()
    calling = asyncio.create_task(job.call(grant))
    await upstream.arrived.acquire()
    draft = (await job.lease.rest("t1", grace_s=0, cut=False))["worker-1"]
    assert (draft.calls, draft.sent_calls) == (0, 1)
    upstream.gate.set()
    assert (await calling).status == 200
    await job.lease.step("t1", "review")
    assert (await job.call(grant)).headers["x-buzzbench-error"] == "agent_budget"
    review = (await job.lease.rest("t1", grace_s=0, cut=True))["worker-1"].since(draft)
    assert (review.calls, review.sent_calls, review.refused_calls) == (1, 0, 1)


def test_what_was_used_since_is_the_difference_and_unknown_stays_unknown() -> None:
    before = AgentUsage(calls=2, input_tokens=10, output_tokens=None, cost_usd_micros=5, unknown_calls=1)
    now = AgentUsage(calls=5, input_tokens=30, output_tokens=7, cost_usd_micros=None, unknown_calls=1)
    assert now.since(before) == AgentUsage(calls=3, input_tokens=20, output_tokens=7, cost_usd_micros=None)
