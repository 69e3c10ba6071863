"""Agents whose own cap keeps them from their models: their turns end, the rest of the team goes on and hears of it."""

from __future__ import annotations

from bench.trial import notes
from bench.trial.ends import End
from bench.trial.provision import Room

TOLD = (
    "[Notice] {agent} can't go on: {reason}. It gets no answer from its model any more, so don't wait for it: whoever "
    "needs what it was to do has to do that."
)
"""What the user says to the orchestrator, once for each such agent."""


class Caps:
    """The agents of one trial that have met a cap of their own. `reached` has the gateway's reasons by agent.

    `speaks` is whether the team is told: a script knows nothing of such a message.
    """

    def __init__(self, room: Room, *, speaks: bool) -> None:
        self._room, self._speaks = room, speaks
        self._lead = room.cast.orchestrator.agent.name
        self.reached: dict[str, str] = {}

    async def met(self, agent: str, reason: str) -> None:
        """The gateway refused a call of the agent for a cap of its own. Raises RelayGone and RelayRefused."""
        if agent in self.reached:
            return
        self.reached[agent] = reason
        notes.say(f"{self._room.cast.trial}: {reason}; its turn has ended, the others go on")
        if self._speaks and agent != self._lead:
            await self._room.remind(TOLD.format(agent=agent, reason=reason))

    @property
    def lead_is_out(self) -> bool:
        """Whether it is the orchestrator, without whom nobody can end the work."""
        return self._lead in self.reached

    def end(self) -> End | None:
        """The end of a team that has fallen silent for want of whom a cap has stopped; None where it stopped nobody."""
        if not self.reached:
            return None
        reason = self.reached.get(self._lead) or next(iter(self.reached.values()))
        return End("budget", f"Buzzbench budget: {reason}; nobody had anything to do after that")
