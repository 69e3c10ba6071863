"""Events come out whole, however a stream is cut into chunks."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from bench.gateway.sse import Splitter, data_of

EVENTS = [
    b"event: a\ndata: 1\n\n",
    b": comment\n\n",
    b"data: 2\r\ndata: 3\r\n\r\n",
    b"data: 4\r\r",
    b"data: \xc3\xa9\n\n",
]


@given(st.lists(st.integers(0, sum(map(len, EVENTS))), max_size=8))
def test_events_are_whole_whatever_the_borders(cuts: list[int]) -> None:
    stream = b"".join(EVENTS) + b"data: torn"
    borders = [0, *sorted(cuts), len(stream)]
    splitter = Splitter()
    found = [event for a, b in pairwise(borders) for event in splitter.feed(stream[a:b])]
    assert found == EVENTS
    assert splitter.rest == b"data: torn"


def test_data_is_what_stands_in_the_data_fields() -> None:
    assert data_of(b"event: a\ndata: 1\ndata:2\nid: 3\n\n") == b"1\n2"
    assert data_of(b": nothing\n\n") == b""
