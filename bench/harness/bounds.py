"""What a team may do before it counts as looping, and whether it still does anything. Pure: time comes in.

The caps end the trial with a visible reason, never in silence (public case 28).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Bounds:
    """Caps of one trial. A turn is what one batch of mentions sets off, a call one request to a model."""

    turns_per_agent: int = 200
    calls_per_turn: int = 100
    messages_per_trial: int = 1000
    ack_turns: int = 12
    """So many turns in a row of the whole team in which nothing was done but exchanging short messages."""
    ack_chars: int = 120
    """A message of at most so many characters is short."""

    def only_acks(self, turns: int) -> str:
        """The reason of an end after so many such turns."""
        return f"{turns} turns in a row did nothing but exchange messages of at most {self.ack_chars} characters"


class TeamEnded(Exception):
    """The team's own doing has ended its work. `kind` is `loop` or `budget`."""

    def __init__(self, kind: str, reason: str) -> None:
        self.kind, self.reason = kind, reason
        super().__init__(f"{kind}: {reason}")


@dataclass
class _Turn:
    calls: int = 0
    messages: int = 0
    longest_chars: int = 0
    published: bool = False
    worked: bool = False


@dataclass
class Conduct:
    """Watches the conduct of one team. `clock` gives seconds that never go back."""

    clock: Callable[[], float]
    bounds: Bounds = field(default_factory=Bounds)
    messages: int = 0
    _turns: dict[str, int] = field(default_factory=dict)
    _running: dict[str, _Turn] = field(default_factory=dict)
    _silent: dict[str, int] = field(default_factory=dict)
    _acks: int = 0
    _quiet_since: float | None = None

    def begin_turn(self, agent: str) -> None:
        """A turn of the agent begins. Raises TeamEnded when it is one too many."""
        self._quiet_since = None
        self._turns[agent] = self._turns.get(agent, 0) + 1
        if self._turns[agent] > self.bounds.turns_per_agent:
            raise TeamEnded("loop", f"{agent} was woken more than {self.bounds.turns_per_agent} times")
        self._running[agent] = _Turn()

    def call(self, agent: str) -> None:
        """The agent asks its model. Raises TeamEnded when it is one call too many in this turn."""
        turn = self._running[agent]
        turn.calls += 1
        if turn.calls > self.bounds.calls_per_turn:
            raise TeamEnded("loop", f"{agent} made more than {self.bounds.calls_per_turn} model calls in one turn")

    def message(self, agent: str, chars: int) -> None:
        """The agent sends a message of so many characters. Raises TeamEnded when it is one too many of the trial."""
        self.messages += 1
        if self.messages > self.bounds.messages_per_trial:
            raise TeamEnded("loop", f"the team sent more than {self.bounds.messages_per_trial} messages")
        turn = self._running[agent]
        turn.messages += 1
        turn.longest_chars = max(turn.longest_chars, chars)
        self.publish(agent)

    def publish(self, agent: str) -> None:
        """The agent publishes something that is no message: a reaction, an edit, an order to the channel."""
        self._running[agent].published = True
        self._silent.pop(agent, None)

    def work(self, agent: str) -> None:
        """The agent does something beside talking: it runs a command, or arranges a channel."""
        self._running[agent].worked = True

    def end_turn(self, agent: str) -> None:
        """The agent's turn is over. Raises TeamEnded when the team only exchanges courtesies."""
        turn = self._running.pop(agent)
        if not turn.published:
            self._silent[agent] = self._silent.get(agent, 0) + 1
        if turn.worked or turn.longest_chars > self.bounds.ack_chars:
            self._acks = 0
        elif turn.messages:
            self._acks += 1
            if self._acks >= self.bounds.ack_turns:
                raise TeamEnded("loop", self.bounds.only_acks(self._acks))
        if not self._running:
            self._quiet_since = self.clock()

    def next_step(self) -> None:
        """A further step of the task begins: turns under way were broken off, and courtesies and silence count anew."""
        self._running.clear()
        self._silent.clear()
        self._acks = 0
        self._quiet_since = None

    @property
    def silent_turns(self) -> int:
        """Turns of mentioned agents that published nothing, and that no later turn of the agent made good (case 27)."""
        return sum(self._silent.values())

    @property
    def quiet_s(self) -> float:
        """Seconds since the last turn ended, 0 while one runs or before the first."""
        return 0.0 if self._quiet_since is None or self._running else self.clock() - self._quiet_since
