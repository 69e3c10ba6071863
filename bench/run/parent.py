"""The parent of a Harbor job: starts the child, shows its events, passes signals on, and leaves nothing running."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from bench.budget import of_team
from bench.errors import BuzzbenchError, Interrupted, InvalidInput
from bench.files import make_private_directory, write_atomically
from bench.records import PLAN, RECEIPTS
from bench.run.progress import Progress
from bench.settings import ROOT

if TYPE_CHECKING:
    from bench.keys import State
    from bench.plan import JobPlan, Plan
    from bench.settings import Settings
    from bench.stack import StackAddress

STOP_GRACE_S = 30.0
"""How long a child that was told to stop may take before it is killed: its teardowns are bounded well below."""


def run_job(plan: Plan, job: JobPlan, settings: Settings, state: State, stack: StackAddress) -> None:
    """Run one job to its end. Raises BuzzbenchError where it could not run, Interrupted where a signal stopped it."""
    from bench.harborjob import job_config
    from bench.trial.session import write_provisioner

    _begin(plan, job)
    run_dir = make_private_directory(settings.state_dir / "run" / job.name)
    write_provisioner(run_dir, state, stack)
    order = {
        "config": job_config(plan, job),
        "trials": job.trials,
        "provider_keys": {name: plan.options.environ[name] for name in plan.key_variables},
    }
    with Progress(job.name, job.trials) as progress:
        error = _run_child(order, run_dir, plan.key_variables, progress)
    with contextlib.suppress(OSError):
        (run_dir / "provisioner.json").unlink()
    if error:
        _discard_if_empty(job.directory)
        raise error


def _begin(plan: Plan, job: JobPlan) -> None:
    """Make the job's directory, with its plan. Only one run can: Harbor would take a second one for a resume."""
    try:
        job.directory.mkdir(parents=True)
    except FileExistsError:
        raise InvalidInput.of(
            f"--job-name {job.name}", "another run has begun this job meanwhile", "choose another name"
        ) from None
    except OSError as error:
        raise BuzzbenchError(f"the job's directory can't be made: {error.strerror}", where=str(job.directory)) from None
    write_atomically(job.directory / PLAN, json.dumps(describe(plan, job), indent=2) + "\n")


def _discard_if_empty(directory: Path) -> None:
    """Remove the directory of a job that never came to a trial: its name is free again."""
    if not any(path.is_dir() for path in directory.iterdir()) and not (directory / RECEIPTS).exists():
        shutil.rmtree(directory)


def describe(plan: Plan, job: JobPlan) -> dict[str, Any]:
    """What was planned, as `buzzbench-plan.json` keeps it beside the results: a pure function of the person's input."""
    return {
        "schema": "buzzbench-plan-1",
        "job": job.name,
        "rehearsal": plan.rehearsal,
        "stack": plan.stack,
        "environment": plan.environment,
        "condition": plan.condition.name,
        "condition_sha256": plan.condition_sha256,
        "harnesses": list(plan.condition.harnesses),
        "agent": plan.agent,
        "budget": asdict(of_team(plan.condition)) | {"timeout_seconds": plan.condition.timeout_seconds},
        "dataset": job.dataset,
        "include": list(job.include),
        "exclude": list(job.exclude),
        "attempts": job.attempts,
        "layer": job.layer,
        "tasks": [{"name": task.name, "directory": str(task.directory)} for task in job.tasks],
    }


def _run_child(
    order: dict[str, Any], run_dir: Path, secret_variables: tuple[str, ...], progress: Progress
) -> BuzzbenchError | None:
    environment = {k: v for k, v in os.environ.items() if k not in secret_variables}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment |= {"BUZZBENCH_RUN_DIR": str(run_dir)}
    log = run_dir / "harbor.log"
    read_end, write_end = os.pipe()
    with log.open("ab") as output:
        child = subprocess.Popen(
            [sys.executable, "-m", "bench.run", str(write_end)],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            pass_fds=(write_end,),
            env=environment,
            cwd=ROOT,
            # Ctrl-C on a terminal reaches the whole foreground group: the child stops when we say so, once.
            start_new_session=True,
        )
    os.close(write_end)
    assert child.stdin
    last: dict[str, Any] = {}
    try:
        with _signals(child, progress.note) as received, os.fdopen(read_end, encoding="utf-8") as events:
            _send(child.stdin, order)
            for line in events:
                last = json.loads(line)
                progress.show(last)
            code = child.wait()
    finally:
        # Closing the pipe is the order to stop, whatever happened here.
        with contextlib.suppress(OSError):
            child.stdin.close()
        _end(child)
    if received:
        return Interrupted(received[0], f"stopped by {signal.Signals(received[0]).name}; scored trials are kept")
    if last.get("event") == "failed":
        error = BuzzbenchError(last["message"])
        error.exit_code = last["exit_code"]
        return error
    if last.get("event") != "done":
        return BuzzbenchError(f"Harbor's process ended with {code} before the job was done", fix=f"see {log}")
    return None


def _send(pipe: IO[bytes], order: dict[str, Any]) -> None:
    try:
        pipe.write(json.dumps(order).encode() + b"\n")
        pipe.flush()
    except BrokenPipeError:
        return  # The child is gone already: its missing `done` says so, and its log why.


@contextlib.contextmanager
def _signals(child: subprocess.Popen[bytes], note: Callable[[str], None]) -> Iterator[list[int]]:
    """While inside, the first SIGINT or SIGTERM asks the child to stop, the second kills it. Yields those received."""
    received: list[int] = []

    def handle(number: int, _frame: object) -> None:
        received.append(number)
        if len(received) == 1:
            note("stopping: trials under way are cancelled, results are kept (once more to kill)")
            child.terminate()
        else:
            child.kill()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(STOP_GRACE_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
