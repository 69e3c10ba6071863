"""Who may call: the jobs that hold a lease, their agents, and the tokens, which are kept as digests only."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from bench.gateway.backoff import Backoff
from bench.gateway.cassette import Cassette, Header
from bench.gateway.dialects import WIRES, Wire
from bench.gateway.ledger import Amount, Ledger, Reservation
from bench.gateway.player import Player
from bench.gateway.protocol import AgentUsage, Endpoint, FaultKind, Issue, JobNotice, Notice, Registration
from bench.gateway.receipts import Journal, Receipt, charged
from bench.gateway.recorder import Recorder
from bench.gateway.replayer import Part, Replay
from bench.gateway.script import read_script
from bench.gateway.standing import Standing
from bench.gateway.tape import Tape
from bench.prices import every_rate
from bench.secretforms import TOKEN_PREFIX

TOKEN_BYTES = 32


class NotAllowed(ValueError):
    """A request on the control socket that doesn't fit. The message goes to the job."""


@dataclass
class Tally:
    """An agent's sums, with how many calls reported each class."""

    calls: int = 0
    sent_calls: int = 0
    unknown_calls: int = 0
    refused_calls: int = 0
    held_calls: int = 0
    capped_calls: int = 0
    sums: dict[str, int] = field(default_factory=dict)

    _CLASSES = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens", "cost_usd_micros")

    def add(self, receipt: Receipt) -> None:
        """Count one receipt."""
        if receipt.outcome == "refused":
            self.refused_calls += 1
            return
        self.calls += 1
        self.unknown_calls += receipt.cost_usd_micros is None
        for name in self._CLASSES:
            number: int | None = getattr(receipt, name)
            if number is not None:
                self.sums[name] = self.sums.get(name, 0) + number

    @property
    def usage(self) -> AgentUsage:
        """The sums; a class that no call reported is unknown, unless there was no call."""
        known = {name: self.sums.get(name, None if self.calls else 0) for name in self._CLASSES}
        return AgentUsage(
            calls=self.calls,
            sent_calls=self.sent_calls,
            unknown_calls=self.unknown_calls,
            refused_calls=self.refused_calls,
            held_calls=self.held_calls,
            capped_calls=self.capped_calls,
            **known,
        )


class Cut(Exception):
    """A call's token died while an attempt at it was out."""


class OpenCall:
    """A call under way, from its coming in: it can be cut, and one can wait until it is booked."""

    def __init__(self) -> None:
        self._task: asyncio.Task[object] | None = None
        """Whose attempt has gone out; None while it waits for its turn, and looks itself whether its token lives."""
        self._is_cut = False
        self._booked = asyncio.Event()

    async def attempt[T](self, work: Awaitable[T]) -> T:
        """What becomes of an attempt that goes out. Raises Cut where the call is cut meanwhile."""
        # No task of its own: that would cost every call more than all of its bookkeeping.
        task = self._task = asyncio.current_task()
        assert task
        try:
            return await work
        except asyncio.CancelledError:
            if self._is_cut and not task.uncancel():
                raise Cut from None
            raise
        finally:
            self._task = None

    def cut(self) -> None:
        """Stop the work on it. It is then booked as unknown."""
        if self._task is not None and not self._is_cut:
            self._is_cut = True
            self._task.cancel()

    def booked(self) -> None:
        self._booked.set()

    async def wait(self) -> None:
        await self._booked.wait()


class Principal:
    """An agent with a token."""

    def __init__(self, job: Job, issue: Issue, endpoint: Endpoint, tally: Tally) -> None:
        self.job = job
        self.issue = issue
        self.endpoint = endpoint
        self.tally = tally
        self.wires = _wires(endpoint)
        """The dialects that the agent may speak."""
        self.player: Player | None = None
        """Who answers at a scripted endpoint."""
        self.part: Part | None = None
        """Who answers at a replaying one."""
        self.tape: Tape | None = None
        """Where the calls are recorded, if they are."""
        self.alive = True
        self.open: set[OpenCall] = set()
        self.told: set[FaultKind] = set()
        """What the job was told of it in this step of its trial's task."""

    @property
    def asks_upstream(self) -> bool:
        """Whether its calls go out to a real upstream."""
        return self.player is None and self.part is None

    @property
    def backoff(self) -> Backoff:
        """Its endpoint's."""
        return self.job.standing.backoff(self.issue.endpoint)

    def tell(self, kind: FaultKind, reason: str) -> None:
        """Send the job a notice, once for each kind."""
        if kind not in self.told:
            self.told.add(kind)
            self.job.notify(Notice(kind, reason, self.issue.trial, self.issue.agent))

    @property
    def step(self) -> str | None:
        """At which step of its task its trial is, or was last."""
        return self.job.steps.get(self.issue.trial)

    @property
    def rests(self) -> bool:
        """Whether its trial is between two steps of its task."""
        return self.issue.trial in self.job.resting

    async def end(self, grace_s: float) -> None:
        """Kill the token; calls under way may end within the grace, then they are cut and booked."""
        self.alive = False
        self.job.wake()
        await self.finish(grace_s, cut=True)

    async def finish(self, grace_s: float, *, cut: bool) -> None:
        """Wait for calls under way, for so long at most; with `cut` none of them is left."""
        if self.open and grace_s > 0:
            await asyncio.wait([asyncio.ensure_future(call.wait()) for call in self.open], timeout=grace_s)
        for call in tuple(self.open) if cut else ():
            call.cut()
            await call.wait()


