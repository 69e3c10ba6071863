"""A team of real agents at work: Buzz's own processes in the task's environment, watched at the relay and the gateway.

Nothing is asked of the environment while the team gives signs of life: a look costs a process there, and a trial may
wait for a model for a quarter of an hour.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence

from bench.channel import RelayGone, RelayRefused
from bench.gateway.protocol import Grant, Notice
from bench.harness.bounds import Bounds, TeamEnded
from bench.harness.builtin import Step
from bench.harness.buzz import prompt
from bench.harness.buzz.crew import Crew
from bench.harness.buzz.failures import AgentsNotReady, EnvironmentGone
from bench.nostr import Event, tag_value
from bench.trial import acp, courtesies, crosscheck, turns, work
from bench.trial.calls import Call, Calls
from bench.trial.caps import Caps
from bench.trial.deadline import Deadline
from bench.trial.ends import End, fault
from bench.trial.environments import check_usable
from bench.trial.meter import Meter
from bench.trial.provision import Room
from bench.trial.realkit import crew_in
from bench.trial.selfreport import Check
from bench.trial.signs import QUIET_S, SCRIPTED_QUIET_S, Signs
from bench.trial.stage import Stage
from bench.trial.timings import Timings
from bench.trial.trajectory import Played

PRESENCE = 40902
"""The kind by which a relay is asked who is online (BUZZ.md section 3)."""

ONLINE_S, ONLINE_PAUSE_S = 10.0, 0.02
LOOK_S = 0.5
"""How often receipts and signs of life are looked at."""

FRAMES_S = 3.0
"""To bring out what the agents and their buzz-acp said to each other."""

FRAMES = "acp.{}.jsonl"
HIDDEN = "[REDACTED]"


class RealTeam:
    """The agents of one trial. `died` are the names of those whose process ended before the work did."""

    def __init__(
        self,
        stage: Stage,
        room: Room,
        grants: Mapping[str, Grant],
        bringing: asyncio.Task[Crew],
        meter: Meter,
        timings: Timings,
    ) -> None:
        self._stage, self._room, self._grants, self._meter, self._timings = stage, room, grants, meter, timings
        self._bringing, self._crew = bringing, crew_in(stage)
        self._calls = Calls(stage.receipts, room.cast.trial)
        scripted = any(e.is_scripted for e in stage.session.endpoints.values())
        self._nudges = self._nudges_left = 0 if scripted else 1
        self._caps = Caps(room, speaks=not scripted)
        self._signs = Signs(asyncio.get_running_loop().time, SCRIPTED_QUIET_S if scripted else QUIET_S)
        self._names = {seat.key.public: seat.agent.name for seat in room.cast.seats}
        self._frames: Mapping[str, tuple[str, str]] = {}
        self._stopped_at = math.inf
        self._told = dict.fromkeys(self._names.values(), 0)
        """How many steps of each agent belong to what was asked earlier."""
        self.died: list[str] = []
        room.roams = True
        room.on_sign = self._heard

    async def start(self) -> None:
        """Start everybody. Raises AgentsNotReady, and what the environment raises.

        Where that fails, whether work can be done in the environment at all: asked before, that costs a process.
        """
        try:
            await self._start()
        except Exception:
            await check_usable(self._stage.environment)
            raise

    async def _start(self) -> None:
        with self._timings.step("bring"):
            await self._bringing
        with self._timings.step("launch"):
            await self._crew.start()
        with self._timings.step("read_back"):
            await self._read_back()

    async def _read_back(self) -> None:
        """See that the relay knows every agent to be there, which its process says last. Raises AgentsNotReady."""
        clock = asyncio.get_running_loop().time
        give_up_at = clock() + ONLINE_S
        awaited = {public: name for public, name in self._names.items() if name not in self.died}
        wanted = [{"kinds": [PRESENCE], "authors": list(awaited)}]
        while True:
            online = {tag_value(e, "p") for e in await self._room.user.query(wanted) if e["content"] == "online"}
            missing = [name for public, name in awaited.items() if public not in online]
            if not missing:
                return
            if clock() >= give_up_at:
                raise AgentsNotReady(f"{', '.join(missing)}: the relay has not seen them come online")
            await asyncio.sleep(ONLINE_PAUSE_S)

    async def work(self, deadline: Deadline, notices: AsyncIterator[Notice]) -> End:
        """How the work ends. The agents may still be running then: `stop` ends them."""
        self._signs.heard()
        watchers = [work.fatal(notices, self._caps), self._watch(), work.gone(self._room.user)]
        return await work.first_end(self._room, deadline, (), watchers)

    async def _watch(self) -> End:
        """Ends where an agent's model fails it for good, where nobody does anything any more, or where they died."""
        while True:
            await asyncio.sleep(LOOK_S)
            if self._room.deaf:
                return fault("relay_gone", f"the relay ended a subscription: {self._room.deaf}")
            new = self._count()
            if end := self._signs.take(new):
                return end
            if new and (end := self._only_polite()):
                return end
            if self._signs.wants_a_look and (end := await self._look()):
                return end
            if self._signs.quiet and not self._room.interrupted and (end := await self._nudge()):
                return end

    def _count(self) -> list[Call]:
        """The calls booked since the last time, counted."""
        new = self._calls.read()
        agents = {seat.agent.name: seat.agent for seat in self._room.cast.seats}
        for call in new:
            if call.outcome != "refused":
                self._meter.count(agents[call.agent], call.tokens)
        return new

    def _only_polite(self) -> End | None:
        """The end of a team that does nothing any more but exchange courtesies (public case 28)."""
        if self._room.clock.jumped_s:
            return None
        bounds = Bounds()
        events = list(self._room.directory.arrived.values())
        count = courtesies.in_a_row(events, self._room.seen_at, self._names, self._calls.all, bounds)
        return End("loop", bounds.only_acks(count)) if count >= bounds.ack_turns else None

    async def _look(self) -> End | None:
        try:
            look = await self._crew.look()
            self._note_dead(look.dead)
            lead = self._room.cast.orchestrator.agent.name
            if gone := [name for name in look.dead if name in (lead, "forwarder")]:
                return End(
                    "agents_died", f"{' and '.join(gone)} ended during the work, without which nobody can end it"
                )
            return await self._cut_off() if look.unreachable else None
        except EnvironmentGone as error:
            return End("environment_lost", str(error))

    async def _cut_off(self) -> End | None:
        """The end where the relay answers here and, before as after that, not there. Raises EnvironmentGone."""
        await self._room.user.query([{"kinds": [PRESENCE], "authors": list(self._names), "limit": 1}])
        look = await self._crew.look()
        if self._room.interrupted or not look.unreachable:
            return None
        return End("environment_lost", "the relay can't be reached from the environment any more: its network is gone")

    def _note_dead(self, names: Iterable[str]) -> None:
        self.died += [name for name in names if name not in self.died]

    async def _nudge(self) -> End | None:
        if self._caps.lead_is_out or not self._nudges_left:
            quiet = f"{self._signs.quiet_after_s:g} s"
            return self._caps.end() or End("loop", f"the team fell silent: nobody gave a sign of life for {quiet}")
        self._nudges_left -= 1
        self._signs.heard()
        await self._room.remind(prompt.NUDGE)
        return None

    async def stop(self) -> None:
        """End every process of theirs."""
        self._stopped_at = time.time()
        try:
            self._note_dead(await self._crew.stop())
        except EnvironmentGone as error:
            # What the agents had control of: that it is gone is a label, and the tokens are dead all the same.
            self._stage.logger.warning("%s: %s", self._room.cast.trial, error)

    hears_late_answers = True
    """A process that is halted still has its connections."""

    async def pause(self) -> None:
        """Halt every process of theirs."""
        try:
            await self._crew.halt()
        except EnvironmentGone as error:
            self._stage.logger.warning("%s: %s", self._room.cast.trial, error)

    async def go_on(self, meter: Meter, post: Callable[[], Awaitable[None]]) -> None:
        """Let them go on, and post the next step of the task once they hear.

        Raises EnvironmentGone, AgentsNotReady and TeamEnded.
        """
        self._meter = meter
        self._told = {name: len(self._steps(name)) for name in self._told}
        self._nudges_left = self._nudges
        await self._crew.go_on()
        if end := await self._look():
            raise TeamEnded(end.ended, end.reason)
        await self._read_back()
        self._room.heeds = self._is_of_this_step
        await post()

    def _is_of_this_step(self, done: Event) -> bool:
        """Whether the orchestrator has said it in a turn that began after this step was posted.

        A turn that was halted goes on before that is read, and its `DONE:` is of the step before.
        """
        self._count()
        lead = self._room.cast.orchestrator.agent.name
        its = turns.turns(call for call in self._calls.all if call.agent == lead)
        # Where the clock jumped nobody can tell, and one that is never heeded would cost the step.
        return bool(its) and (its[-1].began >= self._room.posted_at or self._room.clock.jumped_s != 0)

    async def recall(self) -> None:
        """Bring out what the agents and their buzz-acp said to each other, their secrets left out."""
        try:
            async with asyncio.timeout(FRAMES_S):
                self._frames = {
                    name: (self._hide(told), self._hide(said))
                    for name, (told, said) in (await self._crew.frames(self._stage.logs_dir)).items()
                }
        except Exception as error:
            # Whatever an environment raises where it is gone: the receipts still tell the steps.
            self._stage.logger.warning("%s: no frames: %s", self._room.cast.trial, error)
        await asyncio.to_thread(self._keep_frames)

    async def cross_check(self) -> Check | None:
        """What the agents report of their use beside the receipts; None where neither relay nor clock can be asked."""
        self._count()
        if self._room.clock.jumped_s:
            return None
        try:
            return await crosscheck.of_trial(self._stage.session, self._room.cast, self._calls.all, self._stopped_at)
        except (RelayGone, RelayRefused) as error:
            self._stage.logger.warning("%s: no cross-check of usage: %s", self._room.cast.trial, error)
            return None

    def _keep_frames(self) -> None:
        for name, both in self._frames.items():
            directory = self._stage.logs_dir / name
            directory.mkdir(exist_ok=True)
            for way, text in zip(("in", "out"), both, strict=True):
                (directory / FRAMES.format(way)).write_text(text, encoding="utf-8")

    def _hide(self, text: str) -> str:
        for seat in self._room.cast.seats:
            for secret in (seat.key.secret, seat.key.nsec, self._grants[seat.agent.name].token):
                text = text.replace(secret, HIDDEN)
        return text

    def _heard(self, event: Event) -> None:
        name = self._names.get(event["pubkey"])
        # buzz-acp tries the turns of an agent that has met its cap again and again: nothing comes of them.
        if name is not None and name not in self._caps.reached:
            self._signs.heard()

    def labels(self) -> list[str]:
        """Turns that nobody could see anything of, and agents that died."""
        self._count()
        events = list(self._room.directory.arrived.values())
        silent = (
            0
            if self._room.clock.jumped_s
            else sum(
                turns.silent(events, self._room.seen_at, public, [c for c in self._calls.all if c.agent == name])
                for public, name in self._names.items()
            )
        )
        return [*(["silent_turns"] if silent else []), *(["agents_died"] if self.died else [])]

    def unexplained(self, events: Sequence[Event]) -> list[str]:
        """Messages that an agent's key signed while the agent had no turn; none where the clock jumped meanwhile."""
        if self._room.clock.jumped_s:
            return []
        return turns.unexplained(events, self._room.seen_at, self._names, self._calls.all)

    def played(self) -> list[Played]:
        """What each agent did since the team was last asked for something."""
        names = [(seat.agent, seat.agent.name) for seat in self._room.cast.seats]
        return [Played(agent, self._steps(name)[self._told[name] :]) for agent, name in names]

    def _steps(self, name: str) -> list[Step]:
        told, said = self._frames.get(name, ("", ""))
        return acp.steps(told, said, [call for call in self._calls.all if call.agent == name])
