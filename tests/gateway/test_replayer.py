"""The recorded order of a trial, and what is said of a call that doesn't come or wasn't recorded. No gateway here."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from bench.gateway import replayer
from bench.gateway.cassette import Address, Answer, Call, Cassette, Header, Timing
from bench.gateway.protocol import Context, Issue
from bench.gateway.replayer import Miss, NotPlayed, Part, Replay
from bench.gateway.upstream import UpstreamFailed

HEADER = Header("lb-team", "team", "ab" * 32, None, {"claude": "anthropic"})


def asking(*texts: str) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text} for text in texts]}


def call(
    agent: str,
    number: int,
    *texts: str,
    at: tuple[int, int | None],
    ms: float = 0.0,
    answer: Answer | None = None,
    attempt: int = 1,
) -> Call:
    """A recorded call; `at` is when it was asked and answered, in the order of the trial's events."""
    timing = Timing(at[0], at[1], "t__1", ms, None, 1.0)
    given = answer or Answer(200, {}, json={"text": f"answer {number} to {agent}"})
    return Call(Address("t", attempt, agent, number), asking(*texts), given if at[1] else None, timing)


async def at_once() -> None:
    """No budget holds anybody up."""


class Play:
    """A trial that plays these calls."""

    def __init__(self, *calls: Call) -> None:
        self.replay = Replay(Cassette(HEADER, calls, "cd" * 32))

    def part(self, agent: str, *, trial: str = "t__1", channel: str = "c") -> Part:
        issue = Issue(trial, "t", agent, agent.partition("-")[0], "claude", ("m",), context=Context(channel, "user"))
        return self.replay.part(issue, "token-of-an-agent")

    async def ask(self, agent: str, *texts: str, **where: str) -> str:
        answer = await self.part(agent, **where).answer(asking(*texts), at_once)
        return str(json.loads(await answer.read())["text"])


async def settled(task: asyncio.Task[Any]) -> bool:
    """Whether it is done once everybody had a turn."""
    for _ in range(5):
        await asyncio.sleep(0)
    return task.done()


async def test_an_answer_waits_for_all_that_was_recorded_before_it() -> None:
    play = Play(
        call("orch", 1, "task", at=(1, 6)),
        call("worker-1", 1, "a", at=(2, 3)),
        call("worker-1", 2, "a", "b", at=(4, 5)),
    )
    orch = asyncio.create_task(play.ask("orch", "task"))
    assert not await settled(orch)
    assert await play.ask("worker-1", "a") == "answer 1 to worker-1"
    assert not await settled(orch)
    assert await play.ask("worker-1", "a", "b") == "answer 2 to worker-1"
    assert await orch == "answer 1 to orch"


async def test_agents_whose_calls_overlapped_do_not_wait_for_each_others_answers() -> None:
    play = Play(call("worker-1", 1, "a", at=(1, 4)), call("worker-2", 1, "b", at=(2, 3)))
    first = asyncio.create_task(play.ask("worker-1", "a"))
    assert not await settled(first)
    assert await play.ask("worker-2", "b") == "answer 1 to worker-2"
    assert await first == "answer 1 to worker-1"


async def test_trials_do_not_wait_for_each_other() -> None:
    """Two attempts at a task, at once."""
    play = Play(*(call("orch", 1, "task", at=(1, 2), attempt=attempt) for attempt in (1, 2)))
    assert await play.ask("orch", "task", trial="t__1") == await play.ask("orch", "task", trial="t__2", channel="d")


async def test_a_trial_that_is_run_again_plays_its_attempt_from_the_beginning() -> None:
    play = Play(
        call("orch", 1, "first", at=(1, 2), attempt=1),
        call("orch", 1, "second", at=(1, 2), attempt=2),
    )
    await play.ask("orch", "first")
    assert await play.ask("orch", "first", channel="another") == "answer 1 to orch"


async def test_an_agent_with_another_token_goes_on_where_it_was() -> None:
    play = Play(call("orch", 1, "a", at=(1, 2)), call("orch", 2, "a", "b", at=(3, 4)))
    await play.ask("orch", "a")
    assert await play.ask("orch", "a", "b") == "answer 2 to orch"


