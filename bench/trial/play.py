"""One trial from fresh keys to evidence: provision, post the task, watch the team, stop it, leave what it did.

A task with steps is played in as many acts. The team stays for all of them, with its keys, its channel and its
conversations; between two acts, while the verifier is at work, it is held still.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Coroutine, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.channel import RelayGone
from bench.gateway.client import GatewayError
from bench.gateway.protocol import AgentUsage, Notice
from bench.harness.models import OWN_CAP
from bench.trial import export, handles, teams
from bench.trial.deadline import CALL_GRACE_S, EVIDENCE_S, Deadline, WorkLimit
from bench.trial.ends import End, fault, of_error
from bench.trial.evidence import Part
from bench.trial.provision import Cast, Room, collect, provisioned, strangers
from bench.trial.report import Report
from bench.trial.session import Session
from bench.trial.stage import Stage
from bench.trial.steps import TaskStep
from bench.trial.timings import Timings
from bench.trial.tokens import Script, issue_tokens
from bench.trial.work import TeamAtWork
from bench.useranswers import Answer

CANCEL_S = 4.0
"""What a cancelled trial may take to leave its evidence: Harbor waits without a limit (HARBOR.md section 9)."""


@dataclass(frozen=True)
class Task:
    """What a trial is about. `script` is the task's script for a rehearsal, `answers` is what the user answers."""

    name: str
    script: Script | None
    answers: tuple[Answer, ...] = ()


@dataclass(frozen=True)
class Act:
    """What the team is asked at once, and the time that it has: the whole task, or one step of it."""

    instruction: str
    limit: WorkLimit
    step: TaskStep | None = None

    @property
    def is_last(self) -> bool:
        return self.step is None or self.step.is_last


@dataclass(frozen=True)
class _Now:
    """The act that is played. `used_before` is what the agents had used when it began."""

    act: Act
    report: Report
    timings: Timings
    began_at: float
    used_before: Mapping[str, AgentUsage]


