"""What a job left, read back: plan, receipts and trials. What is missing or damaged is said, and breaks nothing else.

The job directory is the truth. Reading it needs neither the stack nor the machine that ran it.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from bench import costs
from bench.costs import NOTHING, Spend
from bench.files import sync_directory
from bench.planning.leaderboard import UNSAID
from bench.reading.jsonfile import object_in
from bench.records import doubts, planrecord
from bench.records.job import JobRecord, Replaced, TrialRecord
from bench.records.planrecord import JobPlanRecord
from bench.scoring import judge, verdicts
from bench.scoring.judge import JudgeError, NoSandbox
from bench.scoring.outcome import Facts, Fault, Outcome, classify, facts_from
from bench.scoring.stepoutcomes import StepOutcome, combined, set_up_later, step_parts
from bench.settings import ROOT
from bench.trial import journal
from bench.trial.environments import FAULT_FILE
from bench.trial.journal import Journal

PLAN, JOURNAL, RECEIPTS = planrecord.FILE_NAME, journal.FILE_NAME, "buzzbench-receipts.jsonl"
EVIDENCE, CHECKS = verdicts.EVIDENCE, verdicts.CHECKS
OWN_TASKS = "buzz-dataset"
TASK_CHARACTERS = 32
"""How much of a task's directory's name Harbor takes into the names of its trials (HARBOR.md section 7.1)."""
TAIL_CHARACTERS = 2000
REWARD_CHARACTERS = 40
"""How much of a reward file is shown that holds no number."""
LARGEST_CHECKS_BYTES = 1_000_000
"""Of checks.json, which comes out of the environment: an agent may have written anything there."""
MIXED = "mixed_upstream"
NOT_JUDGED = "not_judged_again"
"""The host had no sandbox for the task's judge: what the verifier wrote is all that is known."""
UNFINISHED, NOT_BEGUN = "cut off", "not begun when the job stopped"
DAMAGED = "its result.json is damaged"
GONE = "its directory is gone"


def read_job(job_dir: Path) -> JobRecord:
    """Everything of one job. Never raises for what is in the files."""
    warnings: list[str] = []
    plan = planrecord.read(job_dir, warnings)
    torn: list[str] = []
    calls = costs.calls_of(job_dir / RECEIPTS, torn)
    spends, of_steps, mixed = costs.by_trial(calls), costs.by_step(calls), costs.mixed(calls)
    book = journal.read(job_dir / JOURNAL)
    warnings += [*torn, *book.warnings]
    said: list[str] = []
    trials, strangers = [], []
    for directory in trial_directories(job_dir, without=book.replaced):
        of_trial: list[str] = []
        name = directory.name
        jumped_s = (book.ended[name].clock_jumped_s if name in book.ended else None) or 0.0
        trial = read_trial(directory, plan, spends.get(name, NOTHING), of_trial, of_steps.get(name, {}), jumped_s)
        if jumped_s:
            warnings.append(
                f"{directory}: the clock jumped by {jumped_s:+.0f} s while it ran: times within it are unsure"
            )
        if book.begun and trial.trial not in book.begun and (trial.is_scored or trial.told.foreign):
            strangers.append(trial.trial)
            continue
        # What has no score says enough of itself.
        (said if trial.is_scored else warnings).extend(of_trial)
        trials.append(_as_journalled(trial, book, mixed))
    if strangers:
        what = f"the journal knows no such attempt, so they count for nothing: {', '.join(strangers)}"
        said.append(f"{job_dir}: {what}")
    if trials and not book.entries:
        what = "has no entry: nobody can tell whether these trials are this job's"
        said.append(f"{job_dir / JOURNAL}: {what}")
    trials, plan = _held_together(job_dir, plan, book, trials, said, is_torn=bool(torn))
    if not plan.known or any(trial.unsure for trial in trials):
        # What was lost then may have been a trial's; else it was of an attempt that is no part of the result.
        said, warnings = [*warnings, *said], []
    left = {trial.trial for trial in trials}
    replaced = tuple(_replaced(book, spends, kept=left))
    return JobRecord(
        directory=job_dir,
        plan=plan,
        trials=tuple(trial for trial in trials if trial.planned),
        planned_trials=len(plan.directories) * plan.attempts or _number_of_trials(job_dir),
        warnings=(*warnings, *said),
        replaced=replaced,
        stop=book.stop,
        unplanned=tuple(trial for trial in trials if not trial.planned),
        strangers=tuple(strangers),
        doubts=tuple(said),
        is_torn=bool(torn),
    )