class Job:
    """A registered job: its ledger, its journal, its agents."""

    def __init__(
        self,
        registration: Registration,
        journal: Journal,
        notify: Callable[[Notice | JobNotice], None],
        recorder: Recorder | None = None,
        replay: Replay | None = None,
    ) -> None:
        self.registration = registration
        self.journal = journal
        self.notify = notify
        self.recorder = recorder
        self.replay = replay
        self.standing = Standing(registration.patience, self._tell)
        self.ledger = Ledger(registration.job, registration.budget, charged(Path(registration.receipts)))
        self.principals: list[Principal] = []
        self.steps: dict[str, str] = {}
        """At which step of its task a trial is, by trial; a task without steps is in neither of these two."""
        self.resting: set[str] = set()
        """The trials that are between two steps: their agents make no call."""
        self.ending: asyncio.Task[None] | None = None
        self._is_over_budget = False
        self._noted: set[str] = set()
        self._waiting: list[asyncio.Future[None]] = []

    def of_trial(self, trial: str, agent: str | None = None) -> list[Principal]:
        """The trial's principals, or those of one agent: one for each token that was issued."""
        return [p for p in self.principals if p.issue.trial == trial and agent in (None, p.issue.agent)]

    def enter(self, trial: str, step: str) -> None:
        """A step of the trial's task begins: its agents may call, and their receipts name it."""
        self.steps[trial] = step
        self.resting.discard(trial)
        self.wake()
        for principal in self.of_trial(trial):
            principal.told.clear()

    async def rest(self, trial: str, grace_s: float, *, cut: bool) -> list[Principal]:
        """The step has ended: no call goes out until the next one. Waits for those under way as `Principal.finish`."""
        self.resting.add(trial)
        self.wake()
        resting = self.of_trial(trial)
        await asyncio.gather(*(principal.finish(grace_s, cut=cut) for principal in resting))
        return resting

    def settle(self, reservation: Reservation, charge: Amount) -> None:
        """Book a call's charge, and let those look again who wait for room in a budget."""
        for near in self.ledger.settle(reservation, charge):
            self._tell(JobNotice("note", str(near)))
        self.wake()

    def note_once(self, about: str, reason: str) -> None:
        """Tell people something, once for what it is about."""
        if about not in self._noted:
            self._noted.add(about)
            self._tell(JobNotice("note", reason))

    def over_budget(self, reason: str) -> None:
        """The job's own cap refused a call: no further trial should begin."""
        if not self._is_over_budget:
            self._is_over_budget = True
            self._tell(JobNotice("budget", reason))

    def wake(self) -> None:
        """Let waiting calls look again."""
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)
        self._waiting.clear()

    async def changed(self) -> None:
        """Return when a call has settled, a token died, or the job was stopped."""
        changed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(changed)
        await changed

    def _tell(self, notice: JobNotice) -> None:
        self.notify(notice)
        self.wake()


