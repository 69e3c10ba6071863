"""In a replay a turn begins with the mentions that began the recorded one, whatever arrives first."""

from __future__ import annotations

from collections import deque

from bench.harness.pace import Pace
from bench.nostr import Event


def event(author: str, number: int = 1) -> Event:
    return {"id": f"{author}-{number}", "pubkey": author}


def ids(taken: tuple[Event, ...] | None) -> list[str] | None:
    return None if taken is None else [event["id"] for event in taken]


def test_without_a_recording_all_that_waits_makes_a_turn() -> None:
    waiting = deque([event("a"), event("b")])
    assert ids(Pace().take(waiting, prodded=False)) == ["a-1", "b-1"]
    assert not waiting
    assert ids(Pace().take(waiting, prodded=True)) == []


def test_a_recorded_turn_waits_for_all_its_mentions_and_has_their_order() -> None:
    pace, waiting = Pace([["a", "b"]]), deque([event("b")])
    assert pace.take(waiting, prodded=False) is None
    waiting.append(event("a"))
    assert ids(pace.take(waiting, prodded=False)) == ["a-1", "b-1"]


def test_what_came_earlier_than_recorded_waits_for_its_own_turn() -> None:
    pace, waiting = Pace([["a"], ["b", "a"]]), deque([event("b"), event("a"), event("a", 2)])
    assert ids(pace.take(waiting, prodded=False)) == ["a-1"]
    assert ids(pace.take(waiting, prodded=False)) == ["b-1", "a-2"]


def test_of_one_author_the_earlier_message_comes_first() -> None:
    pace, waiting = Pace([["a", "a"]]), deque([event("a", 1), event("a", 2)])
    assert ids(pace.take(waiting, prodded=False)) == ["a-1", "a-2"]


def test_a_turn_that_a_nudge_began_waits_for_one() -> None:
    pace, waiting = Pace([[], ["a"]]), deque[Event]()
    assert pace.take(waiting, prodded=False) is None
    assert ids(pace.take(waiting, prodded=True)) == []
    waiting.append(event("a"))
    assert ids(pace.take(waiting, prodded=False)) == ["a-1"]


def test_after_the_last_recorded_turn_mentions_count_and_prods_do_not() -> None:
    pace, waiting = Pace([]), deque[Event]()
    assert pace.take(waiting, prodded=True) is None
    waiting.append(event("a"))
    assert ids(pace.take(waiting, prodded=False)) == ["a-1"]


def test_one_who_is_prodded_takes_what_there_is() -> None:
    """The replay then says what differs, rather than wait for ever."""
    pace, waiting = Pace([["a", "b"], ["c"]]), deque([event("b")])
    assert ids(pace.take(waiting, prodded=True)) == ["b-1"]
    waiting.append(event("c"))
    assert ids(pace.take(waiting, prodded=False)) == ["c-1"]
