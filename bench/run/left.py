"""What runs left: found by the next command, said, and booked.

A run writes `run/<job>/run.json` before it begins. The file goes once every trial has had its turn and PostgreSQL holds
the job's records. One that is still there, of a job that nobody works on, is of a run that was stopped or killed.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from bench import records
from bench.costs import usd
from bench.faults import shown
from bench.files import write_private
from bench.processes import ProcessId, identify, wait_until
from bench.records.claim import HARD_EXIT_S, is_claimed
from bench.settings import Settings
from bench.stack import jobs
from bench.trial import journal

FILE_NAME = "run.json"
SLACK_S = 5.0
"""How much later than its last moment a killed run's child may be seen to have ended."""


@dataclass(frozen=True)
class Run:
    """A run that has begun. `directory` is the job's; it may be `over`, and `booked`: in PostgreSQL, too.

    `pid` and `started` are of its process (bench.processes.ProcessId), the Harbor child's parent.
    """

    job: str
    directory: str
    over: bool = False
    booked: bool = False
    pid: int = 0
    started: str = ""


@dataclass(frozen=True)
class Left:
    """A job whose run ended before the job did. `cut_off` attempts began and have no end.

    `name` is how `--resume` takes it: the job's name, or its directory where that isn't in `--jobs-dir`.
    """

    job: str
    name: str
    scored: int
    planned: int | None
    cut_off: int
    cut_off_usd_micros: int

    def __str__(self) -> str:
        scored = f"job {self.job}: {_share(self.scored, self.planned)}"
        again = f"resume with `inv bench --resume {self.name}`"
        if not self.cut_off:
            return f"{scored}; {again}"
        attempts = "1 attempt was" if self.cut_off == 1 else f"{self.cut_off} attempts were"
        return f"{scored}, {attempts} cut off ({usd(self.cut_off_usd_micros)} spent); {again}"


def begin(run_dir: Path, job_dir: Path) -> None:
    """Write down that a run of this job begins; `run_dir` is `<state_dir>/run/<job>`."""
    me = identify(os.getpid())
    assert me
    _write(run_dir, Run(run_dir.name, str(job_dir), pid=me.pid, started=me.started))


def await_killed(settings: Settings, job_dir: Path) -> None:
    """Where the job's last run here was killed, wait for its child, which stops in order and has the claim until then.

    Returns at once where its process lives; and after `HARD_EXIT_S` and a little, whatever became of the child.
    """
    run = _read(settings.state_dir / "run" / job_dir.name / FILE_NAME)
    if run is None or Path(run.directory) != job_dir or ProcessId(run.pid, run.started).alive():
        return
    if is_claimed(job_dir):
        print(f"job {run.job}: its last run was killed and is ending; this one begins after it", file=sys.stderr)
        wait_until(lambda: not is_claimed(job_dir), HARD_EXIT_S + SLACK_S)


def forget(run_dir: Path) -> None:
    """The run never came to a trial: nothing is left of it."""
    (run_dir / FILE_NAME).unlink(missing_ok=True)


def over(run_dir: Path) -> None:
    """Every trial of the job has had its turn."""
    run = _read(run_dir / FILE_NAME)
    if run is not None:
        _write(run_dir, replace(run, over=True))


def found(settings: Settings) -> list[Left]:
    """What earlier runs left to be resumed, by job. Changes nothing."""
    return [_left(run, settings.jobs_dir) for _, run in _ended(settings) if not run.over]


def elsewhere(settings: Settings) -> list[str]:
    """Jobs begun here that a process has and no run of ours holds: what a kill left of one ends within a second or so,
    and another checkout may go on with one."""
    running = jobs.running_jobs(settings.state_dir)
    begun = [run for path in _notes(settings) if (run := _read(path)) and run.job not in running]
    return [run.job for run in begun if is_claimed(Path(run.directory))]


def scored_so_far(settings: Settings, job: str) -> str:
    """`3 of 8 trials have a score`, of a job that runs; empty where no run of ours has begun it."""
    run = _read(settings.state_dir / "run" / job / FILE_NAME)
    if run is None or not Path(run.directory).is_dir():
        return ""
    read = records.read_job(Path(run.directory))
    return _share(sum(trial.is_scored for trial in read.trials), read.planned_trials)


def book(settings: Settings, dsn: str) -> list[Left]:
    """Put what ended runs left into PostgreSQL, once, and remove the secrets that a killed one could not remove.

    Returns those with attempts that were cut off, booked now or before. Raises psycopg.Error; the next one tries again.
    """
    from bench.run.projection import project
    from bench.trial.provisioner import FILE_NAME as SECRETS

    cut_off = []
    for run_dir, run in _ended(settings):
        (run_dir / SECRETS).unlink(missing_ok=True)
        if not run.booked:
            project(dsn, Path(run.directory))
        if run.over:
            forget(run_dir)
        else:
            _write(run_dir, replace(run, booked=True))
            cut_off += [left for left in [_left(run, settings.jobs_dir)] if left.cut_off]
    return cut_off


def sweep(settings: Settings) -> None:
    """Remove locks and logs of runs that left nothing. Those of the last one stay until the next begins."""
    jobs.sweep(settings.state_dir, kept=FILE_NAME)


def _ended(settings: Settings) -> Iterator[tuple[Path, Run]]:
    """The runs that nobody works on any more. Those whose job somebody removed are forgotten."""
    for path in _notes(settings):
        run = _read(path)
        if run is None or not Path(run.directory).is_dir():
            forget(path.parent)
        elif not is_claimed(Path(run.directory)):
            yield path.parent, run


def _notes(settings: Settings) -> list[Path]:
    return sorted((settings.state_dir / "run").glob(f"*/{FILE_NAME}"))


def _left(run: Run, jobs_dir: Path) -> Left:
    directory = Path(run.directory)
    read = records.read_job(directory)
    open_ = {attempt.trial for attempt in journal.read(directory / journal.FILE_NAME).unfinished}
    spent = sum(trial.spend.cost_usd_micros for trial in read.trials if trial.trial in open_)
    scored = sum(trial.is_scored for trial in read.trials)
    name = run.job if directory.parent == jobs_dir else shown(directory)
    return Left(run.job, name, scored, read.planned_trials, len(open_), spent)


def _share(scored: int, planned: int | None) -> str:
    return f"{scored}{'' if planned is None else f' of {planned}'} trials have a score"


def _write(run_dir: Path, run: Run) -> None:
    write_private(run_dir / FILE_NAME, json.dumps(asdict(run), indent=2) + "\n")


def _read(path: Path) -> Run | None:
    try:
        return Run(**json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, RecursionError, TypeError):
        return None
