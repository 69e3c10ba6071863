"""Plays a cassette: the recorded answers to the recorded requests, in this run's values. No upstream, no cost.

A trial plays the attempt of its task that is next; each agent's calls are met in their order. An answer is held back
until everything that the recording has before it in its trial has happened here, too: who spoke first stays so,
however fast the answers are. A request that wasn't recorded is a Miss, and the trial can't be judged.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Any

import orjson
from multidict import CIMultiDict

from bench.endpoints import Dialect
from bench.gateway import conversation, difference, streams
from bench.gateway.cassette import Address, Answer, Call, Cassette
from bench.gateway.listener import Listener
from bench.gateway.normalise import mapped
from bench.gateway.protocol import Issue
from bench.gateway.recorder import Attempts, names_of, run_of
from bench.gateway.redaction import Redaction
from bench.gateway.upstream import UpstreamFailed

BEYOND_S = 20.0
"""How long a call may wait, after all that was recorded of its trial, for the trial's end, which came first then."""

STALL_S = 60.0
"""How much longer than three times its recorded time another agent's next call may take before it is missed."""

_MENTION = re.compile(r"^\[Buzz event: @mention\]\nEvent ID: ⟨.*⟩\nChannel: .*\nFrom: (.*)$", re.MULTILINE)
"""A mention as the builtin harness shows it (ARCHITECTURE.md, "Scripts of the scripted model")."""


type Turn = Callable[[], Awaitable[None]]
"""What is done when a call's turn has come, before its answer is given. What it raises, the call ends with."""


class Miss(Exception):
    """What happens is not what was recorded. The message names the call, what is nearest, and where they part."""


class NotPlayed(Exception):
    """The trial ended while a call waited that the recording doesn't have: it ended first there, too."""


class Replay:
    """A cassette that one job plays. `sha256` is the file's."""

    def __init__(self, cassette: Cassette, clock: Callable[[], float] = time.monotonic) -> None:
        self.sha256 = cassette.sha256
        self._cassette, self._clock = cassette, clock
        self._attempts = Attempts()
        self._stages: dict[tuple[str, str], Stage] = {}

    def part(self, issue: Issue, token: str) -> Part:
        """The part of an agent that gets a token; one that gets another goes on where it was.

        A trial that is run again plays its attempt from the beginning.
        """
        attempt, run = self._attempts.number(issue.task, issue.trial), run_of(issue)
        if run not in self._stages:
            self._stages[run] = Stage(self._cassette.trial(issue.task, attempt), self._clock)
        stage = self._stages[run]
        if issue.agent not in stage.parts:
            others = [c for c in self._cassette.calls if (c.address.task, c.address.agent) == (issue.task, issue.agent)]
            address = Address(issue.task, attempt, issue.agent, 0)
            stage.parts[issue.agent] = Part(address, issue, stage, others, self.endpoints[issue.endpoint])
        stage.parts[issue.agent].redact.learn(token)
        return stage.parts[issue.agent]

    @property
    def endpoints(self) -> Mapping[str, Dialect]:
        """The endpoints that were recorded, with the dialect that agents spoke to them."""
        return self._cassette.header.endpoints


class Stage:
    """The recorded order of one trial, and how much of it has happened here."""

    def __init__(self, calls: Sequence[Call], clock: Callable[[], float] = time.monotonic) -> None:
        self.calls = tuple(calls)
        self.parts: dict[str, Part] = {}
        self._clock = clock
        events = [(number, c) for c in calls for number in (c.timing.asked, c.timing.answered) if number is not None]
        self._events = sorted(events, key=lambda event: event[0])
        self._happened: set[int] = set()
        self._next = 0
        self._at = clock()
        self._changed = asyncio.Event()

    def happened(self, event: int) -> None:
        """Something that was recorded has happened."""
        self._happened.add(event)
        while self._next < len(self._events) and self._events[self._next][0] in self._happened:
            self._next += 1
        self._at = self._clock()
        self._changed.set()
        self._changed = asyncio.Event()

    async def reach(self, event: int | None) -> None:
        """Return when everything before the event has happened (all of it for None). Raises Miss when it stalls."""
        while self._next < len(self._events) and (event is None or self._events[self._next][0] < event):
            awaited = self._events[self._next][1]
            limit_s = STALL_S + 3 * self._recorded_s(awaited)
            left_s = self._at + limit_s - self._clock()
            if left_s <= 0:
                raise Miss(f"{awaited.address} comes next in the recording, and did not come within {limit_s:.0f} s")
            try:
                async with asyncio.timeout(left_s):
                    await self._changed.wait()
            except TimeoutError:
                continue

    def _recorded_s(self, call: Call) -> float:
        """How long the call's agent took to make it after its last answer, or since the trial's first call."""
        mine = [c for c in self.calls if c.address.agent == call.address.agent and c.address < call.address]
        since = max((c.timing.asked_ms + (c.timing.total_ms or 0) for c in mine), default=0.0)
        return max(0.0, call.timing.asked_ms - since) / 1000


