"""Server-sent events in a stream of bytes, whatever the borders of its chunks."""

from __future__ import annotations

import re

_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_LONGEST_END = 4


class Splitter:
    """Cuts a stream into whole events, each with the blank line that ends it."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The events that are whole with this chunk."""
        held = self._held
        look_from = max(0, len(held) - _LONGEST_END + 1)
        # Most chunks are whole events, of which nothing is held and nothing copied.
        at_hand: bytes | bytearray = data
        if held:
            held += data
            at_hand = held
        events: list[bytes] = []
        begin = 0
        for end in _END.finditer(at_hand, look_from):
            events.append(bytes(at_hand[begin : end.end()]))
            begin = end.end()
        if at_hand is held:
            del held[:begin]
        else:
            held += data[begin:]
        return events

    @property
    def rest(self) -> bytes:
        """What has come since the last whole event."""
        return bytes(self._held)


def data_of(event: bytes) -> bytes:
    """The data of an event: its `data` fields' values, a line each."""
    values = (line[5:].removeprefix(b" ") for line in event.splitlines() if line.startswith(b"data:"))
    return b"\n".join(values)
