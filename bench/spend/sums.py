"""A job's receipts added up: by agent, role, model and trial, beside the caps that hold. What is unknown stays so.

found = Books(job_dir).read()
found.total.spend.cost_usd_micros
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from bench import planrecord
from bench.condition import Limits
from bench.planrecord import JobPlanRecord
from bench.records import JOURNAL, RECEIPTS
from bench.spend.tally import Tally, Used
from bench.stepoutcomes import told
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
class TrialSpend:
    """One trial. `state` is its outcome, `running` (it has no end), `replaced`, or `?` where the journal is silent.

    `self_report` is what its agents said, by name, as the trial's metadata has it; empty where none was checked.
    """

    task: str
    state: str
    used: Used
    agents: Mapping[str, Used]
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
    _warnings: list[str] = field(default_factory=list)
    _self_reports: dict[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)

    def read(self, *, running: bool = False) -> JobSpend:
        """The job as its files have it now. What can't be read is named in `warnings`."""
        self._take_in(running=running)
        warnings: list[str] = []
        plan = planrecord.read(self.directory, warnings)
        book = journal.read(self.directory / JOURNAL)
        roles = {seat.name: seat.role for seat in plan.roster} | {seat.member: seat.role for seat in plan.roster}
        trials, total = self._trials(book), self._tally.by().get((), Used())
        return JobSpend(
            directory=self.directory,
            plan=plan,
            running=running,
            total=total,
            agents=_named(self._tally.by("agent")),
            roles=_named(self._tally.by("agent", "member", name=lambda key: (_role(roles, *key),))),
            models=_named(self._tally.by("model")),
            trials=trials,
            caps=tuple(sorted(_caps(plan, total, trials), key=lambda cap: -(cap.part or 0))),
            planned_trials=len(plan.directories) * plan.attempts or None,
            warnings=(*warnings, *self._warnings, *book.warnings),
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
            if line.strip() and not self._tally.take(line):
                self._warnings.append(f"{path}: a line that is no JSON object (cut off?), passed over")
        self._offset += whole

    def _trials(self, book: Journal) -> dict[str, TrialSpend]:
        used = _named(self._tally.by("trial"))
        agents: dict[str, dict[str, Used]] = {}
        for (trial, agent), sums in self._tally.by("trial", "agent").items():
            agents.setdefault(trial, {})[agent] = sums
        states = _states(book)
        found = {}
        for name in dict.fromkeys([*states, *used]):
            begun = book.begun.get(name) or book.replaced.get(name)
            found[name] = TrialSpend(
                task=begun.task if begun else name.rpartition("__")[0],
                state=states.get(name, "?"),
                used=used.get(name, Used()),
                agents=agents.get(name, {}),
                self_report=self._self_report(name, states.get(name, "?")),
            )
        return found

    def _self_report(self, trial: str, state: str) -> Mapping[str, Mapping[str, Any]]:
        """What a trial's agents said, read once it has ended."""
        if state == "running":
            return {}
        if trial not in self._self_reports:
            self._self_reports[trial] = _self_report(self.directory / trial / "result.json")
        return self._self_reports[trial]


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


def _self_report(result: Path) -> Mapping[str, Mapping[str, Any]]:
    """What a trial's agents said that they used (bench.trial.selfreport), by name."""
    try:
        said = told(json.loads(result.read_bytes()))[-1]["self_report"]
        return {str(name): facts for name, facts in said.items() if isinstance(facts, dict)}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}
