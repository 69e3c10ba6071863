"""When a job doesn't wait any longer for an upstream, with a clock that the test moves."""

from __future__ import annotations

import pytest

from bench.gateway.backoff import Patience
from bench.gateway.protocol import JobNotice
from bench.gateway.refusals import Refused
from bench.gateway.standing import Standing
from bench.gateway.trouble import Trouble
from tests.gateway.test_backoff import Clock

BUSY = Trouble("busy")


def troubled(standing: Standing, clock: Clock, most: int = 99) -> int:
    """How many attempts in a row, each made as soon as it may, are met with trouble until the job gives up."""
    for number in range(most):
        if not standing.met("a", standing.backoff("a").step, 529, "endpoint a answered 529", BUSY):
            return number
        clock.now += standing.backoff("a").left_s
    return most


def test_an_upstream_that_is_never_better_is_given_up_after_the_longest_wait() -> None:
    clock, said = Clock(), list[JobNotice]()
    standing = Standing(Patience(longest_wait_s=300), said.append, clock)
    began = clock.now
    assert troubled(standing, clock) > 8
    assert 300 < clock.now - began <= 360
    note, waiting = said
    assert (note.state, note.reason) == ("note", "endpoint a answered 529; its calls wait 4 s")
    assert waiting.state == "waiting"
    assert waiting.reason.startswith("endpoint a answered 529, and nothing else for longest_wait_s 300: not before ")
    with pytest.raises(Refused) as refused:
        standing.check("a")
    assert (refused.value.status, refused.value.kind, refused.value.retry_after_s) == (429, "upstream_limit", 300)
    standing.check("b")
    clock.now += 301
    standing.check("a")


def test_one_that_gets_better_meanwhile_is_not() -> None:
    clock, said = Clock(), list[JobNotice]()
    standing = Standing(Patience(longest_wait_s=300), said.append, clock)
    for _ in range(20):
        troubled(standing, clock, 5)
        assert not standing.met("a", standing.backoff("a").step, 200, "", None)
    assert {notice.state for notice in said} == {"note"}
