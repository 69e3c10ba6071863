"""The Harbor child: one job through Harbor's Python API, its events as JSON lines on a pipe.

Standard input holds one line, the order (`config`, `trials`, `kept`, `starts`, `provider_keys`), and then stays open:
its end means that the parent is gone, and the child stops as on SIGTERM. A trial's end is journalled, durably, before
its event is sent. The first trial that meets a cause which all others would meet, too, stops the admission of those.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import errno
import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from bench import garbage, harborcommand
from bench.errors import BuzzbenchError
from bench.records.claim import HARD_EXIT_S
from bench.trial.stops import EXIT_CODES, Kind, Stop

if TYPE_CHECKING:
    from harbor.job import Job
    from harbor.trial.hooks import TrialHookEvent

    from bench.docker.starts import Starts
    from bench.records.job import TrialRecord
    from bench.run.admission import Admission
    from bench.run.retried import Retries

PR_SET_PDEATHSIG = 1
"""prctl(2)."""
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
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


def main() -> None:
    events_fd, claim_fd = map(int, sys.argv[1:])
    events = os.fdopen(events_fd, "w", encoding="utf-8", buffering=1)
    # The claim on the job is this process's, not one of those that a task leaves behind.
    os.set_inheritable(claim_fd, False)
    # Set before Harbor is imported: it reads them at import (HARBOR.md, bottom line and section 9).
    os.environ |= {**harborcommand.QUIET, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    _die_with_parent()
    order = json.loads(sys.stdin.readline())
    threading.Thread(target=_watch_parent, daemon=True).start()
    sys.exit(asyncio.run(_run(order, events)))


def _die_with_parent() -> None:
    parent = os.getppid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:
            sys.exit(143)


def _watch_parent() -> None:
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait(HARD_EXIT_S)
    os._exit(143)


async def _run(order: dict[str, Any], events: TextIO) -> int:
    def emit(event: str, **fields: Any) -> None:
        with contextlib.suppress(BrokenPipeError):
            events.write(json.dumps({"event": event, **fields}) + "\n")

    from bench.run.admission import Admission

    admission = Admission()
    task = asyncio.current_task()
    assert task
    # Through its API Harbor installs no handlers: a cancelled main task lets it write the results of cancelled trials.
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        await _job(order, emit, admission)
    except asyncio.CancelledError:
        if admission.stopped is None or task.cancelling():
            emit("failed", message="cancelled", exit_code=143)
            return 143
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        emit("failed", message=_message(error, _directory(order)), exit_code=getattr(error, "exit_code", 1))
        return 1
    if admission.stopped is not None:
        stop = admission.stopped
        emit("stopped", kind=stop.kind, reason=stop.reason, exit_code=EXIT_CODES[stop.kind])
        return 1
    emit("done")
    return 0


def _directory(order: Mapping[str, Any]) -> Path:
    """The directory of the job that is ordered."""
    return Path(order["config"]["jobs_dir"], order["config"]["job_name"])


def _message(error: BaseException, job_dir: Path) -> str:
    """One line: a group of errors is told by its first one, which Harbor's task groups wrap."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, BuzzbenchError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        where = error.filename if isinstance(error.filename, str) else job_dir
        way = f"; make room and go on with `inv bench --resume {job_dir}`" if error.errno in NO_ROOM else ""
        return f"{where}: {error.strerror}{way}"
    from httpx import TransportError

    if isinstance(error, TransportError):
        return f"Harbor's registry can't be reached ({error}); see to the network, or give local tasks by --path"
    return " ".join(f"{type(error).__name__}: {error}".split())


async def _job(order: dict[str, Any], emit: Any, admission: Admission) -> None:
    with garbage.loading():
        job, selection = await _created(order)
    from bench.docker.starts import Starts
    from bench.run.retried import Retries
    from bench.trial import session

    try:
        _check(job, trials=order["trials"], kept=order["kept"])
        job_dir = _directory(order)
        emit("created", trials=len(job) - order["kept"], selection=selection)
        archive = Path(os.environ["BUZZBENCH_RUN_DIR"]).parent.parent / "archive" / job_dir.name
        retries = Retries(job.config.retry, archive)
        _hook(job, job_dir, emit, admission, retries, Starts(order["starts"]) if order["starts"] else None)
        await job.run()
    finally:
        await session.close()


