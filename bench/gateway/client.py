"""The asyncio client of the gateway's control socket: one connection is the job's lease.

    lease = await Lease.open(address.gateway_control)
    await lease.register(Registration(job=…, receipts=…, endpoints=…, prices=…, prices_sha256=…))
    async with lease.notices(trial) as notices:        # subscribe before the agents start
        grant = await lease.issue(Issue(trial=trial, task=…, agent="worker-1", member="worker", …))
        async for notice in notices: …
    usage = await lease.revoke(trial)                  # {"worker-1": AgentUsage(…)}
    await lease.close()

When the connection ends, every token of the job is dead; open subscriptions then get
one `gateway_lost` and end.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from bench.errors import BuzzbenchError
from bench.gateway.protocol import AgentUsage, Grant, Issue, JobNotice, Notice, Registration

_LINE_BYTES = 16 * 1024 * 1024

END_S = 10.0
"""How long the end of a lease may take: calls under way are cut and booked, and a cassette is put in order."""


class GatewayError(BuzzbenchError):
    """The gateway refused a request, or is gone."""


class Lease:
    """A job's connection to the gateway. Use it from one event loop."""

    on_job: Callable[[JobNotice], None] | None = None
    """Gets what concerns the whole job, from `register` on."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._ids = itertools.count(1)
        self._replies: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._subscribers: dict[str, list[asyncio.Queue[Notice]]] = {}
        self._lost: Notice | None = None
        self._closing = False
        self._pump = asyncio.create_task(self._read(), name="gateway lease")

    @classmethod
    async def open(cls, control: str | Path) -> Self:
        """A lease over the socket at `control`. Raises GatewayError when no gateway listens there."""
        try:
            reader, writer = await asyncio.open_unix_connection(str(control), limit=_LINE_BYTES)
        except OSError as error:
            raise GatewayError(
                f"no gateway answers: {error.strerror}", fix="run `inv up`", where=str(control)
            ) from error
        lease = cls(reader, writer)
        await lease._ask("hello")
        return lease

    async def register(self, registration: Registration) -> None:
        """Register the job, once for a lease. Raises GatewayError with the reason when it is refused."""
        await self._ask("register", **asdict(registration))

    async def issue(self, issue: Issue) -> Grant:
        """A fresh token for one agent. Raises GatewayError when it doesn't fit the job."""
        reply = await self._ask("issue", **asdict(issue))
        turns = reply.get("turns")
        return Grant(reply["token"], reply["base_url"], None if turns is None else tuple(map(tuple, turns)))

    async def revoke(self, trial: str, agent: str | None = None, *, grace_s: float = 0) -> dict[str, AgentUsage]:
        """Kill the agent's token, or all of the trial; return the usage of those agents.

        Calls under way may end within `grace_s` seconds; then they are cut, and count as unknown at their
        reserved bound.
        """
        return _usage(await self._ask("revoke", trial=trial, agent=agent, grace_s=grace_s), "usage")

    async def step(self, trial: str, name: str) -> None:
        """A step of the trial's task begins: its agents may call (again), and their receipts name it."""
        await self._ask("step", trial=trial, step=name)

    async def rest(self, trial: str, *, grace_s: float, cut: bool) -> dict[str, AgentUsage]:
        """The step has ended: no call goes out until the next begins. Returns the trial's usage so far.

        Calls under way may end within `grace_s` seconds. Then `cut` cuts them, which is right where nobody hears
        their answers any more; else they end when they end.
        """
        return _usage(await self._ask("rest", trial=trial, grace_s=grace_s, cut=cut), "usage")

    async def usage(self, trial: str) -> dict[str, AgentUsage]:
        """The usage of the trial's agents so far, by name."""
        return _usage(await self._ask("usage", trial=trial), "agents")

    @asynccontextmanager
    async def notices(self, trial: str) -> AsyncIterator[AsyncIterator[Notice]]:
        """The trial's notices from here on, as an async iterator that ends after `gateway_lost`."""
        queue: asyncio.Queue[Notice] = asyncio.Queue()
        if self._lost is not None:
            queue.put_nowait(self._lost)
        self._subscribers.setdefault(trial, []).append(queue)
        try:
            yield _drain(queue)
        finally:
            self._subscribers[trial].remove(queue)
            if not self._subscribers[trial]:
                del self._subscribers[trial]

    async def close(self) -> None:
        """End the lease: every token of the job is dead, its receipts and cassette are whole. May be called twice."""
        self._closing = True
        self._writer.write_eof()
        await asyncio.wait((self._pump,), timeout=END_S)
        self._writer.close()
        await asyncio.gather(self._pump, return_exceptions=True)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _ask(self, op: str, **fields: Any) -> dict[str, Any]:
        if self._lost is not None:
            raise GatewayError(self._lost.reason)
        number = next(self._ids)
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._replies[number] = answer
        try:
            self._writer.write(json.dumps({"id": number, "op": op, **fields}).encode() + b"\n")
            reply = await answer
        finally:
            del self._replies[number]
        if not reply["ok"]:
            raise GatewayError(f"the gateway refused `{op}`: {reply['error']}")
        return reply

    async def _read(self) -> None:
        try:
            while line := await self._reader.readline():
                self._take(json.loads(line))
        except (OSError, ValueError) as error:
            self._end(f"the connection to the gateway broke: {error}")
        else:
            self._end("the lease was closed" if self._closing else "the gateway ended the connection")
        finally:
            self._writer.close()

    def _take(self, message: dict[str, Any]) -> None:
        if message.get("notice") == "job":
            self._take_job(JobNotice(message["state"], message["reason"], message["until"]))
        elif "notice" in message:
            notice = Notice(message["kind"], message["reason"], message["trial"], message["agent"])
            for queue in self._subscribers.get(notice.trial, ()):
                queue.put_nowait(notice)
        elif (answer := self._replies.get(message["id"])) is not None and not answer.done():
            answer.set_result(message)

    def _take_job(self, notice: JobNotice) -> None:
        if self.on_job is not None:
            self.on_job(notice)
        if notice.state == "stopped":
            for trial, queues in self._subscribers.items():
                for queue in queues:
                    queue.put_nowait(Notice("upstream_refused", notice.reason, trial))

    def _end(self, reason: str) -> None:
        self._lost = Notice("gateway_lost", reason)
        for answer in self._replies.values():
            if not answer.done():
                answer.set_exception(GatewayError(reason))
        for queue in itertools.chain.from_iterable(self._subscribers.values()):
            queue.put_nowait(self._lost)


async def _drain(queue: asyncio.Queue[Notice]) -> AsyncIterator[Notice]:
    while True:
        notice = await queue.get()
        yield notice
        if notice.kind == "gateway_lost":
            return


def _usage(reply: dict[str, Any], key: str) -> dict[str, AgentUsage]:
    return {agent: AgentUsage(**fields) for agent, fields in reply[key].items()}
