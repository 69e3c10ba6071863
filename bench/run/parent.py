"""The parent of a Harbor job: starts the child, shows its events, passes signals on, and leaves nothing running."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from bench import records
from bench.docker import engine, starts
from bench.errors import BuzzbenchError, Interrupted, InvalidInput, JobEnded
from bench.faults import shown
from bench.files import write_atomically
from bench.records import JOURNAL, PLAN, RECEIPTS
from bench.records.claim import claimed
from bench.records.planrecord import describe, renew
from bench.run import archive, left, leftovers
from bench.run.existing import resume_of
from bench.run.keeper import Keeper
from bench.run.progress import Progress
from bench.run.resume import lines
from bench.settings import ROOT
from bench.stack import jobs
from bench.trial import journal
from bench.trial.journal import JobResumed

if TYPE_CHECKING:
    from bench.keys import State
    from bench.planning.jobs import JobPlan
    from bench.planning.planned import Plan
    from bench.run.resume import Resume
    from bench.settings import Settings
    from bench.stack import StackAddress

SECRETS = "provisioner.json"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""Those that stop a job in order: of a person, of a supervisor, of a terminal that is closed."""
STOP_GRACE_S = 30.0
"""How long a child that was told to stop may take before it is killed: its teardowns are bounded well below."""


def run_job(plan: Plan, job: JobPlan, settings: Settings, state: State) -> None:
    """Run one job to its end, or the rest of one that goes on.

    Raises BuzzbenchError where it could not run or was stopped, Interrupted where a signal stopped it, and InvalidInput
    where the job is another run's, or no job that can go on: nothing was changed then.
    """
    if plan.environment == "docker":
        leftovers.clear(settings.state_dir)
    run_dir = settings.state_dir / "run" / job.name
    if job.name in jobs.running_jobs(settings.state_dir):
        raise InvalidInput.of(f"--job-name {job.name}", "a job of this name is running", "choose another name")
    _make_directory(job)
    with claimed(job.directory) as claim, jobs.hold(run_dir):
        stack = _address(settings)
        try:
            order = _begin(plan, job, settings, state, stack)
        except OSError as full:
            where, fix = str(full.filename or job.directory), "make room or give write access, and run it again"
            raise BuzzbenchError(f"can't be written: {full.strerror}", where=where, fix=fix) from None
        trials = None if job.trials is None else job.trials - order["kept"]
        with Progress(job.name, trials) as progress:
            error = _run_child(order, run_dir, plan.key_variables, progress, claim, Keeper(stack.dsn, job.name))
        (run_dir / SECRETS).unlink(missing_ok=True)
        if error is None:
            left.over(run_dir)
        elif _discard_if_unbegun(job.directory):
            left.forget(run_dir)
    if error:
        raise error


def _begin(plan: Plan, job: JobPlan, settings: Settings, state: State, stack: StackAddress) -> dict[str, Any]:
    """Write down what begins or goes on; the child's order. Raises InvalidInput, BuzzbenchError, OSError."""
    from bench.planning.harborjob import job_config
    from bench.trial.provisioner import write_provisioner

    run_dir = settings.state_dir / "run" / job.name
    goes_on = resume_of(plan, job)
    if goes_on:
        _resume(job, goes_on, settings)
        renew(plan, job)
    else:
        write_atomically(job.directory / PLAN, json.dumps(describe(plan, job), indent=2) + "\n")
    left.begin(run_dir, job.directory)
    write_provisioner(run_dir, state, stack, budget=plan.budget)
    return {
        "config": job_config(plan, job),
        "trials": job.trials,
        "kept": len(goes_on.kept) if goes_on else 0,
        "starts": starts.most(settings) if plan.environment == "docker" else None,
        "provider_keys": {name: plan.options.environ[name] for name in plan.key_variables},
    }


def _make_directory(job: JobPlan) -> None:
    try:
        job.directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BuzzbenchError(f"the job's directory can't be made: {error.strerror}", where=str(job.directory)) from None


def _address(settings: Settings) -> StackAddress:
    """Where the stack is, asked while the job is held: nobody can stop it any more."""
    from bench.stack import address

    found = address(settings.state_dir)
    if found is None:
        raise BuzzbenchError("the stack went down before the job began", fix="run `inv up`")
    return found