async def test_a_call_that_does_not_come_is_missed_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its recorded time counts three times: a tool may be slower here."""
    monkeypatch.setattr(replayer, "STALL_S", 0.01)
    play = Play(call("worker-1", 1, "a", at=(1, 2), ms=10.0), call("orch", 1, "task", at=(3, 4)))
    with pytest.raises(Miss) as raised:
        await play.ask("orch", "task")
    assert str(raised.value) == (
        "call 1 of worker-1 in attempt 1 at t comes next in the recording, and did not come within 0 s"
    )


async def test_a_call_after_everything_is_missed_if_the_trial_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replayer, "BEYOND_S", 0.0)
    play = Play(call("orch", 1, "task", at=(1, 2)))
    await play.ask("orch", "task")
    with pytest.raises(Miss) as raised:
        await play.ask("orch", "task", "more")
    assert str(raised.value) == (
        "call 2 of orch in attempt 1 at t was not recorded like this; the nearest recorded request is call 1 of orch "
        "in attempt 1 at t; it differs first at messages[1]: recorded nothing, now "
        '\'{"role":"user","content":"more"}\''
    )


async def test_the_same_request_once_more_is_missed_as_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replayer, "BEYOND_S", 0.0)
    play = Play(call("orch", 1, "task", at=(1, 2)))
    await play.ask("orch", "task")
    with pytest.raises(Miss, match="the nearest recorded request is call 1 of orch in attempt 1 at t; it is the same"):
        await play.ask("orch", "task")


async def test_an_agent_that_has_no_call_at_the_task_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replayer, "BEYOND_S", 0.0)
    play = Play(call("orch", 1, "task", at=(1, 2)))
    await play.ask("orch", "task")
    with pytest.raises(Miss, match="call 1 of guest in attempt 1 at t was not recorded: the cassette has no call of"):
        await play.ask("guest", "hello")


async def test_the_nearest_may_be_of_another_attempt() -> None:
    play = Play(call("orch", 1, "task one", at=(1, 2)), call("orch", 1, "task two", at=(1, 2), attempt=2))
    with pytest.raises(Miss) as raised:
        await play.ask("orch", "task two")
    assert "the nearest recorded request is call 1 of orch in attempt 2 at t; it is the same" in str(raised.value)


async def test_a_call_that_is_cut_while_it_waits_beyond_the_recording_was_never_played() -> None:
    play = Play(call("orch", 1, "task", at=(1, 2)))
    await play.ask("orch", "task")
    more = asyncio.create_task(play.ask("orch", "task", "more"))
    assert not await settled(more)
    more.cancel()
    with pytest.raises(NotPlayed, match="the trial ended before this call, as it was recorded"):
        await more


async def test_a_recorded_cut_is_missed_where_the_trial_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replayer, "STALL_S", 0.0)
    play = Play(call("orch", 1, "task", at=(1, None)))
    with pytest.raises(Miss, match="call 1 of orch in attempt 1 at t has no answer, for its trial ended"):
        await play.ask("orch", "task")


async def test_what_failed_fails_again() -> None:
    failed = Answer(504, failed="api.x sent nothing for 900 s", sent=True)
    play = Play(call("orch", 1, "task", at=(1, 2), answer=failed))
    with pytest.raises(UpstreamFailed, match=r"api\.x sent nothing for 900 s") as raised:
        await play.ask("orch", "task")
    assert (raised.value.status, raised.value.sent) == (504, True)


def mention(event: int, author: str, text: str = "hi") -> str:
    return f"[Buzz event: @mention]\nEvent ID: ⟨id {event}⟩\nChannel: x (#⟨channel⟩)\nFrom: {author}\nContent: {text}"


def turn(number: int, *messages: Mapping[str, Any]) -> Call:
    request = {"model": "m", "messages": list(messages)}
    return Call(Address("t", 1, "orch", number), request, None, Timing(number))


def said(role: str, *blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "content": list(blocks)}


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def test_turns_are_read_from_what_the_agent_was_shown() -> None:
    task = said("user", text(mention(1, "user")))
    used = said("assistant", {"type": "tool_use", "id": "⟨toolu 1⟩", "name": "t", "input": {}})
    result = said("user", {"type": "tool_result", "tool_use_id": "⟨toolu 1⟩", "content": [text("From: nobody")]})
    ended = said("assistant", text("ok"))
    reports = said("user", text(mention(2, "worker-2") + "\n\n" + mention(3, "worker-1", "From: me")))
    nudge = said("user", text("[Notice] The whole team is idle"))
    play = Play(
        turn(1, task),
        turn(2, task, used, result),
        turn(3, task, used, result, ended, reports),
        turn(4, task, used, result, ended, reports, ended, nudge),
    )
    assert play.part("orch").turns == (("user",), ("worker-2", "worker-1"), ())


def test_an_agent_that_never_asked_has_no_turns() -> None:
    assert Play().part("worker-1").turns == ()
