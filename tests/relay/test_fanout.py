"""Queues that are bounded, answers and live events that join without seam, and events for those who may see them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from bench.nostr import Event, Key
from bench.relay.channels import Channel
from bench.relay.fanout import SEND_BUFFER, Fanout, Live, Outbox
from bench.relay.protocol import parse_filters
from tests.relay.running import within

KEY = Key.generate()


class Sent(list[str]):
    async def send(self, frames: list[str]) -> None:
        self.extend(frames)


def outbox(cuts: list[bool] | None = None) -> Outbox:
    return Outbox(lambda: (cuts if cuts is not None else []).append(True))


def live(box: Outbox, *filters: Any, channel: str | None = "room", public: str = KEY.public) -> Live:
    return Live("s", public, parse_filters(list(filters) or [{}]), channel, box)


async def pumped(box: Outbox) -> list[Any]:
    sent = Sent()
    task = asyncio.create_task(box.pump(sent.send))
    await within(box.flushed())
    task.cancel()
    return [json.loads(frame) for frame in sent]


def event(text: str, kind: int = 9, *tags: list[str]) -> tuple[Event, str]:
    made = KEY.sign(kind, text, list(tags))
    return made, json.dumps(made)


async def test_frames_leave_in_the_order_in_which_they_came() -> None:
    box = outbox()
    for number in range(10):
        box.push(str(number))
    assert await pumped(box) == list(range(10))


async def test_one_frame_too_many_cuts_the_client_once_and_frees_the_queue() -> None:
    cuts: list[bool] = []
    box = outbox(cuts)
    for number in range(SEND_BUFFER + 5):
        box.push(str(number))
    assert cuts == [True]
    await within(box.push_stored("1"))
    assert not box._frames


async def test_stored_events_leave_half_the_queue_to_live_ones() -> None:
    box = outbox()

    async def answer() -> None:
        for number in range(SEND_BUFFER):
            await box.push_stored(str(number))

    task = asyncio.create_task(answer())
    await asyncio.sleep(0)
    assert len(box._frames) == SEND_BUFFER // 2
    pump = asyncio.create_task(box.pump(Sent().send))
    await within(task)
    pump.cancel()


async def test_live_events_wait_for_the_stored_answer_and_are_not_repeated() -> None:
    box = outbox()
    subscription = live(box)
    (one, raw_one), (two, raw_two), (three, raw_three) = event("1"), event("2"), event("3")
    subscription.deliver(one["id"], raw_one)
    subscription.deliver(two["id"], raw_two)
    box.push(subscription.frame(raw_one))
    subscription.settle({one["id"], three["id"]}, inflight={three["id"]})
    subscription.deliver(three["id"], raw_three)  # its commit is heard of only now
    subscription.deliver(three["id"], raw_three)  # which the relay never does; but only one is dropped
    frames = await pumped(box)
    assert frames == [
        ["EVENT", "s", one],
        ["EOSE", "s"],
        ["EVENT", "s", two],
        ["EVENT", "s", three],
    ]


async def test_too_many_events_during_an_answer_cut_the_client() -> None:
    cuts: list[bool] = []
    subscription = live(outbox(cuts))
    for number in range(SEND_BUFFER + 1):
        subscription.deliver(str(number), "{}")
    assert cuts == [True]


async def settled(fanout: Fanout, **given: Any) -> tuple[Outbox, Live]:
    box = outbox()
    subscription = live(box, *given.pop("filters", []), **given)
    subscription.settle(set(), ())
    fanout.add(subscription)
    return box, subscription


async def test_an_event_reaches_those_who_ask_for_it_in_its_channel() -> None:
    fanout = Fanout()
    asked, _ = await settled(fanout, filters=[{"kinds": [7]}, {"kinds": [9]}])
    other_kind, _ = await settled(fanout, filters=[{"kinds": [7]}])
    other_channel, _ = await settled(fanout, channel="elsewhere")
    everywhere, _ = await settled(fanout, channel=None)
    message, raw = event("x")
    fanout.send(message, raw, "room")
    assert await pumped(asked) == [["EOSE", "s"], ["EVENT", "s", message]]
    for box in (other_kind, other_channel, everywhere):
        assert await pumped(box) == [["EOSE", "s"]]


async def test_a_gated_event_reaches_the_key_it_names_only() -> None:
    fanout = Fanout()
    mine, _ = await settled(fanout, channel=None)
    others, _ = await settled(fanout, channel=None, public="other")
    notice, raw = event("x", 44100, ["p", KEY.public])
    fanout.send(notice, raw, None)
    assert len(await pumped(mine)) == 2
    assert len(await pumped(others)) == 1


async def test_a_removed_subscription_hears_nothing_and_may_be_removed_twice() -> None:
    fanout = Fanout()
    box, subscription = await settled(fanout)
    fanout.remove(subscription)
    fanout.remove(subscription)
    fanout.send(*event("x"), "room")
    assert await pumped(box) == [["EOSE", "s"]]


async def test_who_may_not_read_a_channel_any_more_is_found() -> None:
    fanout = Fanout()
    _, stays = await settled(fanout)
    _, goes = await settled(fanout, public="gone")
    channel = Channel("room", "", private=True, members={KEY.public: "member"})
    assert fanout.revoked(channel) == [goes]
    assert fanout.revoked(channel) == []
    assert stays.channel == "room"
