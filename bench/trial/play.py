"""One trial from fresh keys to evidence: provision, post the task, watch the team, stop it, leave what it did."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.channel import RelayGone
from bench.gateway.client import GatewayError
from bench.gateway.protocol import Notice
from bench.trial import export, handles, teams
from bench.trial.deadline import EVIDENCE_S, Deadline, WorkLimit
from bench.trial.ends import End, fault, of_error
from bench.trial.provision import Cast, Room, collect, provisioned, strangers
from bench.trial.report import Report
from bench.trial.stage import Stage
from bench.trial.timings import Timings
from bench.trial.tokens import Script, issue_tokens
from bench.trial.work import TeamAtWork
from bench.useranswers import Answer

if TYPE_CHECKING:
    pass

CANCEL_S = 4.0
"""What a cancelled trial may take to leave its evidence: Harbor waits without a limit (HARBOR.md section 9)."""

CALL_GRACE_S = 2.0
"""For model calls under way at the end: one that is cut has an unknown cost, and then so has the trial."""


@dataclass(frozen=True)
class Task:
    """What a trial is about. `script` is the task's script for a rehearsal, `answers` is what the user answers."""

    name: str
    instruction: str
    limit: WorkLimit
    script: Script | None
    answers: tuple[Answer, ...] = ()


class Play:
    """One trial. `report` gets every fact as it happens."""

    def __init__(self, stage: Stage, task: Task, report: Report, timings: Timings) -> None:
        self._stage, self._task, self._report, self._timings = stage, task, report, timings
        self._began_at = time.monotonic()
        self._held_calls = 0

    async def run(self) -> End:
        """How it ended. Raises CancelledError where it was cancelled, within CANCEL_S and with its evidence left."""
        cast = Cast.draw(self._stage.session, trial=self._stage.trial_dir.name, task=self._task.name)
        self._report.cast(cast)
        try:
            async with AsyncExitStack() as stack:
                notices = await stack.enter_async_context(self._stage.session.lease.notices(cast.trial))
                stack.push_async_callback(self._settle, cast)
                team, room = await self._prepare(stack, cast)
                return await self._perform(team, room, notices)
        except Exception as error:
            end = of_error(error)
            self._report.end(end)
            return end

    async def _prepare(self, stack: AsyncExitStack, cast: Cast) -> tuple[TeamAtWork, Room]:
        issuing = asyncio.create_task(issue_tokens(self._stage.session, cast, self._task.script))
        # Should the room fail, nobody asks for the tokens' own failure.
        issuing.add_done_callback(lambda task: task.cancelled() or task.exception())
        stack.callback(issuing.cancel)
        bringing = teams.bringing(self._stage, cast, asyncio.shield(issuing))
        if bringing is not None:
            bringing.add_done_callback(lambda task: task.cancelled() or task.exception())
            stack.callback(bringing.cancel)
        room = await stack.enter_async_context(provisioned(self._stage.session, cast, self._timings))
        handles.announce(cast.handle(self._stage.session.condition.sha256))
        return teams.seated(self._stage, room, await issuing, bringing, self._report, self._timings), room

    async def _perform(self, team: TeamAtWork, room: Room, notices: AsyncIterator[Notice]) -> End:
        room.answers = self._task.answers
        try:
            await team.start()
            with self._timings.step("post"):
                await room.post(self._task.instruction)
            with self._timings.step("work"):
                end = await team.work(Deadline.start(self._task.limit, self._began_at), notices)
        except asyncio.CancelledError:
            await _within(CANCEL_S, self._leave(team, room, None))
            raise
        except Exception as error:
            end = of_error(error)
        self._report.end(end)
        if room.done_seen_at is not None:
            self._report.done(room.done.result()["id"], room.done_seen_at)
        failed = await self._leave(team, room, end)
        if end.ended == "deadline" and self._held_calls:
            # The team's time went by while the gateway kept its calls back: nothing can be said of the team.
            end = fault("upstream_failed", f"model calls still waited for an upstream in trouble when {end.reason}")
            self._report.end(end)
        return end if failed is None or end.fault else failed

    async def _leave(self, team: TeamAtWork, room: Room, end: End | None) -> End | None:
        """Stop the team and write down what it did; the fault where that failed, else None."""
        try:
            with self._timings.step("stop"):
                await asyncio.gather(team.stop(), self._settle(room.cast, grace_s=0.0 if end is None else CALL_GRACE_S))
            self._label(team, room)
            with self._timings.step("evidence"):
                found = await self._write_evidence(team, room, relay_is_gone=_relay_is_gone(end))
        except Exception as error:
            failed = of_error(error)
            self._stage.logger.warning("evidence of %s: %s", room.cast.trial, error)
            if end is None or end.fault is None:
                self._report.end(failed)
            return failed
        with self._timings.step("upload"):
            await asyncio.gather(self._upload(), team.recall(), self._cross_check(team, end))
        story = export.Story(room.cast.trial, self._stage.version, self._task.instruction, team.played())
        export.write_trajectory(self._stage.logs_dir, self._stage.session.condition, found, story)
        return None

    async def _write_evidence(self, team: TeamAtWork, room: Room, *, relay_is_gone: bool) -> dict[str, Any]:
        if relay_is_gone:
            events = list(room.directory.arrived.values())
        else:
            try:
                async with asyncio.timeout(EVIDENCE_S):
                    events = await collect(room)
            except TimeoutError:
                raise RelayGone(f"the relay did not give the trial's events within {EVIDENCE_S:g} s") from None
        unexplained = team.unexplained(events)
        if unexplained:
            self._report.label("unexplained_event")
        found = export.build(room.cast, events, unexplained)
        self._report.evidence(await export.write_evidence(self._stage.trial_dir, found))
        return found

    async def _upload(self) -> None:
        try:
            async with asyncio.timeout(EVIDENCE_S):
                await export.upload(self._stage.environment, self._stage.trial_dir)
        except Exception as error:
            # The agents had control of the environment: that it is gone is a label, and the verifier will say so.
            self._stage.logger.warning("the environment takes no evidence: %s", error)
            self._report.label("environment_lost")

    async def _cross_check(self, team: TeamAtWork, end: End | None) -> None:
        if not _relay_is_gone(end) and (check := await team.cross_check()):
            self._report.self_report(check)

    def _label(self, team: TeamAtWork, room: Room) -> None:
        self._report.label(*team.labels())
        if room.interruptions_survived:
            self._report.label("relay_restarted")
        if strangers(room):
            self._report.label("tainted")

    async def _settle(self, cast: Cast, grace_s: float = 0.0) -> None:
        """Kill the trial's tokens and book what they used. Of a gateway that is gone they are dead already."""
        try:
            usage = await self._stage.session.lease.revoke(cast.trial, grace_s=grace_s)
            self._held_calls = sum(used.held_calls for used in usage.values())
            self._report.meter.settle(usage)
        except GatewayError as error:
            self._stage.logger.warning("usage of %s is our own count: %s", cast.trial, error)


def _relay_is_gone(end: End | None) -> bool:
    return end is not None and end.fault is not None and end.fault.kind == "relay_gone"


async def _within(seconds: float, work: Coroutine[Any, Any, object]) -> None:
    """Let the work end, but not for longer, also where one is cancelled again meanwhile."""
    task = asyncio.create_task(work)
    try:
        await asyncio.wait({task}, timeout=seconds)
    finally:
        task.cancel()
