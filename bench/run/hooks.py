"""What happens at the events of a job's trials: journalled, recorded, and told to the parent, in this order.

A trial's end is journalled, durably, before it is told. The first trial that meets a cause which all others would meet,
too, stops the admission of those.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench import records
from bench.trial import handles, journal, notes, stops
from bench.trial.environments import note_if_gone
from bench.trial.stops import Kind, Stop
from bench.trial.wallclock import WallClock

if TYPE_CHECKING:
    from harbor.job import Job
    from harbor.trial.hooks import TrialHookEvent

    from bench.docker.starts import Starts
    from bench.records.job import TrialRecord
    from bench.run.admission import Admission
    from bench.run.retried import Retries

STOPPING: dict[str, Kind] = {
    "upstream_refused": "stopped",
    "receipts_failed": "stopped",
    "relay_gone": "stopped",
    "gateway_lost": "stopped",
    "engine_gone": "stopped",
    "job_budget": "budget",
    "upstream_limit": "waiting",
}
"""Faults of a trial that every further trial would meet, too: nobody brings a service back while a job runs."""


@dataclass
class Hooks:
    """Those of one job. `emit` tells the parent an event and its fields; `starts` is there for trials in Docker."""

    job_dir: Path
    emit: Callable[..., None]
    admission: Admission
    retries: Retries
    starts: Starts | None
    _clocks: dict[str, WallClock] = field(default_factory=dict)

    def listen(self, job: Job) -> None:
        """From here on hear what Harbor says of the job's trials, and what those announce."""
        stops.listen(self._stop)
        notes.listen(lambda text: self.emit("note", text=text))
        handles.listen(lambda handle: self.emit("provisioned", **asdict(handle)))
        for method in (
            job.on_trial_started,
            job.on_environment_started,
            job.on_agent_started,
            job.on_agent_ended,
            job.on_verification_started,
            job.on_trial_ended,
            job.on_trial_cancelled,
        ):
            method(self._on_event)

    @property
    def _journal(self) -> Path:
        return self.job_dir / journal.FILE_NAME

    def _stop(self, stop: Stop) -> None:
        if self.admission.stopped is None:
            journal.append(self._journal, journal.JobStopped(stop.kind, stop.reason, journal.iso(datetime.now(UTC))))
            self.emit("stopping", reason=stop.reason)
            self.admission.stop(stop)

    async def _on_event(self, event: TrialHookEvent) -> None:
        name = event.trial_name
        assert name
        if self.starts:
            await self.starts.on_event(event.event.value, name)
        match event.event.value:
            case "start":
                self.admission.begin()
                self._clocks[name] = WallClock()
                journal.attempt_started(self._journal, trial=name, task=event.task_name, at=datetime.now(UTC))
                self.emit("phase", trial=name, task=event.task_name, phase="start")
            case "end":
                await self._ended(event, name)
            case phase:
                self.emit("phase", trial=name, task=event.task_name, phase=phase)

    async def _ended(self, event: TrialHookEvent, name: str) -> None:
        trial_dir = self.job_dir / name
        if self.starts and event.result.exception_info:
            await asyncio.to_thread(note_if_gone, trial_dir)
        jumped_s = self._clocks.pop(name).jumped_s if name in self._clocks else 0.0
        record = await _record(trial_dir, event.task_name, jumped_s)
        records.sync(trial_dir)
        assert event.result
        self.retries.keep(trial_dir, event.result)
        outcome = record.outcome
        journal.trial_ended(self._journal, trial=name, outcome=outcome, at=datetime.now(UTC), clock_jumped_s=jumped_s)
        self.emit(
            "ended",
            trial=name,
            task=record.task,
            outcome=outcome.outcome,
            reason=outcome.reason,
            seconds=record.seconds,
        )
        if stop := stop_for_all(event):
            stops.announce(stop)


async def _record(trial_dir: Path, task: str, jumped_s: float) -> TrialRecord:
    """The trial as it is on disk, with the host's verdict: one that takes a sandbox keeps no other trial waiting."""
    plan = records.read_plan(trial_dir.parent)
    read = partial(records.read_trial, trial_dir, plan, jumped_s=jumped_s)
    return await asyncio.to_thread(read) if records.judged_apart(plan, task) else read()


def stop_for_all(event: TrialHookEvent) -> Stop | None:
    """Why no further trial should begin, where this one's fault says so."""
    results = [event.result, *(event.result.step_results or [])]
    for metadata in (part.agent_result.metadata for part in results if part.agent_result):
        fault = ((metadata or {}).get("buzzbench") or {}).get("fault") or {}
        if kind := STOPPING.get(fault.get("kind", "")):
            return Stop(kind, fault["reason"])
    return None