def _as_journalled(trial: TrialRecord, book: Journal, mixed: Collection[str]) -> TrialRecord:
    """The trial with what journal and receipts add to it; `mixed` are the trials of several upstreams."""
    labels = [label for label, names in (("retried", book.retried), (MIXED, mixed)) if trial.trial in names]
    if labels:
        trial = replace(trial, outcome=replace(trial.outcome, labels=(*trial.outcome.labels, *labels)))
    begun = book.begun.get(trial.trial)
    if begun and (trial.told.foreign or not trial.told.readable):
        trial = replace(trial, task=begun.task)
    return _not_begun(trial) if book.begun and begun is None else trial


def _held_together(
    job_dir: Path,
    plan: JobPlanRecord,
    book: Journal,
    trials: list[TrialRecord],
    said: list[str],
    *,
    is_torn: bool,
) -> tuple[list[TrialRecord], JobPlanRecord]:
    """The trials with what their records contradict; a plan that they weren't played by tells nothing of them."""
    told = [trial for trial in trials if trial.told.readable and not trial.told.foreign]
    receipts = doubts.of_receipts([(trial.trial, trial.spend, trial.told) for trial in told], book.retried)
    if receipts:
        said.append(doubts.line(job_dir / RECEIPTS, "they aren't what was counted", [*receipts.values()]))
    outcomes = {trial.trial: (trial.outcome.outcome, trial.outcome.reward) for trial in told}
    known = {trial.trial for trial in trials} - outcomes.keys()  # of these a warning says more
    ends = {name: (end.outcome, end.reward) for name, end in book.ended.items() if name not in known}
    if ended := [*doubts.of_ends(ends, outcomes)]:
        said.append(doubts.line(job_dir / JOURNAL, "it isn't what the directories say", ended))
    if plan.known and (played := [*doubts.of_played(plan, {trial.trial: trial.told for trial in told})]):
        said.append(doubts.line(job_dir / PLAN, "it isn't what was played", played))
        plan = replace(plan, known=False, leaderboard=UNSAID)
    sure = {trial.trial for trial in told if trial.told.counted and trial.told.counted.settled} - receipts.keys()
    unsure = {trial.trial for trial in trials} - sure if is_torn else set(receipts)
    return [replace(trial, unsure=trial.trial in unsure) for trial in trials], plan


def read_plan(job_dir: Path) -> JobPlanRecord:
    """The job's plan alone. What a damaged file doesn't tell is unknown."""
    return planrecord.read(job_dir, [])


def trial_directories(job_dir: Path, *, without: Iterable[str] = ()) -> list[Path]:
    """The directories of a job's attempts, by name; those of `without` are no part of it any more."""
    left_out = set(without)
    return sorted(
        path for path in job_dir.iterdir() if path.name not in left_out and path.is_dir() and path.name[0] != "."
    )


