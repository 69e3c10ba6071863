"""buzzbench-journal.jsonl of a job: what was begun and how it ended, on disk before anything depends on it.

An attempt is written down before it does anything, so that what a crash left can be found and booked (public case 55).
Each line is one JSON object with `at` (ISO 8601 UTC) and `entry`, the name of one of the kinds below.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import MISSING, asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.reading import jsonl
from bench.scoring.outcome import Outcome

FILE_NAME = "buzzbench-journal.jsonl"


@dataclass(frozen=True)
class AttemptStarted:
    """An attempt that is about to begin. `trial` is the name of its directory."""

    trial: str
    task: str
    at: str


@dataclass(frozen=True)
class TrialEnded:
    """How a trial ended, as `bench.scoring.outcome` decided it.

    `clock_jumped_s` is how far the wall clock jumped meanwhile (below 0: back), None where it didn't.
    """

    trial: str
    outcome: str
    reward: float | None
    reason: str
    labels: tuple[str, ...]
    at: str
    clock_jumped_s: float | None = None


@dataclass(frozen=True)
class AttemptReplaced:
    """An attempt without a score that makes room for another. From this line on its directory is no part of the job.

    `archive` is where the directory is kept. `reason` says why it has no score.
    """

    trial: str
    task: str
    reason: str
    archive: str
    at: str


@dataclass(frozen=True)
class JobStopped:
    """The job was stopped before all its trials had begun: `kind` is `stopped`, `budget` or `waiting`."""

    kind: str
    reason: str
    at: str


@dataclass(frozen=True)
class JobResumed:
    """The job goes on: `kept` trials had a score."""

    kept: int
    at: str


type Entry = AttemptStarted | TrialEnded | AttemptReplaced | JobStopped | JobResumed

_KINDS: dict[str, type[Entry]] = {
    "attempt_started": AttemptStarted,
    "trial_ended": TrialEnded,
    "attempt_replaced": AttemptReplaced,
    "job_stopped": JobStopped,
    "job_resumed": JobResumed,
}


@dataclass(frozen=True)
class Journal:
    """The entries in order, and what of the file could not be read (a crash leaves at most one line, at the end)."""

    entries: tuple[Entry, ...]
    warnings: tuple[str, ...] = ()

    @property
    def begun(self) -> dict[str, AttemptStarted]:
        """Every attempt that was ever begun, by its trial."""
        return {e.trial: e for e in self.entries if isinstance(e, AttemptStarted)}

    @property
    def retried(self) -> frozenset[str]:
        """Trials that Harbor tried again under the same name."""
        begun = Counter(e.trial for e in self.entries if isinstance(e, AttemptStarted))
        return frozenset(trial for trial, times in begun.items() if times > 1)

    @property
    def replaced(self) -> dict[str, AttemptReplaced]:
        """Attempts that made room for others, by their trial."""
        return {e.trial: e for e in self.entries if isinstance(e, AttemptReplaced)}

    @property
    def unfinished(self) -> tuple[AttemptStarted, ...]:
        """Attempts that began, have no end, and were not replaced."""
        open_: dict[str, AttemptStarted] = {}
        for entry in self.entries:
            match entry:
                case AttemptStarted():
                    open_[entry.trial] = entry
                case TrialEnded() | AttemptReplaced():
                    open_.pop(entry.trial, None)
        return tuple(open_.values())

    @property
    def ended(self) -> dict[str, TrialEnded]:
        """How the trials ended that have not been replaced or begun again since, by their name."""
        ends: dict[str, TrialEnded] = {}
        for entry in self.entries:
            match entry:
                case TrialEnded():
                    ends[entry.trial] = entry
                case AttemptStarted() | AttemptReplaced():
                    ends.pop(entry.trial, None)
        return ends

    @property
    def stop(self) -> JobStopped | None:
        """Why the job's last run was stopped; None where it was not."""
        last: JobStopped | None = None
        for entry in self.entries:
            match entry:
                case JobStopped():
                    last = entry
                case JobResumed():
                    last = None
        return last


def attempt_started(path: Path, *, trial: str, task: str, at: datetime) -> None:
    """Write down that an attempt begins; on disk when this returns."""
    append(path, AttemptStarted(trial, task, iso(at)))


def trial_ended(path: Path, *, trial: str, outcome: Outcome, at: datetime, clock_jumped_s: float = 0.0) -> None:
    """Write down how a trial ended; on disk when this returns."""
    jumped_s = clock_jumped_s or None
    append(path, TrialEnded(trial, outcome.outcome, outcome.reward, outcome.reason, outcome.labels, iso(at), jumped_s))


def append(path: Path, entry: Entry) -> None:
    """Write an entry down; on disk when this returns. Raises OSError."""
    name = next(name for name, kind in _KINDS.items() if isinstance(entry, kind))
    jsonl.append(path, {"entry": name, **asdict(entry)})


def read(path: Path) -> Journal:
    """What the journal holds; empty where there is none. Never raises for what is in the file."""
    warnings: list[str] = []
    entries: list[Entry] = []
    for number, line in enumerate(jsonl.read(path, warnings), 1):
        entry = _parse(line)
        if entry is None:
            warnings.append(f"{path}, entry {number}: unknown ({line.get('entry')!r}), passed over")
        else:
            entries.append(entry)
    return Journal(tuple(entries), tuple(warnings))


def iso(at: datetime) -> str:
    """A moment as the journal writes it: UTC, to the millisecond."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds")


def _parse(line: dict[str, Any]) -> Entry | None:
    kind = _KINDS.get(str(line.get("entry")))
    if kind is None:
        return None
    known = {field.name: str(field.type) for field in fields(kind)}
    needed = {field.name for field in fields(kind) if field.default is MISSING}
    given = {name: value for name, value in line.items() if name in known}
    if needed - given.keys() or not all(_fits(known[name], value) for name, value in given.items()):
        return None
    if "labels" in given:
        given["labels"] = tuple(given["labels"])
    return kind(**given)


def _fits(type_name: str, value: Any) -> bool:
    match type_name:
        case "str":
            return isinstance(value, str)
        case "int":
            return isinstance(value, int)
        case "float | None":
            return value is None or isinstance(value, int | float)
        case _:
            return isinstance(value, list) and all(isinstance(item, str) for item in value)