def _resume(job: JobPlan, goes_on: Resume, settings: Settings) -> None:
    place = archive.next_place(settings.state_dir / "archive" / job.name)
    for line in lines(goes_on, job.n_concurrent, shown(place)):
        print(line, file=sys.stderr)
    now = datetime.now(UTC)
    archive.make_room(job.directory, goes_on.again, place, now)
    archive.ready_for_harbor(job.directory, place, job.n_concurrent)
    journal.append(job.directory / journal.FILE_NAME, JobResumed(len(goes_on.kept), journal.iso(now)))


def _discard_if_unbegun(directory: Path) -> bool:
    """Remove the directory of a job that never came to a trial, so that its name is free again. Whether it was one."""
    left_over = records.trial_directories(directory) or any((directory / name).exists() for name in (RECEIPTS, JOURNAL))
    if not left_over:
        shutil.rmtree(directory)
    return not left_over


def _run_child(
    order: dict[str, Any],
    run_dir: Path,
    secret_variables: tuple[str, ...],
    progress: Progress,
    claim: int,
    keeper: Keeper,
) -> BuzzbenchError | None:
    log = run_dir / "harbor.log"
    read_end, write_end = os.pipe()
    with log.open("ab") as output:
        child = _start(run_dir, secret_variables, output, write_end, claim)
    os.close(write_end)
    assert child.stdin
    last: dict[str, Any] = {}
    try:
        with _signals(child, progress.note) as received, os.fdopen(read_end, encoding="utf-8") as events:
            _send(child.stdin, order)
            # While the child imports Harbor: it takes as long.
            keeper.open()
            for event in _events(events):
                last = event
                keeper.see(event, progress.note)
                progress.show(event)
            code = child.wait()
    finally:
        keeper.close()
        # Closing the pipe is the order to stop, whatever happened here.
        with contextlib.suppress(OSError):
            child.stdin.close()
        _end(child)
    job_dir = Path(order["config"]["jobs_dir"], order["config"]["job_name"])
    if received:
        what = f"stopped by {signal.Signals(received[0]).name}; go on with `inv bench --resume {shown(job_dir)}`"
        return Interrupted(received[0], what)
    return _why_it_ended(last, code, log)


def _start(
    run_dir: Path, secret_variables: tuple[str, ...], output: IO[bytes], events: int, claim: int
) -> subprocess.Popen[bytes]:
    """The child, which writes its events to the descriptor and keeps the claim. It is given no provider's key."""
    environment = {k: v for k, v in os.environ.items() if k not in secret_variables}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment |= {"BUZZBENCH_RUN_DIR": str(run_dir)}
    return subprocess.Popen(
        [sys.executable, "-m", "bench.run", str(events), str(claim)],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=output,
        pass_fds=(events, claim),
        # What is quick is for the `docker` commands of Harbor, a score for each trial.
        env=engine.QUICK | environment,
        cwd=ROOT,
        # Ctrl-C on a terminal reaches the whole foreground group: the child stops when we say so, once.
        start_new_session=True,
    )


def _why_it_ended(last: Mapping[str, Any], code: int, log: Path) -> BuzzbenchError | None:
    """What a child's last event and its exit code say; None where its job is done."""
    if last.get("event") in ("failed", "stopped"):
        what = last["message"] if "message" in last else f"stopped: {last['reason']}"
        return JobEnded(what, last["exit_code"])
    if last.get("event") != "done":
        return BuzzbenchError(f"Harbor's process ended with {code} before the job was done", fix=f"see {log}")
    return None


def _events(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The child's events; a line that its kill has cut off is none."""
    for line in lines:
        if line.endswith("\n"):
            yield json.loads(line)


def _send(pipe: IO[bytes], order: dict[str, Any]) -> None:
    try:
        pipe.write(json.dumps(order).encode() + b"\n")
        pipe.flush()
    except BrokenPipeError:
        return  # The child is gone already: its missing `done` says so, and its log why.


@contextlib.contextmanager
def _signals(child: subprocess.Popen[bytes], note: Callable[[str], None]) -> Iterator[list[int]]:
    """While inside, the first of `SIGNALS` asks the child to stop, the second kills it. Yields those received.

    A hangup that is ignored stays so: `nohup` asks for that.
    """
    received: list[int] = []

    def handle(number: int, _frame: object) -> None:
        received.append(number)
        if len(received) == 1:
            child.terminate()
            note("stopping: trials under way are cancelled, results are kept (once more to kill)")
        else:
            child.kill()

    heard = [n for n in SIGNALS if n != signal.SIGHUP or signal.getsignal(n) != signal.SIG_IGN]
    before = {number: signal.signal(number, handle) for number in heard}
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
