"""A job's receipts added up: by agent, role, model and trial, beside the caps that hold. What is unknown stays so.

found = Books(job_dir).read()
found.total.spend.cost_usd_micros
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from bench import records
from bench.condition import Limits
from bench.reading import jsonl
from bench.reading.jsonfile import object_in
from bench.records import JOURNAL, NOT_BEGUN, RECEIPTS, UNFINISHED, planrecord
from bench.records.job import JobRecord
from bench.records.planrecord import JobPlanRecord
from bench.scoring.stepoutcomes import step_parts, told
from bench.spend.tally import UNNAMED, Tally, Used
from bench.trial import journal
from bench.trial.journal import AttemptReplaced, AttemptStarted, Journal, TrialEnded

UNITS = ("usd_micros", "tokens", "calls")


@dataclass(frozen=True)
class Cap:
    """One cap and what was charged against it; None where that is unknown. `name` is the job's or the trial's, `agent`
    one of it."""

    scope: Literal["job", "trial", "agent"]
    name: str
    agent: str | None
    unit: str
    cap: int
    charged: int | None

    @property
    def part(self) -> float | None:
        """How much of it is used, 1.0 for all; None where that is unknown."""
        return None if self.charged is None else self.charged / self.cap


@dataclass(frozen=True)
class StepSpend:
    """One step of a task, of a trial or of all trials together.

    `seconds` is how long the team had each time, of trials that have ended.
    """

    used: Used
    seconds: tuple[float, ...] = ()


@dataclass(frozen=True)
class TrialSpend:
    """One trial. `state` is its outcome, `running`, `cut off` (nothing runs, and it has no end), `replaced`, `gone`
    (its directory is), `not selected`, or `?` where the journal is silent.

    `self_report` is what its agents said, by name, as the trial's metadata has it; empty where none was checked.
    """

    task: str
    state: str
    used: Used
    agents: Mapping[str, Used]
    steps: Mapping[str, StepSpend]
    self_report: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class JobSpend:
    """A whole job. Each grouping adds up to `total`; `caps` begin with the nearest. `running`: a process holds it."""

    directory: Path
    plan: JobPlanRecord
    running: bool
    total: Used
    agents: Mapping[str, Used]
    roles: Mapping[str, Used]
    models: Mapping[str, Used]
    steps: Mapping[tuple[str, str], StepSpend]
    """By task and step, in the order in which they were played; empty where no task has steps."""
    trials: Mapping[str, TrialSpend]
    caps: tuple[Cap, ...]
    planned_trials: int | None
    warnings: tuple[str, ...]

    @property
    def ended(self) -> int:
        """How many trials have ended, and were not replaced since."""
        return sum(trial.state in ("passed", "failed", "unscored") for trial in self.trials.values())


@dataclass
class Books:
    """A job's receipts as they come: a second `read` takes in what was added since. Call ids count once, the last."""

    directory: Path
    _tally: Tally = field(default_factory=Tally)
    _offset: int = 0
    _lines: int = 0
    _warnings: list[str] = field(default_factory=list)
    _ended: dict[str, _Ended] = field(default_factory=dict)

    def read(self, *, running: bool = False) -> JobSpend:
        """The job as its files have it now. What can't be read is named in `warnings`.

        Of one that doesn't run all but the sums is what a report reads, so that the two agree.
        """
        self._take_in(running=running)
        book = journal.read(self.directory / JOURNAL)
        record = None if running else records.read_job(self.directory)
        if record is None:
            warnings: list[str] = []
            plan = planrecord.read(self.directory, warnings)
            warnings += [*self._warnings, *book.warnings]
            states, planned = _states(book), len(plan.directories) * plan.attempts or None
            is_torn, unsure = bool(self._warnings), set[str]()
        else:
            plan, warnings = record.plan, list(record.warnings)
            states, planned, is_torn = _states_at_rest(record, book), record.planned_trials, record.is_torn
            unsure = {trial.trial for trial in (*record.trials, *record.unplanned) if trial.unsure}
        roles = {seat.name: seat.role for seat in plan.roster} | {seat.member: seat.role for seat in plan.roster}

        def by_role(key: tuple[str, ...]) -> tuple[str, ...]:
            return (_role(roles, *key),)

        total = _marked({"": self._tally.by().get((), Used())}, unsure=is_torn or bool(unsure))[""]
        trials = self._trials(book, states, unsure)
        return JobSpend(
            directory=self.directory,
            plan=plan,
            running=running,
            total=total,
            agents=_marked(_named(self._tally.by("agent")), unsure=total.unsure),
            roles=_marked(_named(self._tally.by("agent", "member", name=by_role)), unsure=total.unsure),
            models=_marked(_named(self._tally.by("model")), unsure=total.unsure),
            steps=_by_task(trials.values()),
            trials=trials,
            caps=tuple(sorted(_caps(plan, total, trials), key=lambda cap: -(cap.part or 0))),
            planned_trials=planned,
            warnings=tuple(warnings),
        )

    def _take_in(self, *, running: bool) -> None:
        """Read on where the last reading ended; a last line that isn't whole yet waits while the job runs."""
        path = self.directory / RECEIPTS
        try:
            with path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return
        whole = data.rfind(b"\n") + 1 if running else len(data)
        for line in data[:whole].splitlines():
            self._lines += 1
            if line.strip() and not self._tally.take(line):
                self._warnings.append(jsonl.passed_over(path, self._lines))
        self._offset += whole

    def _trials(self, book: Journal, states: Mapping[str, str], unsure: set[str]) -> dict[str, TrialSpend]:
        used = _named(self._tally.by("trial"))
        agents: dict[str, dict[str, Used]] = {}
        for (trial, agent), sums in self._tally.by("trial", "agent").items():
            agents.setdefault(trial, {})[agent] = sums
        steps: dict[str, dict[str, Used]] = {}
        for (trial, step), sums in self._tally.by("trial", "step", as_they_came=True).items():
            if step != UNNAMED:
                steps.setdefault(trial, {})[step] = sums
        found = {}
        for name in dict.fromkeys([*states, *used]):
            begun = book.begun.get(name) or book.replaced.get(name)
            ended = self._what_ended(name, states.get(name, "?"))
            found[name] = TrialSpend(
                task=begun.task if begun else name.rpartition("__")[0],
                state=states.get(name, "?"),
                used=replace(used.get(name, Used()), unsure=name in unsure),
                agents=agents.get(name, {}),
                steps=_in_order(ended.steps, steps.get(name, {}), unsure=name in unsure),
                self_report=ended.self_report,
            )
        return found

    def _what_ended(self, trial: str, state: str) -> _Ended:
        """What a trial's result tells, read once it has ended."""
        if state == "running":
            return _Ended()
        if trial not in self._ended:
            self._ended[trial] = _Ended.read(self.directory / trial / "result.json")
        return self._ended[trial]