class Part:
    """One agent's recorded part in a trial."""

    def __init__(self, agent: Address, issue: Issue, stage: Stage, others: Sequence[Call], dialect: Dialect) -> None:
        self.redact = Redaction(())
        self._agent, self._stage, self._others = agent, stage, others
        self._dialect: Dialect = dialect
        self._calls = [call for call in stage.calls if call.address.agent == agent.agent]
        self._names = names_of(issue)
        self._listener = Listener(self._names, self.redact)
        self._number = 0
        self._miss: Miss | None = None

    @property
    def turns(self) -> tuple[tuple[str, ...], ...]:
        """Whose mentions began each turn of the agent, in their order; empty for a turn that none began.

        With them the builtin harness gives its model the very batches that were recorded.
        """
        requests = [dict(call.request) for call in self._calls if "messages" in call.request]
        shown = [conversation.read(self._dialect, request).shown.messages for request in requests]
        return tuple(tuple(_MENTION.findall("\n".join(texts))) for texts in shown if texts)

    async def answer(self, body: Mapping[str, Any], turn: Turn) -> Played:
        """The recorded answer to the agent's next call, when its turn has come. A Miss stays: every later call gets it.

        Raises Miss, NotPlayed, and UpstreamFailed where that is all that was recorded.
        """
        if self._miss is not None:
            raise self._miss
        try:
            return await self._answer(body, turn)
        except Miss as miss:
            self._miss = miss
            raise

    async def _answer(self, body: Mapping[str, Any], turn: Turn) -> Played:
        request = self._listener.listen(body)
        self._number += 1
        if self._number > len(self._calls):
            await self._beyond(request, turn)
        call = self._calls[self._number - 1]
        if request != call.request:
            raise self._missed(request, (call, *self._others))
        self._stage.happened(call.timing.asked)
        if call.answer is None or call.timing.answered is None:
            # Its trial ended before an answer came.
            limit_s = STALL_S + 3 * (call.timing.total_ms or 0) / 1000
            await asyncio.sleep(limit_s)
            raise Miss(f"{call.address} has no answer, for its trial ended; this one goes on after {limit_s:.0f} s")
        await self._stage.reach(call.timing.answered)
        await turn()
        self._stage.happened(call.timing.answered)
        return self._spoken(call.answer)

    async def _beyond(self, request: Mapping[str, Any], turn: Turn) -> None:
        """Wait for the end of the trial, which the recording has instead of this call. Raises NotPlayed or Miss."""
        try:
            await self._stage.reach(None)
            await turn()
            await asyncio.sleep(BEYOND_S)
        except asyncio.CancelledError:
            raise NotPlayed("the trial ended before this call, as it was recorded") from None
        raise self._missed(request, self._others)

    def _missed(self, request: Mapping[str, Any], calls: Sequence[Call]) -> Miss:
        agent = self._agent
        this = Address(agent.task, agent.attempt, agent.agent, self._number)
        nearest = difference.nearest(request, calls)
        if nearest is None:
            return Miss(f"{this} was not recorded: the cassette has no call of {agent.agent} at this task")
        found = difference.first(nearest.request, request)
        which = "it" if nearest.address == this else f"the nearest recorded request is {nearest.address}; it"
        if found is None:
            return Miss(f"{this} was not recorded; {which} is the same")
        return Miss(f"{this} was not recorded like this; {which}{str(found).removeprefix('it')}")

    def _spoken(self, answer: Answer) -> Played:
        text, reference = self._names.spoken, self._names.reference_spoken
        failed = None
        if answer.failed is not None:
            failed = UpstreamFailed(answer.failed_status or answer.status, answer.failed, sent=answer.sent)
        if answer.chunks is not None:
            events = [event.encode() for event in streams.spoken(answer.chunks, text, reference)]
            return Played(answer.status, answer.headers, events, failed, streams=True)
        if failed is not None:
            raise failed
        body = text(answer.text).encode() if answer.text is not None else None
        whole = orjson.dumps(mapped(answer.json, text, reference)) if body is None else body
        return Played(answer.status, answer.headers, [whole], None, streams=False)


class Played:
    """A recorded answer in this run's values (bench.gateway.upstream.Opening)."""

    def __init__(
        self,
        status: int,
        headers: Mapping[str, str],
        parts: Sequence[bytes],
        failed: UpstreamFailed | None,
        *,
        streams: bool,
    ) -> None:
        self.status, self.streams = status, streams
        self.headers = CIMultiDict(headers)
        self.told = self.headers
        self.first_byte_at = time.monotonic()
        self._parts, self._failed = parts, failed

    async def read(self) -> bytes:
        """The whole body."""
        return b"".join(self._parts)

    async def chunks(self) -> AsyncGenerator[bytes]:
        """The body, event by event; then it breaks off, if it did."""
        for part in self._parts:
            yield part
        if self._failed is not None:
            raise self._failed