def read_trial(
    trial_dir: Path,
    plan: JobPlanRecord,
    spend: Spend = NOTHING,
    warnings: list[str] | None = None,
    of_steps: Mapping[str, Spend] | None = None,
    jumped_s: float = 0.0,
) -> TrialRecord:
    """One trial from its directory, with the host's own verdict where the task has one.

    `spend` is what its calls cost, `of_steps` the same of each step of its task; `jumped_s` is by how much the wall
    clock jumped while it ran, by which Harbor tells its time.
    """
    path = trial_dir / "result.json"
    result = object_in(path)
    if result is None:
        what = DAMAGED if path.exists() else UNFINISHED
        if path.exists() and warnings is not None:
            warnings.append(f"{path}: not a JSON object (cut off?); the trial is unscored")
        return TrialRecord(trial_dir.name, _task_of(trial_dir, plan), Outcome("unscored", None, what), 0.0, spend)
    told = doubts.told(result, trial_dir, plan, lambda: (object_in(trial_dir.parent / "result.json") or {}).get("id"))
    if told.foreign:
        if warnings is not None:
            warnings.append(f"{path}: {told.foreign}; it counts for nothing")
        unscored = Outcome("unscored", None, told.foreign)
        return TrialRecord(trial_dir.name, _task_of(trial_dir, plan), unscored, 0.0, spend, told=told)
    task = str(result.get("task_name") or _task_of(trial_dir, plan))
    task_dir = plan.directories.get(task)
    warnings = [] if warnings is None else warnings
    facts = _facts(result, trial_dir, task_dir, warnings)
    if facts.fault is None and (noted := object_in(trial_dir / FAULT_FILE)):
        facts = replace(facts, fault=Fault(str(noted.get("kind")), str(noted.get("reason"))))
    steps = tuple(_steps(result, trial_dir, task_dir, warnings, of_steps or {}))
    outcome = combined(result, facts, steps) if steps else classify(facts)
    planned = plan.holds(task, _source_of(result, task))
    checksum = str(result.get("task_checksum") or "")
    return TrialRecord(trial_dir.name, task, outcome, seconds(result, jumped_s), spend, planned, steps, checksum, told)


def _steps(
    result: Mapping[str, Any],
    trial_dir: Path,
    task_dir: Path | None,
    warnings: list[str],
    spends: Mapping[str, Spend],
) -> Iterator[StepOutcome]:
    """What each step is worth that the trial came to."""
    had_control = False
    for name, part in step_parts(result):
        facts = _facts(part, trial_dir / "steps" / name, task_dir, warnings, name)
        facts = set_up_later(facts) if had_control else facts
        had_control = facts.agents_had_control
        team_s = seconds(part.get("agent_execution"))
        yield StepOutcome(name, classify(facts), team_s, spends.get(name, NOTHING))


def judged_apart(plan: JobPlanRecord, task: str) -> bool:
    """Whether the task has a judge that isn't the project's own: its verdict takes a sandbox, and a while."""
    task_dir = plan.directories.get(task)
    if task_dir is None:
        return False
    steps = (path.name for path in task_dir.glob("steps/*"))
    found = (judge.find(task_dir, step) for step in (None, *steps))
    return any(path and not judge.is_own(path, ROOT / OWN_TASKS) for path in found)


def _facts(
    part: Mapping[str, Any], directory: Path, task_dir: Path | None, warnings: list[str], step: str | None = None
) -> Facts:
    """What is known of a trial or of its step, whose directory it is, with the host's own verdict."""
    told = object_in(directory / "verifier" / "checks.json", most_bytes=LARGEST_CHECKS_BYTES)
    facts = facts_from(part, checks=told)
    if facts.rewards is None:
        facts = replace(facts, verifier_tail=_verifier_tail(directory), reward_file=_reward_file(directory))
    try:
        checks = verdicts.host(directory, task_dir, step, warnings, own_tasks=ROOT / OWN_TASKS)
        return replace(facts, host_checks=checks)
    except JudgeError as error:
        # The task's fault, not the team's: nobody can say what the evidence is worth.
        return replace(facts, fault=facts.fault or Fault("judge", str(error)))
    except NoSandbox as error:
        if str(error) not in warnings:
            warnings.append(str(error))
        return replace(facts, labels=(*facts.labels, NOT_JUDGED))