def _marked(groups: Mapping[str, Used], *, unsure: bool) -> dict[str, Used]:
    return {name: replace(used, unsure=unsure) for name, used in groups.items()}


def _named(groups: Mapping[tuple[str, ...], Used]) -> dict[str, Used]:
    return {name: used for (name,), used in groups.items()}


def _role(roles: Mapping[str, str], agent: str, member: str) -> str:
    return roles.get(agent) or roles.get(member) or "?"


def _states(book: Journal) -> dict[str, str]:
    """What became of each trial that the journal knows, by its last word."""
    states: dict[str, str] = {}
    for entry in book.entries:
        match entry:
            case AttemptStarted():
                states[entry.trial] = "running"
            case TrialEnded():
                states[entry.trial] = entry.outcome
            case AttemptReplaced():
                states[entry.trial] = "replaced"
    return states


def _states_at_rest(record: JobRecord, book: Journal) -> dict[str, str]:
    """What became of each trial of a job that doesn't run, as a report has it."""
    states = {
        attempt.trial: "replaced" if attempt.trial in book.replaced else "gone"
        for attempt in record.replaced
        if attempt.trial in book.replaced or attempt.trial in book.begun
    }
    for trial in record.trials:
        has_end = trial.outcome.reason not in (UNFINISHED, NOT_BEGUN)
        states[trial.trial] = trial.outcome.outcome if has_end else UNFINISHED
    return states | {trial.trial: "not selected" for trial in record.unplanned}


def _caps(plan: JobPlanRecord, total: Used, trials: Mapping[str, TrialSpend]) -> Iterable[Cap]:
    for unit in UNITS:
        of_job: int | None = getattr(plan.job_budget, unit)
        if of_job:
            yield Cap("job", plan.job, None, unit, of_job, total.charged(unit))
    of_trial = Limits(*(plan.budget.get(unit) for unit in UNITS))
    of_agent = {seat.name: seat.limits for seat in plan.roster}
    for name, trial in trials.items():
        for unit in UNITS if trial.state != "replaced" else ():
            cap: int | None = getattr(of_trial, unit)
            if cap:
                yield Cap("trial", name, None, unit, cap, trial.used.charged(unit))
            for agent, used in trial.agents.items():
                own: int | None = getattr(of_agent.get(agent, Limits()), unit)
                if own:
                    yield Cap("agent", name, agent, unit, own, used.charged(unit))


def _in_order(ended: Mapping[str, float], used: Mapping[str, Used], *, unsure: bool) -> dict[str, StepSpend]:
    """A trial's steps: those that its result has, in order, and those that only receipts name."""
    return {
        name: StepSpend(replace(used.get(name, Used()), unsure=unsure), (ended[name],) if ended.get(name) else ())
        for name in dict.fromkeys([*ended, *used])
    }


def _by_task(trials: Iterable[TrialSpend]) -> dict[tuple[str, str], StepSpend]:
    """The steps of all trials, those of attempts that were replaced, too."""
    together: dict[tuple[str, str], StepSpend] = {}
    for trial in trials:
        for name, step in trial.steps.items():
            known = together.get((trial.task, name), StepSpend(Used()))
            together[trial.task, name] = StepSpend(known.used + step.used, known.seconds + step.seconds)
    return together


@dataclass(frozen=True)
class _Ended:
    """What the result.json of a trial that has ended tells beside its outcome."""

    self_report: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    steps: Mapping[str, float] = field(default_factory=dict)
    """How many seconds the team had each step."""

    @classmethod
    def read(cls, path: Path) -> _Ended:
        result = object_in(path) or {}
        steps = {name: records.seconds(part.get("agent_execution")) for name, part in step_parts(result)}
        said = ours[-1].get("self_report") if (ours := told(result)) else None
        agents = said.items() if isinstance(said, dict) else ()
        return cls({str(name): facts for name, facts in agents if isinstance(facts, dict)}, steps)
