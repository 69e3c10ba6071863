"""A team at work, whichever harness runs it, and what its end comes from.

    team.start()  →  the task is posted  →  team.work() until the first end  →  team.stop()  →  what it did

The end comes from whichever is first: the orchestrator's `DONE:` (by push), the deadline, a fault, or what the harness
watches for itself.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any, Never, Protocol

from bench.channel import RelayClient
from bench.gateway.protocol import Notice
from bench.harness.models import OWN_CAP
from bench.nostr import Event
from bench.trial.caps import Caps
from bench.trial.deadline import Deadline
from bench.trial.ends import End, fault, of_error, of_notice
from bench.trial.meter import Meter
from bench.trial.provision import Room
from bench.trial.selfreport import Check
from bench.trial.trajectory import Played
from bench.useranswers import fitting


class TeamAtWork(Protocol):
    """The agents of one trial in their room."""

    async def start(self) -> None:
        """Have every agent wait for mentions, before the task is posted."""

    async def work(self, deadline: Deadline, notices: AsyncIterator[Notice]) -> End:
        """How the work ends. The agents may still be running then: `stop` ends them."""

    async def stop(self) -> None:
        """End every agent, with the command that it may have running."""

    hears_late_answers: bool
    """Whether agents that are paused still wait for the answers of their model calls."""

    async def pause(self) -> None:
        """Hold everybody still: between two steps of a task nobody acts, and nobody forgets anything."""

    async def go_on(self, meter: Meter, post: Callable[[], Awaitable[None]]) -> None:
        """Have everybody go on, with the next step of the task, which `post` says; `meter` counts what they use."""

    async def recall(self) -> None:
        """Bring out of the environment what is known only there, once the team has stopped."""

    async def cross_check(self) -> Check | None:
        """What the agents report of their use beside the gateway's count, once they have stopped; None of none."""

    def labels(self) -> Iterable[str]:
        """What else is to be said of the team, once it has stopped."""

    def unexplained(self, events: Sequence[Event]) -> list[str]:
        """The ids of those of the trial's events that an agent's key signed while the agent itself was not at work."""

    def played(self) -> Sequence[Played]:
        """What each agent did since the team was last asked for something, in the roster's order."""


async def first_end(
    room: Room,
    deadline: Deadline,
    running: Iterable[asyncio.Task[None]],
    watchers: Sequence[Coroutine[Any, Any, End]],
) -> End:
    """The first end. `running` are tasks whose failure is one; watchers return one, and are cancelled afterwards.

    Meanwhile the user answers.
    """
    done = room.done
    watching = [asyncio.create_task(watcher) for watcher in (*watchers, answering(room))]
    waiting: set[asyncio.Future[Any]] = {done, *running, *watching}
    try:
        while True:
            left_s = None if math.isinf(deadline.left_s) else deadline.left_s
            ended, waiting = await asyncio.wait(waiting, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
            ends = [end for future in ended - {done} if (end := _end_of(future)) is not None]
            if done in ended:
                # A script that parted from what happened must not pass because the other end came as soon.
                return next((end for end in ends if end.is_of_script), End("done"))
            if ends:
                return ends[0]
            if deadline.passed:
                return End("deadline", deadline.reason())
    finally:
        for watcher in watching:
            watcher.cancel()


def _end_of(future: asyncio.Future[Any]) -> End | None:
    error = future.exception()
    if error is not None:
        return of_error(error)
    result = future.result()
    return result if isinstance(result, End) else None


async def answering(room: Room) -> Never:
    """Answer what the user is asked, as the task has it. Raises RelayGone and RelayRefused."""
    while True:
        question = await room.asked.get()
        number = fitting(room.answers, question["content"], room.answered)
        if number is not None:
            room.answered[number] += 1
            await room.answer(question, room.answers[number].answer)


async def gone(client: RelayClient) -> End:
    """The end where the relay stays away."""
    return of_error(await client.wait_gone())


async def fatal(notices: AsyncIterator[Notice], caps: Caps) -> End:
    """The end that the gateway's notices bring. `caps` hears of the agents that a cap of their own has stopped."""
    async for notice in notices:
        if notice.kind == OWN_CAP:
            await caps.met(notice.agent, notice.reason)
        elif (end := of_notice(notice)) is not None:
            return end
    return fault("gateway_lost", "the gateway's notices ended")
