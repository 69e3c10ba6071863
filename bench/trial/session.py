"""What the trials of one job share in Harbor's process: condition, addresses, the HTTP session and the lease.

A session is opened by the job's first trial, in its event loop, and lives until `close()` or until the loop ends:
the loop cancels what still runs, and with it the keeper that holds everything. With the lease end all tokens.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp

from bench import unreachable
from bench.errors import MachineLacks
from bench.trial import notes, stops
from bench.trial.doors import Doors
from bench.trial.provisioner import FILE_NAME, Provisioner, given_run_dir, load_provisioner, run_dir_of
from bench.trial.terms import Terms, api_key

if TYPE_CHECKING:
    from bench.condition import Condition
    from bench.endpoints import Endpoint
    from bench.gateway.client import Lease
    from bench.gateway.protocol import JobNotice, Recording

RECEIPTS = "buzzbench-receipts.jsonl"
READY_S = 10.0


class Session:
    """One job's session. Get it with `of()`."""

    def __init__(
        self,
        condition: Condition,
        endpoints: Mapping[str, Endpoint],
        provisioner: Provisioner,
        http: aiohttp.ClientSession,
        lease: Lease,
        doors: Doors,
    ) -> None:
        self.condition, self.endpoints, self.provisioner = condition, endpoints, provisioner
        self.http, self.lease = http, lease
        self.owner, self.user = provisioner.owner, provisioner.user
        self.user_tag = self.owner.attest(self.user.public)
        self.doors = doors
        self.introduced = False
        """Whether the user's profile is on the relay."""


_sessions: dict[Path, asyncio.Task[Session]] = {}
_keepers: dict[Path, asyncio.Task[None]] = {}


async def of(job_dir: Path, terms: Terms) -> Session:
    """The job's session, opened now if it is the first trial. Raises BuzzbenchError; the next trial tries anew."""
    opening = _sessions.get(job_dir)
    if opening is None:
        opening = _sessions[job_dir] = asyncio.get_running_loop().create_task(_open(job_dir, terms))
    return await asyncio.shield(opening)


async def discard(job_dir: Path, session: Session) -> None:
    """Close this session of the job because its gateway is gone; the next trial opens another."""
    opening = _sessions.get(job_dir)
    if opening is not None and opening.done() and not opening.cancelled() and opening.result() is session:
        await _end(job_dir)


async def close() -> None:
    """Close every session of this process: call it at the end of a run."""
    for job_dir in tuple(_keepers):
        await _end(job_dir)


async def _end(job_dir: Path) -> None:
    _sessions.pop(job_dir, None)
    keeper = _keepers.pop(job_dir)
    keeper.cancel()
    await asyncio.gather(keeper, return_exceptions=True)


async def _open(job_dir: Path, terms: Terms) -> Session:
    ready: asyncio.Future[Session] = asyncio.get_running_loop().create_future()
    keeper = asyncio.get_running_loop().create_task(_keep(job_dir, terms, ready))
    _keepers[job_dir] = keeper
    keeper.add_done_callback(lambda ended: _forget(job_dir, ended))
    return await ready


def _forget(job_dir: Path, keeper: asyncio.Task[None]) -> None:
    if _keepers.get(job_dir) is keeper:
        del _keepers[job_dir]
        _sessions.pop(job_dir, None)


async def _keep(job_dir: Path, terms: Terms, ready: asyncio.Future[Session]) -> None:
    """Hold the session's resources until cancelled: by `discard`, or by the end of the event loop."""
    async with AsyncExitStack() as resources:
        try:
            session = await _make(job_dir, terms, resources)
        except Exception as error:
            if not ready.cancelled():
                ready.set_exception(error)
            return
        except asyncio.CancelledError:
            ready.cancel()
            raise
        if not ready.cancelled():
            ready.set_result(session)
            await asyncio.get_running_loop().create_future()


async def _make(job_dir: Path, terms: Terms, resources: AsyncExitStack) -> Session:
    from bench.channel import open_session
    from bench.gateway.client import Lease
    from bench.gateway.protocol import Endpoint, Registration
    from bench.prices import FREE, sheet_sha256
    from bench.stack import jobs

    condition = terms.condition()
    endpoints = terms.team_endpoints(condition)
    run_dir = run_dir_of(job_dir.name)
    resources.enter_context(jobs.hold(run_dir))
    provisioner = load_provisioner(run_dir)
    if given_run_dir() is None:
        resources.callback((run_dir / FILE_NAME).unlink, missing_ok=True)
    lease = await Lease.open(provisioner.gateway_control)
    resources.push_async_callback(lease.close)
    lease.on_job = _hear
    await lease.register(
        Registration(
            job=job_dir.name,
            receipts=str((job_dir / RECEIPTS).absolute()),
            endpoints={
                name: Endpoint(e.provider, e.base_url or "", api_key(e), e.dialect) for name, e in endpoints.items()
            },
            prices=condition.prices,
            prices_sha256=sheet_sha256(condition.prices),
            record=_recording(job_dir, terms, condition) if terms.record else None,
            replay=str(terms.replay.absolute()) if terms.replay else None,
            budget=provisioner.budget,
            patience=provisioner.patience,
        )
    )
    if terms.replay:
        # What a cassette answers costs nothing; the gateway has the prices, for caps to bite as they did.
        condition = replace(condition, prices=dict.fromkeys(condition.prices, FREE))
    http = await resources.enter_async_context(open_session())
    doors = Doors()
    resources.push_async_callback(doors.close)
    await _check_relay(http, provisioner)
    return Session(condition, endpoints, provisioner, http, lease, doors)


def _recording(job_dir: Path, terms: Terms, condition: Condition) -> Recording:
    from bench.gateway.cassette import FILE_NAME as CASSETTE
    from bench.gateway.protocol import Recording

    return Recording(str((job_dir / CASSETTE).absolute()), condition.name, condition.sha256, terms.rehearsal)


def _hear(notice: JobNotice) -> None:
    """Hand on what the gateway says of the whole job."""
    if notice.state == "note":
        notes.say(notice.reason)
    else:
        stops.announce(stops.Stop(notice.state, notice.reason))


async def _check_relay(http: aiohttp.ClientSession, provisioner: Provisioner) -> None:
    """The relay and its database, asked once for the job (row R3); that they work, every trial's first write proves."""
    url = f"{provisioner.relay_http_url}/_readiness"
    try:
        async with http.get(url, timeout=aiohttp.ClientTimeout(total=READY_S)) as response:
            if response.status == 200:
                return
            what = f"it answers {response.status} {(await response.text())[:200]}"
    except (aiohttp.ClientError, TimeoutError) as error:
        what = unreachable.said(error)
    raise MachineLacks.of(url, f"the relay is not ready: {what}", "run `inv up`")