def _replaced(book: Journal, spends: Mapping[str, Spend], *, kept: set[str]) -> list[Replaced]:
    """Attempts that the journal or the receipts know, and that have no directory in the job any more."""
    found = []
    for name in dict.fromkeys([*book.begun, *book.replaced, *spends]):
        if name in kept:
            continue
        entry = book.replaced.get(name)
        task = entry.task if entry else book.begun[name].task if name in book.begun else name.rpartition("__")[0]
        found.append(Replaced(name, task, entry.reason if entry else GONE, spends.get(name, NOTHING)))
    return found


def _not_begun(trial: TrialRecord) -> TrialRecord:
    """A directory that Harbor had made when the job was stopped, of an attempt that the journal doesn't know."""
    if trial.outcome.reason != UNFINISHED:
        return trial
    return replace(trial, outcome=replace(trial.outcome, reason=NOT_BEGUN))


def _task_of(trial_dir: Path, plan: JobPlanRecord) -> str:
    """The task of a trial that has no result: its configuration names the task's directory."""
    configured = object_in(trial_dir / "config.json") or {}
    task = configured.get("task")
    path = str(task.get("path")) if isinstance(task, dict) else ""
    named = (name for name, directory in plan.directories.items() if str(directory) == path)
    return next(named, "") or _task_named_in(trial_dir.name, plan)


def _task_named_in(trial: str, plan: JobPlanRecord) -> str:
    """The planned task that a trial's name begins with, as far as Harbor takes it in; else that beginning itself."""
    prefix = trial.rpartition("__")[0] or trial
    fits = [
        name for name, directory in plan.directories.items() if directory.name[:TASK_CHARACTERS].rstrip("_-") == prefix
    ]
    return fits[0] if len(fits) == 1 else prefix


def _source_of(result: Mapping[str, Any], task: str) -> str:
    """What Harbor matched its globs against (HARBOR.md section 1.1)."""
    config = result.get("config")
    source = config.get("task") if isinstance(config, dict) else None
    source = source if isinstance(source, dict) else {}
    return str(source.get("name") or Path(str(source.get("path") or task)).name)


def _number_of_trials(job_dir: Path) -> int | None:
    """What Harbor planned: of a registry dataset only Harbor knows."""
    number = (object_in(job_dir / "result.json") or {}).get("n_total_trials")
    return number if isinstance(number, int) and number > 0 else None


def sync(trial_dir: Path) -> None:
    """Make a trial's result durable: it counts as done only after this."""
    descriptor = os.open(trial_dir / "result.json", os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    sync_directory(trial_dir)


def _verifier_tail(directory: Path) -> str:
    """The end of what the verifier printed."""
    path = directory / "verifier" / "test-stdout.txt"
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - TAIL_CHARACTERS))
        return file.read().decode(errors="replace")


def _reward_file(directory: Path) -> str:
    """What stands in the reward file that Harbor reads: reward.json where there is one."""
    for name in ("reward.json", "reward.txt"):
        path = directory / "verifier" / name
        if path.is_file():
            with path.open("rb") as file:
                text = file.read(REWARD_CHARACTERS + 1).decode(errors="replace").strip()
            more = " …" if len(text) > REWARD_CHARACTERS else ""
            return f"{name} holds {text[:REWARD_CHARACTERS]!r}{more}" if text else f"{name} is empty"
    return ""


def seconds(times: Any, jumped_s: float = 0.0) -> float:
    """From `started_at` to `finished_at` of a part of a result.json, without what the wall clock jumped meanwhile.

    0.0 where they aren't there.
    """
    try:
        began, ended = (datetime.fromisoformat(times[name]) for name in ("started_at", "finished_at"))
        # A clock that was set back meanwhile makes no negative time.
        return max(0.0, (ended - began).total_seconds() - jumped_s)
    except (KeyError, TypeError, ValueError):
        return 0.0
