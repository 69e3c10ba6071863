"""A trial's place on the relay is read back before anything is asked of anybody."""

from __future__ import annotations

from typing import Any

import pytest

from bench import manifest
from bench.harness import events
from bench.harness.post import publish
from bench.nostr import tag_values
from bench.trial import provision, session
from bench.trial.provision import Cast, ProvisioningFailed, Room, provisioned
from bench.trial.terms import Terms
from bench.trial.timings import Timings


async def session_of(bench: Any) -> session.Session:
    terms = {"manifest": str(bench.manifest), "condition_sha256": manifest.load(bench.manifest).sha256}
    return await session.of(bench.job_dir, Terms.of({**terms, "rehearsal": "good"}))


async def put_out(room: Room, name: str) -> None:
    """Somebody is not on the channel's roll, as with a relay that adds two at once and loses one."""
    seat = next(seat for seat in room.cast.seats if seat.agent.name == name)
    order = [["h", room.cast.channel], ["p", seat.key.public]]
    await publish(room.user, room.cast.user.sign(events.REMOVE_MEMBER, "", order))


async def on_roll(room: Room) -> set[str]:
    (roll,) = await room.user.query([{"kinds": [provision.MEMBERS], "#d": [room.cast.channel]}])
    return set(tag_values(roll, "p"))


async def test_who_is_not_on_the_roll_is_added_again(bench: Any) -> None:
    opened = await session_of(bench)
    cast = Cast.draw(opened, trial="roll__1", task="buzz/roll")
    async with provisioned(opened, cast, Timings()) as room:
        everybody = {cast.user.public, *(seat.key.public for seat in cast.seats)}
        assert await on_roll(room) == everybody
        await put_out(room, "worker-1")
        assert len(await on_roll(room)) == len(everybody) - 1
        await provision.read_back(room)
        assert await on_roll(room) == everybody


async def test_a_roll_that_stays_short_is_the_trials_end_with_the_names(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provision, "ROLL_TRIES", 0)
    opened = await session_of(bench)
    async with provisioned(opened, Cast.draw(opened, trial="short__1", task="buzz/short"), Timings()) as room:
        await put_out(room, "worker-2")
        with pytest.raises(ProvisioningFailed, match=r"^the relay took worker-2 into the channel but"):
            await provision.read_back(room)
