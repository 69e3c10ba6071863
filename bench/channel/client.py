"""What one identity does on a relay: publish, subscribe, query. Each survives a restart of the relay."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import aiohttp
import orjson

from bench import unreachable
from bench.channel.connection import Connection, Interruption, log, pauses
from bench.channel.errors import RelayGone, RelayRefused, is_trouble, rate_limit_s, wants_authentication
from bench.channel.subscription import PAGE_EVENTS, Filter, Subscription
from bench.nostr import Event, Key

TROUBLE_PAUSE_S = 0.25
TOO_MANY = 429


@dataclass(eq=False)
class _Pending:
    what: str
    frame: str
    answer: asyncio.Future[None]
    refused: bool = False
    held: bool = False  # has to be (re)sent once the connection can carry it


def open_session() -> aiohttp.ClientSession:
    """An HTTP session that many clients may share: no limit on connections, because a websocket keeps one."""
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))


class RelayClient:
    """One identity on one relay, in one event loop.

    `gone_after_s` bounds how long an unreachable relay is waited for before everything raises RelayGone;
    `answer_s` bounds any single call, reconnects included. A session that was given stays open at `close`.
    """

    def __init__(
        self,
        url: str,
        key: Key,
        *,
        auth_tag: Sequence[str] | None = None,
        session: aiohttp.ClientSession | None = None,
        gone_after_s: float = 30.0,
        answer_s: float = 60.0,
    ) -> None:
        self.url, self.key = url.rstrip("/"), key
        self._auth_tag = list(auth_tag) if auth_tag else None
        self._session, self._owns_session = session, session is None
        self._gone_after_s, self._answer_s = gone_after_s, answer_s
        self._connection = Connection(
            self.url,
            key,
            self._auth_tag,
            gone_after_s,
            on_frame=self._on_frame,
            on_open=self._on_open,
            on_loss=self._on_loss,
        )
        loop = asyncio.get_running_loop()
        self._up: asyncio.Future[None] = loop.create_future()
        self._gone: asyncio.Future[BaseException] = loop.create_future()
        self._pending: dict[str, _Pending] = {}
        self._subscriptions: dict[str, Subscription] = {}
        self._failure: BaseException | None = None
        self._names = itertools.count(1)
        self._tasks: set[asyncio.Task[None]] = set()
        self._silenced = False  # the relay wants to hear nothing for now
        self._silent_until = 0.0  # of the loop's clock: until when it did, or does

    @property
    def interruptions(self) -> tuple[Interruption, ...]:
        """Every loss of the connection since `connect`, oldest first."""
        return tuple(self._connection.interruptions)

    async def connect(self) -> Self:
        """Connected, and authenticated if the relay asks for that. Raises RelayGone or RelayRefused."""
        self._session = self._session or open_session()
        self._spawn(self._connection.run(self._session))
        try:
            await self._wait(self._up, "the connection")
        except BaseException:
            await self.close()
            raise
        return self

    async def publish(self, event: Event) -> str:
        """The event's id, once the relay has stored it. Raises RelayRefused or RelayGone."""
        identity = str(event["id"])
        pending = self._pending.get(identity)
        if pending is None:
            self._check()
            answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            answer.add_done_callback(lambda done: self._answered(identity, done))
            frame = f'["EVENT",{orjson.dumps(event).decode()}]'
            pending = self._pending[identity] = _Pending(f"an event of kind {event['kind']}", frame, answer)
            if self._silenced:
                pending.held = True
            else:
                await self._connection.send(frame)
        await self._wait(pending.answer, pending.what)
        return identity

    async def subscribe(self, wanted: Filter, on_event: Callable[[Event], None]) -> Subscription:
        """A live subscription to one filter; returns when the stored events were delivered, oldest first.

        `on_event` gets every matching event once, in order of arrival, across reconnects too. It must not
        block, and what it raises ends the client. The filter may have a `since`, but neither `limit` nor
        `until`: they would lose events. It should name one channel (`#h`), because a REQ over several or none
        gets no live events of channels (BUZZ.md section 0).
        """
        if "limit" in wanted or "until" in wanted:
            raise ValueError("a live subscription has neither limit nor until")
        self._check()
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        subscription = Subscription(f"s{next(self._names)}", dict(wanted), on_event, ready)
        self._subscriptions[subscription.name] = subscription
        try:
            if self._silenced:
                subscription.held = True
            else:
                await self._connection.send(subscription.request())
            await self._wait(ready, "a subscription")
        except BaseException:
            self._subscriptions.pop(subscription.name, None)
            raise
        return subscription

    async def unsubscribe(self, subscription: Subscription) -> None:
        """End it: `on_event` is not called again."""
        if self._subscriptions.pop(subscription.name, None):
            await self._connection.send(orjson.dumps(["CLOSE", subscription.name]).decode())

    async def query(self, filters: Sequence[Filter]) -> list[Event]:
        """Stored events over the HTTP bridge, newest first. Raises RelayRefused or RelayGone."""
        self._check()
        assert self._session is not None
        url = "http" + self.url.removeprefix("ws") + "/query"
        body = orjson.dumps(list(filters))
        headers = {"Content-Type": "application/json"}
        if self._auth_tag:
            headers["x-auth-tag"] = json.dumps(self._auth_tag)
        clock = asyncio.get_running_loop().time
        give_up_at = clock() + self._gone_after_s
        for pause in pauses():
            headers["Authorization"] = self.key.authorize("POST", url, body)
            try:
                async with self._session.post(url, data=body, headers=headers) as response:
                    answer = await response.read()
                if response.status == 200:
                    events: list[Event] = orjson.loads(answer)
                    return events
                cause = f"HTTP {response.status} {answer.decode(errors='replace')}"
                if response.status == TOO_MANY and (wait_s := rate_limit_s(_error_of(answer))):
                    give_up_at = max(give_up_at, clock() + wait_s + self._gone_after_s)
                    pause = wait_s
                elif response.status < 500:
                    raise RelayRefused("a query", cause)
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                cause = unreachable.said(error)
            if clock() + pause > give_up_at:
                break
            await asyncio.sleep(pause)
        raise RelayGone(f"{url} has not answered for {self._gone_after_s:g} s: {cause}")

    async def wait_gone(self) -> BaseException:
        """Wait until the client has given up or was closed, and return why."""
        return await asyncio.shield(self._gone)

    async def close(self) -> None:
        """Close the connection; what still waits raises RelayGone. May be called twice."""
        self._give_up(RelayGone("this client of the relay was closed"))
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._owns_session and self._session is not None:
            await self._session.close()

    async def __aenter__(self) -> Self:
        return await self.connect()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._give_up(error)

    def _give_up(self, error: BaseException) -> None:
        """From now on everything raises the error; the first one counts."""
        if self._failure is not None:
            return
        self._failure = error
        waiting = [p.answer for p in self._pending.values()] + [s.ready for s in self._subscriptions.values()]
        for future in (self._up, *waiting):
            if not future.done():
                future.set_exception(error)
                future.exception()  # seen: there may be nobody who waits for it
        self._gone.set_result(error)

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    async def _wait(self, answer: asyncio.Future[None], what: str) -> None:
        """Raises RelayGone after `answer_s` seconds in which the relay could have answered."""
        clock = asyncio.get_running_loop().time
        give_up_at = clock() + self._answer_s
        while not answer.done() and (left_s := max(give_up_at, self._silent_until + self._answer_s) - clock()) > 0:
            await asyncio.wait([answer], timeout=left_s)
        if not answer.done():
            raise RelayGone(f"{self.url} has not answered {what} for {self._answer_s:g} s")
        await answer

    def _be_silent(self, seconds: float) -> None:
        """The relay took something for too much: what has no answer is sent again when it wants to hear more.

        It answers no event that it drops, so that all that wait are taken for dropped; one that wasn't is known there.
        """
        until = asyncio.get_running_loop().time() + seconds
        for pending in self._pending.values():
            pending.held = True
        if until > self._silent_until:
            self._silenced, self._silent_until = True, until
            self._spawn(self._speak_again(until))

    async def _speak_again(self, until: float) -> None:
        await asyncio.sleep(until - asyncio.get_running_loop().time())
        if until == self._silent_until:
            self._silenced = False
            await self._send_held()

    async def _try_again(self, pending: _Pending) -> None:
        await asyncio.sleep(TROUBLE_PAUSE_S)
        pending.held = True
        await self._send_held()

    async def _ask_again(self, subscription: Subscription) -> None:
        await asyncio.sleep(TROUBLE_PAUSE_S)
        subscription.held = True
        await self._send_held()

    def _answered(self, identity: str, answer: asyncio.Future[None]) -> None:
        self._pending.pop(identity, None)
        if not answer.cancelled():
            answer.exception()  # seen: the publisher may have stopped waiting

    def _on_open(self, new: bool) -> None:
        if new:
            for pending in self._pending.values():
                pending.held, pending.refused = True, False
            for subscription in self._subscriptions.values():
                subscription.held = True
        self._spawn(self._send_held())
        if not self._up.done():
            self._up.set_result(None)

    def _on_loss(self, at: float) -> None:
        for subscription in self._subscriptions.values():
            subscription.interrupt(at)

    async def _send_held(self) -> None:
        if self._silenced:
            return
        for subscription in tuple(self._subscriptions.values()):
            if subscription.held:
                await self._connection.send(subscription.request())
        for pending in tuple(self._pending.values()):
            if pending.held:
                pending.held = False
                await self._connection.send(pending.frame)

    def _on_frame(self, frame: list[Any]) -> None:
        match frame:
            case ["EVENT", name, event]:
                if subscription := self._subscriptions.get(name):
                    subscription.take(event)
            case ["OK", identity, accepted, reason]:
                if pending := self._pending.get(identity):
                    self._on_ok(pending, accepted, reason)
            case ["EOSE", name]:
                subscription = self._subscriptions.get(name)
                if subscription and subscription.held_back is not None:
                    self._on_stored(subscription, subscription.held_back)
            case ["CLOSED", name, reason]:
                if subscription := self._subscriptions.get(name):
                    self._on_closed(subscription, reason)
            case ["NOTICE", str(text)] if wait_s := rate_limit_s(text):
                log.warning("%s is asked for too much, and again in %g s", self.url, wait_s)
                self._be_silent(wait_s)
            case _:
                log.warning("%s says %s", self.url, frame)

    def _on_ok(self, pending: _Pending, accepted: bool, reason: str) -> None:
        if pending.answer.done():
            return
        if accepted:
            pending.answer.set_result(None)
        elif is_trouble(reason):
            log.warning("%s refused %s and is asked again: %s", self.url, pending.what, reason)
            self._spawn(self._try_again(pending))
        elif wants_authentication(reason) and not pending.refused:
            pending.refused = pending.held = True
            if self._connection.authenticated:
                self._spawn(self._send_held())
        else:
            pending.answer.set_exception(RelayRefused(pending.what, reason))

    def _on_closed(self, subscription: Subscription, reason: str) -> None:
        if wants_authentication(reason) and not self._connection.authenticated:
            subscription.held = True
            return
        if wait_s := rate_limit_s(reason):
            subscription.held = True
            self._be_silent(wait_s)
            return
        if is_trouble(reason) and subscription.may_ask_again(self._answer_s):
            log.warning("%s ended a subscription, which is asked for again: %s", self.url, reason)
            self._spawn(self._ask_again(subscription))
            return
        subscription.closed = reason
        del self._subscriptions[subscription.name]
        if not subscription.ready.done():
            subscription.ready.set_exception(RelayRefused("a subscription", reason))

    def _on_stored(self, subscription: Subscription, stored: list[Event]) -> None:
        if len(stored) < PAGE_EVENTS:
            subscription.settle(stored, ())
        else:
            subscription.held_back = []
            self._spawn(self._page_back(subscription, stored, subscription.held_back))

    async def _page_back(self, subscription: Subscription, stored: list[Event], live: list[Event]) -> None:
        """Fetch the pages before a full one (keyset, BUZZ.md section 3), then settle."""
        page = stored
        while len(page) >= PAGE_EVENTS:
            before = {"until": page[-1]["created_at"], "before_id": page[-1]["id"], "limit": PAGE_EVENTS}
            page = await self.query([{**subscription.wanted, **before}])
            stored += page
        if subscription.held_back is live:  # else a reconnect has begun it anew
            subscription.settle(stored, live)


def _error_of(answer: bytes) -> str:
    """The text of an error of the HTTP bridge; empty where it has another form."""
    try:
        return str(orjson.loads(answer)["error"])
    except (orjson.JSONDecodeError, LookupError, TypeError):
        return ""