async def _created(order: dict[str, Any]) -> tuple[Job, list[str]]:
    """Harbor's job, with all that it needs loaded, and what is said of the tasks that globs have chosen."""
    from harbor.environments.factory import EnvironmentFactory
    from harbor.job import Job
    from harbor.models.job.config import JobConfig

    from bench.docker import marks
    from bench.nostr import buzzkit
    from bench.run import selected
    from bench.trial import terms

    buzzkit()  # or the first trial would wait for it in the middle of its work
    terms.provide_keys(order["provider_keys"])
    marks.mark_this_process(Path(os.environ["BUZZBENCH_RUN_DIR"]).parent.parent)
    config = JobConfig.model_validate(order["config"])
    environment = config.environment
    # The command line does this, the API doesn't (HARBOR.md section 1.2).
    EnvironmentFactory.run_preflight(
        type=environment.type, import_path=environment.import_path, kwargs=environment.kwargs
    )
    selection = await selected.check(config)
    return await Job.create(config), selection


def _check(job: Job, *, trials: int | None, kept: int) -> None:
    """See that Harbor would run what was planned. Raises BuzzbenchError."""
    if trials not in (None, len(job)):
        # Harbor passes over a task directory that it finds invalid, without a word (HARBOR.md section 1.1).
        raise BuzzbenchError(
            f"Harbor would run {len(job)} trials of the {trials} planned",
            fix=f"`{harborcommand.line('lint')}` on each selected task says what Harbor finds wrong",
        )
    # Harbor passes over a result that it can't read, and would run the trial again.
    taken = len(job._existing_trial_results)
    if taken != kept:
        raise BuzzbenchError(
            f"Harbor reads {taken} results of the {kept} trials that have a score, and would run others again",
            fix="see the job's job.log for those that it can't read",
        )


def _hook(job: Job, job_dir: Path, emit: Any, admission: Admission, retries: Retries, starts: Starts | None) -> None:
    from bench import records
    from bench.trial import handles, journal, notes, stops
    from bench.trial.environments import note_if_gone
    from bench.trial.wallclock import WallClock

    path = job_dir / journal.FILE_NAME
    clocks: dict[str, WallClock] = {}

    def on_stop(stop: Stop) -> None:
        if admission.stopped is None:
            journal.append(path, journal.JobStopped(stop.kind, stop.reason, journal.iso(datetime.now(UTC))))
            emit("stopping", reason=stop.reason)
            admission.stop(stop)

    stops.listen(on_stop)
    notes.listen(lambda text: emit("note", text=text))
    handles.listen(lambda handle: emit("provisioned", **asdict(handle)))

    async def on_event(event: TrialHookEvent) -> None:
        name = event.trial_name
        assert name
        if starts:
            await starts.on_event(event.event.value, name)
        match event.event.value:
            case "start":
                admission.begin()
                clocks[name] = WallClock()
                journal.attempt_started(path, trial=name, task=event.task_name, at=datetime.now(UTC))
                emit("phase", trial=name, task=event.task_name, phase="start")
            case "end":
                if starts and event.result.exception_info:
                    await asyncio.to_thread(note_if_gone, job_dir / name)
                jumped_s = clocks.pop(name).jumped_s if name in clocks else 0.0
                record = await _record(job_dir, name, event.task_name, jumped_s)
                records.sync(job_dir / name)
                assert event.result
                retries.keep(job_dir / name, event.result)
                journal.trial_ended(
                    path, trial=name, outcome=record.outcome, at=datetime.now(UTC), clock_jumped_s=jumped_s
                )
                emit(
                    "ended",
                    trial=name,
                    task=record.task,
                    outcome=record.outcome.outcome,
                    reason=record.outcome.reason,
                    seconds=record.seconds,
                )
                if stop := _stop_for_all(event):
                    stops.announce(stop)
            case phase:
                emit("phase", trial=name, task=event.task_name, phase=phase)

    for method in (
        job.on_trial_started,
        job.on_environment_started,
        job.on_agent_started,
        job.on_agent_ended,
        job.on_verification_started,
        job.on_trial_ended,
        job.on_trial_cancelled,
    ):
        method(on_event)


async def _record(job_dir: Path, trial: str, task: str, jumped_s: float) -> TrialRecord:
    """The trial as it is on disk, with the host's verdict: one that takes a sandbox keeps no other trial waiting."""
    from bench import records

    plan = records.read_plan(job_dir)
    read = partial(records.read_trial, job_dir / trial, plan, jumped_s=jumped_s)
    return await asyncio.to_thread(read) if records.judged_apart(plan, task) else read()


def _stop_for_all(event: TrialHookEvent) -> Stop | None:
    """Why no further trial should begin, where this one's fault says so."""
    results = [event.result, *(event.result.step_results or [])]
    for metadata in (part.agent_result.metadata for part in results if part.agent_result):
        fault = ((metadata or {}).get("buzzbench") or {}).get("fault") or {}
        if kind := STOPPING.get(fault.get("kind", "")):
            return Stop(kind, fault["reason"])
    return None