class Play:
    """One trial. Its acts follow each other; `close` ends it where the last of them never comes."""

    _now: _Now

    def __init__(self, stage: Stage, task: Task) -> None:
        self._stage, self._task = stage, task
        self._cast = Cast.draw(stage.session, trial=stage.trial_dir.name, task=task.name)
        self._resources = AsyncExitStack()
        self._company: tuple[TeamAtWork, Room] | None = None
        self._paused = False
        self._worked_s = 0.0
        self._held_calls = 0
        self.used: Mapping[str, AgentUsage] = {}
        """What the agents had used when it was last counted."""

    async def perform(self, act: Act, report: Report, timings: Timings) -> End:
        """How the act ended; `report` gets every fact as it happens. The last act, and one with a fault, ends the play.

        Raises CancelledError where it was cancelled, within CANCEL_S and with its evidence left.
        """
        self._now = _Now(act, report, timings, time.monotonic(), self.used)
        report.cast(self._cast)
        goes_on = False
        try:
            async with self._stage.session.lease.notices(self._cast.trial) as notices:
                end = await self._perform(notices)
            goes_on = end.fault is None and not act.is_last
        except Exception as error:
            end = of_error(error)
            report.end(end)
        finally:
            if not goes_on:
                await self.close()
        return end

    async def close(self) -> None:
        """End it: the tokens are dead, nobody acts or listens any more. May be called twice."""
        await self._resources.aclose()

    @property
    def session(self) -> Session:
        return self._stage.session

    async def _perform(self, notices: AsyncIterator[Notice]) -> End:
        is_first = self._company is None
        team, room = self._company = self._company or await self._prepare()
        try:
            if over := self._time_is_over():
                room.listen_anew()
                end = over
            else:
                await self._begin(team, room, is_first=is_first)
                with self._now.timings.step("work"):
                    end = await self._work(team, notices)
        except asyncio.CancelledError:
            await _within(CANCEL_S, self._leave(team, room, None))
            raise
        except Exception as error:
            end = of_error(error)
        self._now.report.end(end)
        if room.done_seen_at is not None:
            self._now.report.done(room.done.result()["id"], room.done_seen_at)
        failed = await self._leave(team, room, end)
        if end.ended == "deadline" and self._held_calls:
            # The team's time went by while the gateway kept its calls back: nothing can be said of the team.
            end = fault("upstream_failed", f"model calls still waited for an upstream in trouble when {end.reason}")
            self._now.report.end(end)
        if self.used is not self._now.used_before:
            self._now.report.booked(self.used, self._now.used_before)
        return end if failed is None or end.fault else failed

    def _time_is_over(self) -> End | None:
        """The end of an act that doesn't begin, since earlier ones have used up the trial's time."""
        limit = replace(self._now.act.limit, worked_s=self._worked_s)
        deadline = Deadline.start(limit, self._now.began_at)
        return End("deadline", deadline.reason()) if self._paused and deadline.passed else None

    async def _begin(self, team: TeamAtWork, room: Room, *, is_first: bool) -> None:
        step = self._now.act.step
        if step is not None:
            await self._stage.session.lease.step(self._cast.trial, step.name)
        if is_first:
            await team.start()
            await self._post(room)
        else:
            room.listen_anew()
            self._paused = False
            await team.go_on(self._now.report.meter, lambda: self._post(room))

    async def _post(self, room: Room) -> None:
        with self._now.timings.step("post"):
            await room.post(self._now.act.instruction)

    async def _prepare(self) -> tuple[TeamAtWork, Room]:
        stage, cast, resources = self._stage, self._cast, self._resources
        resources.push_async_callback(self._settle)
        issuing = asyncio.create_task(issue_tokens(stage.session, cast, self._task.script))
        # Should the room fail, nobody asks for the tokens' own failure.
        issuing.add_done_callback(lambda task: task.cancelled() or task.exception())
        resources.callback(issuing.cancel)
        bringing = teams.bringing(stage, cast, asyncio.shield(issuing))
        if bringing is not None:
            bringing.add_done_callback(lambda task: task.cancelled() or task.exception())
            resources.callback(bringing.cancel)
        timings = self._now.timings
        room = await resources.enter_async_context(provisioned(stage.session, cast, timings))
        room.answers = self._task.answers
        handles.announce(cast.handle(stage.session.condition.sha256))
        team = teams.seated(stage, room, await issuing, bringing, self._now.report, timings)
        resources.push_async_callback(self._dismiss, team)
        return team, room

    async def _work(self, team: TeamAtWork, notices: AsyncIterator[Notice]) -> End:
        limit = replace(self._now.act.limit, worked_s=self._worked_s)
        deadline = Deadline.start(limit, self._now.began_at)
        try:
            return await team.work(deadline, notices)
        finally:
            self._worked_s += deadline.worked_s

    async def _leave(self, team: TeamAtWork, room: Room, end: End | None) -> End | None:
        """Stop the team and write down what it did; the fault where that failed, else None."""
        act, report, timings = self._now.act, self._now.report, self._now.timings
        try:
            with timings.step("stop"):
                if end is None or end.fault or act.is_last:
                    await asyncio.gather(team.stop(), self._settle(grace_s=0.0 if end is None else CALL_GRACE_S))
                else:
                    self._paused = True
                    await asyncio.gather(team.pause(), self._rest(cut=not team.hears_late_answers))
            self._label(team, room)
            with timings.step("evidence"):
                found = await self._write_evidence(team, room, relay_is_gone=_relay_is_gone(end))
        except Exception as error:
            failed = of_error(error)
            self._stage.logger.warning("evidence of %s: %s", room.cast.trial, error)
            if end is None or end.fault is None:
                report.end(failed)
            return failed
        with timings.step("upload"):
            await asyncio.gather(self._upload(), team.recall(), self._cross_check(team, end))
        # Of a team that was never given this step the newest is of the one before.
        played = team.played() if room.posted else ()
        story = export.Story(room.cast.trial, self._stage.version, act.instruction, played)
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
            self._now.report.label("unexplained_event")
        step, posted = self._now.act.step, room.posted["id"] if room.posted else None
        part = Part(step.name, step.number, step.of, posted) if step else None
        found = export.build(room.cast, events, unexplained, part)
        self._now.report.evidence(await export.write_evidence(self._directory, found))
        return found

    @property
    def _directory(self) -> Path:
        """Where the host's own copy of the evidence belongs."""
        step, trial_dir = self._now.act.step, self._stage.trial_dir
        return step.directory(trial_dir) if step else trial_dir

    async def _upload(self) -> None:
        try:
            async with asyncio.timeout(EVIDENCE_S):
                await export.upload(self._stage.environment, self._directory)
        except Exception as error:
            # The agents had control of the environment: that it is gone is a label, and the verifier will say so.
            self._stage.logger.warning("the environment takes no evidence: %s", error)
            self._now.report.label("environment_lost")

    async def _cross_check(self, team: TeamAtWork, end: End | None) -> None:
        # Of a team that goes on the reports are not complete yet.
        if not self._paused and not _relay_is_gone(end) and (check := await team.cross_check()):
            self._now.report.self_report(check)

    def _label(self, team: TeamAtWork, room: Room) -> None:
        report = self._now.report
        report.label(*team.labels())
        if room.interruptions_survived:
            report.label("relay_restarted")
        if strangers(room):
            report.label("tainted")
        if room.clock.jumped_s:
            report.label("clock_jumped")

    async def _settle(self, grace_s: float = 0.0) -> None:
        """Kill the trial's tokens and book what they used. Of a gateway that is gone they are dead already."""
        await self._book(self._stage.session.lease.revoke(self._cast.trial, grace_s=grace_s))

    async def _rest(self, *, cut: bool) -> None:
        """Let no call out until the next act, and book what was used in this one."""
        await self._book(self._stage.session.lease.rest(self._cast.trial, grace_s=CALL_GRACE_S, cut=cut))

    async def _book(self, asking: Awaitable[Mapping[str, AgentUsage]]) -> None:
        try:
            self.used = await asking
        except GatewayError as error:
            self._stage.logger.warning("usage of %s is our own count: %s", self._cast.trial, error)
            return
        before = self._now.used_before
        self._held_calls = sum(used.held_calls for used in self.used.values())
        self._held_calls -= sum(used.held_calls for used in before.values())
        capped_before = sum(used.capped_calls for used in before.values())
        if sum(used.capped_calls for used in self.used.values()) > capped_before:
            self._now.report.label(OWN_CAP)
        self._now.report.meter.settle(self.used)

    async def _dismiss(self, team: TeamAtWork) -> None:
        """End those who were only paused, for no further act."""
        if self._paused:
            await team.stop()


def _relay_is_gone(end: End | None) -> bool:
    return end is not None and end.fault is not None and end.fault.kind == "relay_gone"


async def _within(seconds: float, work: Coroutine[Any, Any, object]) -> None:
    """Let the work end, but not for longer, also where one is cancelled again meanwhile."""
    task = asyncio.create_task(work)
    try:
        await asyncio.wait({task}, timeout=seconds)
    finally:
        task.cancel()
