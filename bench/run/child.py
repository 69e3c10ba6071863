"""The Harbor child: one job through Harbor's Python API, its events as JSON lines on a pipe.

Standard input holds one line, the order (`config`, `trials`, `provider_keys`), and then stays open: its end means that
the parent is gone, and the child stops as on SIGTERM. A trial's end is journalled, durably, before its event is sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import signal
import sys
import threading
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from bench.errors import BuzzbenchError

if TYPE_CHECKING:
    from harbor.job import Job
    from harbor.trial.hooks import TrialHookEvent

PR_SET_PDEATHSIG = 1
"""prctl(2)."""
HARD_EXIT_S = 20.0
"""After the parent is gone, how long a clean stop may take."""


def main() -> None:
    events = os.fdopen(int(sys.argv[1]), "w", encoding="utf-8", buffering=1)
    # Set before Harbor is imported: it reads them at import (HARBOR.md, bottom line and section 9).
    os.environ |= {"HARBOR_TELEMETRY": "off", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
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

    task = asyncio.current_task()
    assert task
    # Through its API Harbor installs no handlers: a cancelled main task lets it write the results of cancelled trials.
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        await _job(order, emit)
    except asyncio.CancelledError:
        emit("failed", message="cancelled", exit_code=143)
        return 143
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        emit("failed", message=_message(error), exit_code=getattr(error, "exit_code", 1))
        return 1
    emit("done")
    return 0


def _message(error: BaseException) -> str:
    """One line: a group of errors is told by its first one, which Harbor's task groups wrap."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, BuzzbenchError):
        return str(error)
    return " ".join(f"{type(error).__name__}: {error}".split())


async def _job(order: dict[str, Any], emit: Any) -> None:
    from harbor.environments.factory import EnvironmentFactory
    from harbor.job import Job
    from harbor.models.job.config import JobConfig

    from bench.run import selected
    from bench.trial import session

    session.provide_keys(order["provider_keys"])
    config = JobConfig.model_validate(order["config"])
    environment = config.environment
    # The command line does this, the API doesn't (HARBOR.md section 1.2).
    EnvironmentFactory.run_preflight(
        type=environment.type, import_path=environment.import_path, kwargs=environment.kwargs
    )
    selection = await selected.check(config)
    job = await Job.create(config)
    try:
        if order["trials"] not in (None, len(job)):
            # Harbor passes over a task directory that it finds invalid, without a word (HARBOR.md section 1.1).
            raise BuzzbenchError(
                f"Harbor would run {len(job)} trials of the {order['trials']} planned",
                fix="`.venv/bin/harbor lint` on each selected task says what Harbor finds wrong",
            )
        job_dir = Path(config.jobs_dir) / config.job_name
        emit("created", trials=len(job), selection=selection)
        _hook(job, job_dir, emit)
        await job.run()
    finally:
        await session.close()


def _hook(job: Job, job_dir: Path, emit: Any) -> None:
    from bench import records
    from bench.trial import journal

    path = job_dir / "buzzbench-journal.jsonl"

    async def on_event(event: TrialHookEvent) -> None:
        name = event.trial_name
        assert name
        match event.event.value:
            case "start":
                journal.attempt_started(path, trial=name, task=event.task_name, at=datetime.now(UTC))
                emit("phase", trial=name, task=event.task_name, phase="start")
            case "end":
                record = records.read_trial(job_dir / name, records.read_plan(job_dir))
                records.sync(job_dir / name)
                journal.trial_ended(path, trial=name, outcome=record.outcome, at=datetime.now(UTC))
                emit(
                    "ended",
                    trial=name,
                    task=record.task,
                    outcome=record.outcome.outcome,
                    reason=record.outcome.reason,
                    seconds=record.seconds,
                )
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
