"""The Harbor child: one job through Harbor's Python API, its events as JSON lines on a pipe.

Standard input holds one line, the order (`config`, `trials`, `kept`, `starts`, `provider_keys`), and then stays open:
its end means that the parent is gone, and the child stops as on SIGTERM.
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
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from bench import garbage, harborcommand
from bench.errors import BuzzbenchError
from bench.records.claim import HARD_EXIT_S
from bench.trial.stops import EXIT_CODES

if TYPE_CHECKING:
    from harbor.job import Job

    from bench.run.admission import Admission

PR_SET_PDEATHSIG = 1
"""prctl(2)."""
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


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
    from bench.run.hooks import Hooks
    from bench.run.retried import Retries
    from bench.trial import session

    try:
        _check(job, trials=order["trials"], kept=order["kept"])
        job_dir = _directory(order)
        emit("created", trials=len(job) - order["kept"], selection=selection)
        archive = Path(os.environ["BUZZBENCH_RUN_DIR"]).parent.parent / "archive" / job_dir.name
        retries = Retries(job.config.retry, archive)
        starts = Starts(order["starts"]) if order["starts"] else None
        Hooks(job_dir, emit, admission, retries, starts).listen(job)
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
