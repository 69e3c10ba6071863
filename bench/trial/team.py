"""A team of the harness `builtin` at work: its agents run here and act in the environment through Harbor's `exec`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence

from bench.gateway.protocol import Grant, Notice
from bench.harness import prompt, toolspecs
from bench.harness.bounds import Conduct
from bench.harness.builtin import BuiltinAgent, Mind
from bench.harness.models import Model
from bench.harness.pace import Pace
from bench.harness.talk import Generation
from bench.harness.tools import Place, Toolbox
from bench.nostr import Event
from bench.trial import work
from bench.trial.caps import Caps
from bench.trial.deadline import CALL_GRACE_S, WIND_DOWN_S, Deadline
from bench.trial.ends import End, fault
from bench.trial.meter import Meter
from bench.trial.provision import USER, Room, Seat
from bench.trial.stage import Stage
from bench.trial.trajectory import Played

QUIET_S = 5.0
"""A team of which nobody has acted for so long, and nobody has anything to do, won't ever act again."""

LOOK_S = 0.5
"""How often to look whether a team has fallen quiet."""

HEARD_S = 5.0
"""For the message of a further step to come to the orchestrator, which the relay has taken."""

LAST_WORD_S = 0.5
"""For the call of `done` to return to who made it."""


class Team:
    """The agents of one trial in their room."""

    def __init__(
        self,
        stage: Stage,
        room: Room,
        grants: Mapping[str, Grant],
        meter: Meter,
    ) -> None:
        self._stage, self._room, self._meter = stage, room, meter
        self.conduct = Conduct(asyncio.get_running_loop().time)
        self.agents = {seat.agent.name: self._seat(seat, grants[seat.agent.name]) for seat in room.cast.seats}
        scripted = any(e.is_scripted for e in stage.session.endpoints.values())
        self._nudges = self._nudges_left = 0 if scripted else 1
        self._caps = Caps(room, speaks=not scripted)
        self._running: dict[asyncio.Task[None], str] = {}
        self._told = dict.fromkeys(self.agents, 0)
        """How many steps of each agent belong to what was asked earlier."""

    def _seat(self, seat: Seat, grant: Grant) -> BuiltinAgent:
        agent, room, session = seat.agent, self._room, self._stage.session
        tools = toolspecs.offered(agent.kind)
        bound = session.condition.output_bound(agent)
        assert bound is not None, "a builtin agent's answers have one"
        model = Model(
            session.http,
            base_url=grant.base_url,
            token=grant.token,
            dialect=session.endpoints[agent.endpoint].dialect,
            generation=Generation(agent.model, bound, agent.thinking_effort),
        )
        if grant.turns is not None:
            people = room.cast.people
            turns = [[people.get(author, author) for author in turn] for turn in grant.turns]
            room.inboxes[agent.name].pace = Pace(turns)
        environment = self._stage.environment
        system = prompt.system(
            agent,
            session.condition.agents,
            room.directory,
            user=USER,
            workdir=environment.task_env_config.workdir,
            task_skills=self._stage.skills,
        )
        client = room.clients[agent.name]
        place = Place(agent.name, client, room.directory, environment, self.conduct, USER, room.watch)
        return BuiltinAgent(
            agent.name,
            Mind(model, system, tools, agent.context_window_tokens),
            Toolbox(place, tools),
            room.inboxes[agent.name],
            room.directory,
            self.conduct,
            lambda tokens: self._meter.count(agent, tokens),
        )

    async def start(self) -> None:
        """Let every agent wait for mentions: before the task is posted."""
        for name, agent in self.agents.items():
            self._running[asyncio.create_task(agent.run(), name=name)] = name

    async def work(self, deadline: Deadline, notices: AsyncIterator[Notice]) -> End:
        """How the work ends. The agents may still be running then: `stop` ends them."""
        watchers = [
            work.fatal(notices, self._caps),
            self._quiet(),
            *(work.gone(client) for client in self._room.everyone),
        ]
        return await work.first_end(self._room, deadline, self._running, watchers)

    async def stop(self) -> None:
        """Cancel every agent, with the command that it may have running."""
        await self._cancel(self._running)

    async def _cancel(self, tasks: Collection[asyncio.Task[None]]) -> None:
        saying = [task for task in tasks if self.agents[self._running[task]].has_said_done]
        if saying:
            # It is heard sooner by push than its own call of `done` returns.
            await asyncio.wait(saying, timeout=LAST_WORD_S)
        for task in tasks:
            task.cancel()
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=WIND_DOWN_S)
        for task in late:
            self._stage.logger.warning("%s did not stop within %g s", self._running[task], WIND_DOWN_S)

    hears_late_answers = False
    """Whoever is cancelled listens to no answer any more."""

    async def pause(self) -> None:
        """Stop every agent. Their conversations stay, and the mentions that wait for them.

        A model call that is under way may end: what it says is in the conversation, as it is in the receipts. Or a
        recording could not tell on which side of the step's end an answer was.
        """
        thinking = [task for task, name in self._running.items() if self.agents[name].is_thinking]
        for agent in self.agents.values():
            agent.halt()
        await self._cancel(self._running.keys() - thinking)
        if thinking:
            await asyncio.wait(thinking, timeout=CALL_GRACE_S)
        await self._cancel(thinking)
        for task in self._running:
            # How an agent has ended meanwhile is of no interest any more; but it has to be asked.
            _ = task.done() and not task.cancelled() and task.exception()
        self._running.clear()

    async def go_on(self, meter: Meter, post: Callable[[], Awaitable[None]]) -> None:
        """Let them take up what has come meanwhile, the next step of the task with it.

        Otherwise an orchestrator could end a step with what it was still told in the one before.
        """
        self._meter = meter
        self._told = {name: len(agent.steps) for name, agent in self.agents.items()}
        self._nudges_left = self._nudges
        self.conduct.next_step()
        await post()
        if (posted := self._room.posted) is not None:
            await self._room.inboxes[self._room.cast.orchestrator.agent.name].hears(posted, HEARD_S)
        await self.start()

    async def recall(self) -> None:
        """Nothing: all that these agents did is known here."""

    async def cross_check(self) -> None:
        """Nothing: these agents report no use of their own. What they read of each answer, the meter holds."""

    def labels(self) -> list[str]:
        """That mentions were answered with nothing that anybody could see."""
        return ["silent_turns"] if self.conduct.silent_turns else []

    def unexplained(self, events: Sequence[Event]) -> list[str]:
        """None: the keys of these agents never leave the host, and sign what their tools are called for."""
        return []

    def played(self) -> list[Played]:
        """What each agent did since the team was last asked for something."""
        names = [(seat.agent, seat.agent.name) for seat in self._room.cast.seats]
        return [Played(agent, self.agents[name].steps[self._told[name] :]) for agent, name in names]

    async def _quiet(self) -> End:
        """Ends when nobody has anything to do any more. Real models are reminded once, a script isn't."""
        while True:
            await asyncio.sleep(LOOK_S)
            if self._room.deaf:
                return fault("relay_gone", f"the relay ended a subscription: {self._room.deaf}")
            if self._room.interrupted or self.conduct.quiet_s < QUIET_S:
                continue
            if waiting := [inbox for inbox in self._room.inboxes.values() if inbox.waiting]:
                # Only a replay keeps mentions waiting while nobody acts: for others that don't come this time.
                for inbox in waiting:
                    inbox.prod()
                continue
            if self._caps.lead_is_out or not self._nudges_left:
                silent = End("loop", f"the team fell silent: nobody had anything to do for {QUIET_S:g} s")
                return self._caps.end() or silent
            self._nudges_left -= 1
            self._room.inboxes[self._room.cast.orchestrator.agent.name].prod()
            await asyncio.sleep(QUIET_S)