class Registry:
    """All jobs and tokens of the gateway."""

    def __init__(self) -> None:
        self.strangers = 0
        self._jobs: dict[str, Job] = {}
        self._tokens: dict[bytes, Principal] = {}

    def register(
        self,
        registration: Registration,
        notify: Callable[[Notice | JobNotice], None],
        replayed: Cassette | None = None,
    ) -> Job:
        """Take a job in; `replayed` is the cassette that it names. Raises NotAllowed.

        That is when it has a lease already, or its terms can't be met.
        """
        if registration.job in self._jobs:
            raise NotAllowed(f"job {registration.job} is running: another process holds its lease")
        for name, endpoint in registration.endpoints.items():
            is_own = endpoint.provider in ("scripted", "replay")
            if not is_own and not endpoint.base_url.startswith(("http://", "https://")):
                raise NotAllowed(f"endpoint {name}: {endpoint.base_url!r} is no http(s) address")
            if endpoint.provider == "replay" and (replayed is None or name not in replayed.header.endpoints):
                raise NotAllowed(f"endpoint {name} replays, and the job has no cassette of it")
        for model, price in registration.prices.items():
            if min(every_rate(price)) < 0:
                raise NotAllowed(f"prices of {model}: a price is negative")
        recorder = _recorder(registration)
        try:
            journal = Journal.open(Path(registration.receipts))
        except OSError as error:
            raise NotAllowed(f"receipts {registration.receipts}: {error.strerror}") from error
        job = Job(registration, journal, notify, recorder, Replay(replayed) if replayed is not None else None)
        self._jobs[registration.job] = job
        return job

    def issue(self, job: Job, issue: Issue) -> tuple[str, Principal]:
        """A fresh token for the agent; its earlier one is dead. Raises NotAllowed; InvalidInput for a bad script."""
        endpoint = job.registration.endpoints.get(issue.endpoint)
        if endpoint is None:
            known = ", ".join(job.registration.endpoints) or "none"
            raise NotAllowed(f"{issue.agent}: endpoint {issue.endpoint!r} is not registered; there are: {known}")
        for model in issue.models:
            if model not in job.registration.prices:
                raise NotAllowed(f"{issue.agent}: model {model!r} has no price")
        player = _player(issue, endpoint)
        earlier = job.of_trial(issue.trial, issue.agent)
        for principal in earlier:
            principal.alive = False
        job.ledger.open(issue.trial, issue.agent, trial_limits=issue.trial_limits, limits=issue.limits)
        principal = Principal(job, issue, endpoint, earlier[0].tally if earlier else Tally())
        token = TOKEN_PREFIX + secrets.token_urlsafe(TOKEN_BYTES)
        principal.player = player
        principal.part = job.replay.part(issue, token) if job.replay and endpoint.provider == "replay" else None
        principal.tape = job.recorder.tape(issue, token) if job.recorder else None
        job.principals.append(principal)
        self._tokens[_digest(token)] = principal
        return token, principal

    def find(self, token: str) -> Principal | None:
        """The token's agent, dead or alive, or None."""
        # The look-up compares digests: its time tells nothing about a token.
        return self._tokens.get(_digest(token))

    async def end(self, job: Job) -> None:
        """End a job whose lease broke: all its tokens are dead, calls under way are cut and booked."""
        if job.ending is None:
            job.ending = asyncio.create_task(self._end(job), name=f"end of {job.registration.job}")
        await asyncio.shield(job.ending)

    async def ended(self, name: str) -> None:
        """Return when no job of that name is ending: who goes on with one may be quicker than its end."""
        job = self._jobs.get(name)
        if job is not None and job.ending is not None:
            await asyncio.shield(job.ending)

    async def _end(self, job: Job) -> None:
        await asyncio.gather(*(principal.end(0) for principal in job.principals))
        self._tokens = {digest: p for digest, p in self._tokens.items() if p.job is not job}
        try:
            await job.journal.close()
            if job.recorder is not None:
                await asyncio.to_thread(job.recorder.close)
        finally:
            # Not sooner: who goes on with the job opens these very files.
            del self._jobs[job.registration.job]

    async def close(self) -> None:
        """End every job."""
        await asyncio.gather(*(self.end(job) for job in tuple(self._jobs.values())))


def _recorder(registration: Registration) -> Recorder | None:
    wanted = registration.record
    if wanted is None:
        return None
    dialects = {name: endpoint.spoken for name, endpoint in registration.endpoints.items()}
    header = Header(registration.job, wanted.condition, wanted.condition_sha256, wanted.rehearsal, dialects)
    keys = [endpoint.api_key for endpoint in registration.endpoints.values()]
    try:
        return Recorder.begin(Path(wanted.path), header, keys)
    except OSError as error:
        raise NotAllowed(f"cassette {wanted.path}: {error.strerror}") from error


def _player(issue: Issue, endpoint: Endpoint) -> Player | None:
    if endpoint.provider != "scripted":
        return None
    if issue.script is None or issue.context is None:
        raise NotAllowed(f"{issue.agent}: a scripted endpoint needs `script` and `context`")
    script = read_script(issue.script, f"script of {issue.task}")
    return Player.of(endpoint.spoken, issue, script, issue.context)


def _wires(endpoint: Endpoint) -> tuple[Wire, ...]:
    """The dialects of an endpoint. The scripted model knows the older of OpenAI's two only."""
    spoken, is_scripted = endpoint.spoken, endpoint.provider == "scripted"
    return tuple(w for w in WIRES.values() if w.spoken == spoken and (not is_scripted or w.name == spoken))


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
