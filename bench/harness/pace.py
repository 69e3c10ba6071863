"""Which of the mentions that wait begin a turn: all of them, or in a replay those that began the recorded one. Pure.

What a batch holds hangs on milliseconds, and a replay answers at once. An agent sends its messages one after the
other, so naming their authors in order says which they are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from bench.nostr import Event


class Pace:
    """The pace of one agent. `turns` are the recorded ones, each the public keys of its mentions' authors in order.

    A turn without authors is one that a nudge began. Without `turns` whatever waits makes a turn.
    """

    def __init__(self, turns: Sequence[Sequence[str]] | None = None) -> None:
        self._turns = None if turns is None else deque(turns)

    def take(self, waiting: deque[Event], *, prodded: bool) -> tuple[Event, ...] | None:
        """The mentions of the next turn, taken out of those that wait; None where it isn't time for it.

        One who is prodded gets what there is, though it isn't what was recorded: the replay then says what differs.
        """
        if self._turns is None or (waiting and (prodded or not self._turns)):
            taken = tuple(waiting)
        elif prodded and self._turns:
            taken = ()
        else:
            recorded = self._recorded(waiting)
            if recorded is None:
                return None
            taken = recorded
        for event in taken:
            waiting.remove(event)
        if self._turns:
            self._turns.popleft()
        return taken

    def _recorded(self, waiting: deque[Event]) -> tuple[Event, ...] | None:
        """The recorded turn's mentions, None while some are missing or none are to come."""
        if not self._turns or not self._turns[0]:
            return None
        rest, chosen = list(waiting), []
        for author in self._turns[0]:
            found = next((event for event in rest if event["pubkey"] == author), None)
            if found is None:
                return None
            rest.remove(found)
            chosen.append(found)
        return tuple(chosen)
