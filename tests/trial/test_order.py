"""Events that nobody saw arrive are put in by their time, and within a second after what they refer to."""

from __future__ import annotations

import itertools
from typing import Any

from bench.trial import order


def event(name: str, at: int, *refers_to: str) -> Any:
    return {"id": name, "created_at": at, "tags": [["e", other, "", "reply"] for other in refers_to]}


def ids(events: list[Any]) -> str:
    return "".join(e["id"] for e in events)


def test_an_answer_of_the_same_second_comes_after_its_question() -> None:
    said = [event("a", 2, "b"), event("b", 2, "c"), event("c", 2), event("d", 1), event("e", 3, "a")]
    for shuffled in itertools.permutations(said):
        assert ids(order.by_time(shuffled)) == "dcbae"


def test_what_refers_in_a_circle_or_to_the_unknown_is_in_there_once() -> None:
    """Ids are hashes, so that no honest event can; a relay of somebody's could say so."""
    assert ids(order.by_time([event("a", 1, "b", "z"), event("b", 1, "a", "b")])) == "ba"


def test_a_clock_that_goes_wrong_is_believed_before_a_reference() -> None:
    assert ids(order.by_time([event("a", 1, "b"), event("b", 2)])) == "ab"


def test_what_arrived_keeps_its_order_and_the_rest_is_put_in_by_time() -> None:
    arrived = [event("p", 5), event("q", 4), event("r", 7)]
    late = [event("z", 9), event("a", 5), event("b", 3), event("c", 7)]
    assert ids(order.put_in(arrived, late)) == "bpqarcz"
    assert ids(order.put_in(arrived, [])) == "pqr"
    assert ids(order.put_in([], late)) == "bacz"
