"""What a subscription asks for after a loss, also where the wall clock was set meanwhile."""

from __future__ import annotations

import asyncio
import json

import pytest

from bench.channel.subscription import OVERLAP_S, Subscription

LOST_AT = 1_800_000_000.0


async def since(*, away_s: float, wall_moved_s: float) -> int:
    """The `since` of the request that is sent after a loss of so long."""
    wall, steady = LOST_AT, 50.0
    ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    live = Subscription("s1", {}, lambda _: None, ready, wall=lambda: wall, steady=lambda: steady)
    live.settle([], [])
    live.interrupt(wall)
    wall, steady = wall + away_s + wall_moved_s, steady + away_s
    asked: int = json.loads(live.request())[2]["since"]
    return asked


async def test_it_asks_from_the_loss_on_with_an_overlap() -> None:
    assert await since(away_s=30, wall_moved_s=0) == LOST_AT - OVERLAP_S


async def test_a_clock_that_went_ahead_meanwhile_costs_nothing() -> None:
    assert await since(away_s=30, wall_moved_s=3_600) == LOST_AT - OVERLAP_S


@pytest.mark.parametrize("back_s", [900, 3_600, 86_400])
async def test_where_it_was_set_back_meanwhile_what_came_since_is_asked_for_all_the_same(back_s: int) -> None:
    """An event of just now has a time before the loss: it would be missed."""
    assert await since(away_s=30, wall_moved_s=-back_s) == LOST_AT - back_s - OVERLAP_S
