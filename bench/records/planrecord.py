"""`buzzbench-plan.json`: what a job is, beside its results; a pure function of the person's input.

A report reads of it what is there. A resume is held to it: `load` wants it whole, `differences` compares two.
"""

from __future__ import annotations

import glob
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.baseline import MEMBER
from bench.condition import Condition, Limits
from bench.errors import InvalidInput
from bench.files import write_atomically
from bench.planning import leaderboard
from bench.planning.leaderboard import UNSAID, Verdict
from bench.prices import rates_told
from bench.reading import jsonfile

if TYPE_CHECKING:
    from bench.planning.jobs import JobPlan
    from bench.planning.options import Options
    from bench.planning.planned import Plan

FILE_NAME = "buzzbench-plan.json"
SCHEMA = "buzzbench-plan-1"

ANEW = frozenset(
    {
        *("now", "environ", "root", "jobs_dir", "job_name", "n_concurrent", "gui", "fresh", "dry_run", "json"),
        *("leaderboard", "upload", "upload_anyway"),
    }
)
"""Options that are a run's own: a resumed job takes them from the command line, not from its record."""

UNCOMPARED = frozenset(
    {
        *("schema", "job", "options", "include", "exclude", "roster", "job_budget", "earlier_budgets", "leaderboard"),
        "key_variables",
        "prices",
    }
)
"""Fields that say how a job was asked for; what came of it is in others. Roster and prices are the condition's, the
verdict the configuration's. A job's budget may be another when it goes on, and its keys may be in other variables."""

OF_ITS_PLACE = frozenset({"job_name", "jobs_dir", "n_concurrent_trials"})
"""Fields of Harbor's configuration that may change: Harbor overlooks the first two, and `-n` is set anew."""

TELLING = ("job", "condition_sha256", "rehearsal", "tasks")
"""Fields without which a record doesn't tell what a job is."""

SHOWN_CHARACTERS = 60


@dataclass(frozen=True)
class Seat:
    """One agent of the team that was planned. `limits` are its own in a trial."""

    name: str
    member: str
    role: str
    limits: Limits
    model: str = ""
    endpoint: str = ""


@dataclass(frozen=True)
class EarlierBudget:
    """The caps that a job had as a whole, and until when (ISO 8601, UTC): then it went on with others."""

    limits: Limits
    until: str


@dataclass(frozen=True)
class JobPlanRecord:
    """What a report needs. `directories` maps a task's name to its directory on the machine that ran it.

    `budget` has the caps of a whole team in a trial, None for no cap: `timeout_seconds`, `usd_micros`, `tokens` and
    `calls`; it is empty where the record doesn't say. `include` and `exclude` are globs of a registry dataset.
    """

    job: str
    rehearsal: str | None
    condition: str
    condition_sha256: str
    stack: str
    environment: str
    attempts: int
    directories: Mapping[str, Path]
    agent: str | None = None
    """Harbor's own agent that played in a team's place."""
    budget: Mapping[str, int | None] = field(default_factory=dict)
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    replay: str | None = None
    """The hash of the cassette that was played in a model's place."""
    roster: tuple[Seat, ...] = ()
    job_budget: Limits = field(default_factory=Limits)
    """The caps of the job as a whole."""
    earlier_budgets: tuple[EarlierBudget, ...] = ()
    """Those that it had before, oldest first."""
    endpoints: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By name: `provider`, `base_url` and `dialect`."""
    harnesses: tuple[str, ...] = ()
    prices: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By model, its rates as `bench.prices.Price` has them; empty where the record doesn't say."""
    concurrent: int | None = None
    """How many trials it played at a time, when it began; None where the record doesn't say."""
    leaderboard: Verdict = UNSAID
    """Whether its figure may stand on one, as it was told before the first call."""
    dataset: str | None = None
    """The registry's dataset; None for tasks of a path."""
    known: bool = True
    """Whether there is a record that can be read: without one nobody can tell what played."""

    @property
    def served_by(self) -> tuple[str, ...]:
        """The upstreams of the team's models: each one's kind, and where it is unless that is known of the kind."""
        asked = {seat.endpoint for seat in self.roster}
        each = (one for name, one in self.endpoints.items() if name in asked)
        return tuple(sorted({f"{one.get('provider')} {one.get('base_url') or ''}".strip() for one in each}))

    @property
    def unasked(self) -> str:
        """`rehearsal: no model was asked`, or of a replay the same; empty where models were, or nobody can tell."""
        kind = "rehearsal" if self.rehearsal else "replay" if self.replay else ""
        return f"{kind}: no model was asked" if kind else ""

    def title(self, directory: Path) -> str:
        """What a person calls the job in this directory: one that was copied or renamed goes by its own name."""
        return self.job if directory.name in self.job.split(" + ") else f"{directory.name} (begun as {self.job})"

    def holds(self, task: str, source: str) -> bool:
        """Whether a trial's task is one that was planned (public case 1).

        `task` is its name, `source` what Harbor matched globs against: `org/name` of a registry's, else a directory's.
        """
        if self.directories:
            return task in self.directories
        included = not self.include or any(fnmatchcase(source, glob) for glob in self.include)
        return included and not any(fnmatchcase(source, glob) for glob in self.exclude)


@dataclass(frozen=True)
class Difference:
    """One field that is not what it was. `field` is a dotted path; a side that lacks it is None."""

    field: str
    then: str | None
    now: str | None

    def __str__(self) -> str:
        then, now = (_shown(side) for side in (self.then, self.now))
        return f"{self.field} was {then} and is {now} now"


def describe(plan: Plan, job: JobPlan) -> dict[str, Any]:
    """The record of a planned job."""
    from bench.budget import of_team
    from bench.planning.harborjob import job_config, verdict

    return {
        "schema": SCHEMA,
        "job": job.name,
        "rehearsal": plan.rehearsal,
        "replay": plan.replay.sha256 if plan.replay else None,
        "stack": plan.stack,
        "environment": plan.environment,
        "condition": plan.condition.name,
        "condition_sha256": plan.condition_sha256,
        "harnesses": list(plan.condition.harnesses),
        "agent": plan.agent,
        "budget": asdict(of_team(plan.condition)) | {"timeout_seconds": plan.condition.timeout_seconds},
        "job_budget": asdict(plan.budget),
        "roster": [asdict(seat) for seat in _seats(plan.condition)],
        "endpoints": {
            name: {"provider": e.provider, "base_url": e.base_url, "dialect": e.dialect}
            for name, e in sorted(plan.endpoints.items())
        },
        "prices": {
            model: rates_told(price)
            for model, price in sorted(plan.condition.prices.items())
            if model in {seat.model for seat in _seats(plan.condition)}
        },
        "key_variables": sorted(plan.key_variables),
        "dataset": job.dataset,
        "include": list(job.include),
        "exclude": list(job.exclude),
        "attempts": job.attempts,
        "layer": job.layer,
        "tasks": [
            {"name": task.name, "directory": str(task.directory)} | _script(plan, task.directory) for task in job.tasks
        ],
        "harbor": job_config(plan, job),
        "leaderboard": verdict(plan, job).to_json(),
        "options": _options(plan.options, job),
    }


def _seats(condition: Condition) -> list[Seat]:
    """Whose model calls there are: the roster's, or those of an agent of Harbor's in its place."""
    if alone := condition.soloist:
        return [Seat(MEMBER, MEMBER, alone.agent, Limits(), alone.model, alone.endpoint)]
    return [Seat(a.name, a.member, a.role, a.limits, a.model, a.endpoint) for a in condition.agents]


def read(job_dir: Path, warnings: list[str]) -> JobPlanRecord:
    """What a report needs of a job's record. What is missing or strange is unknown, and named in `warnings`."""
    path = job_dir / FILE_NAME
    known = True
    try:
        raw = _parse(path)
    except InvalidInput as error:
        warnings.append(str(error.problems[0]))
        raw, known = {}, False
    if known and (lacking := [name for name in TELLING if name not in raw]):
        warnings.append(f"{path}: lacks {', '.join(lacking)}; nobody can tell what played")
        known = False
    listed = raw.get("tasks")
    directories = {
        str(task["name"]): Path(str(task["directory"]))
        for task in (listed if isinstance(listed, list) else [])
        if isinstance(task, dict) and "name" in task and "directory" in task
    }
    attempts, rehearsal, harbor = (raw.get(name) for name in ("attempts", "rehearsal", "harbor"))
    concurrent = harbor.get("n_concurrent_trials") if isinstance(harbor, dict) else None
    return JobPlanRecord(
        job=str(raw.get("job") or job_dir.name),
        rehearsal=str(rehearsal) if rehearsal else None,
        condition=str(raw.get("condition") or "?"),
        condition_sha256=str(raw.get("condition_sha256") or ""),
        stack=str(raw.get("stack") or "?"),
        environment=str(raw.get("environment") or "?"),
        attempts=attempts if isinstance(attempts, int) else 0,
        directories=directories,
        agent=str(raw["agent"]) if raw.get("agent") else None,
        budget=_budget(raw.get("budget")),
        include=_texts(raw.get("include")),
        exclude=_texts(raw.get("exclude")),
        replay=str(raw["replay"]) if raw.get("replay") else None,
        roster=tuple(_roster(raw.get("roster"))),
        job_budget=_limits(raw.get("job_budget")),
        earlier_budgets=tuple(
            EarlierBudget(_limits(one), str(one.get("until") or "?")) for one in _objects(raw.get("earlier_budgets"))
        ),
        endpoints=_by_text(raw.get("endpoints")),
        prices=_by_text(raw.get("prices")),
        concurrent=concurrent if type(concurrent) is int else None,
        harnesses=_texts(raw.get("harnesses")),
        leaderboard=leaderboard.read(raw.get("leaderboard")),
        dataset=str(raw["dataset"]) if raw.get("dataset") else None,
        known=known,
    )


def key_variables(job_dir: Path) -> tuple[str, ...]:
    """The variables whose values were the job's keys, by name: what its endpoint file had named, gone or not.

    None of them where the record doesn't say.
    """
    return _texts((jsonfile.object_in(job_dir / FILE_NAME) or {}).get("key_variables"))


def renew(plan: Plan, job: JobPlan) -> None:
    """Have the record of a job that goes on say its budget as it is now, and which variables have its keys, too."""
    record, now = load(job.directory), describe(plan, job)
    before = record.get("job_budget")
    if isinstance(before, dict) and before != now["job_budget"]:
        until = plan.options.now.isoformat(timespec="seconds").replace("+00:00", "Z")
        record["earlier_budgets"] = [*_objects(record.get("earlier_budgets")), before | {"until": until}]
    record["job_budget"] = now["job_budget"]
    record["key_variables"] = sorted({*_texts(record.get("key_variables")), *now["key_variables"]})
    kept = {name: value for name, value in record["options"].items() if not name.startswith("budget_")}
    record["options"] = kept | {name: value for name, value in now["options"].items() if name.startswith("budget_")}
    write_atomically(job.directory / FILE_NAME, json.dumps(record, indent=2) + "\n")


def _roster(given: Any) -> Iterator[Seat]:
    for seat in given if isinstance(given, list) else ():
        if isinstance(seat, dict) and isinstance(seat.get("name"), str):
            caps = _limits(seat.get("limits"))
            member, role = str(seat.get("member") or seat["name"]), str(seat.get("role") or "?")
            yield Seat(seat["name"], member, role, caps, str(seat.get("model") or ""), str(seat.get("endpoint") or ""))


def _objects(given: Any) -> list[dict[str, Any]]:
    return [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []


def _by_text(given: Any) -> dict[str, Mapping[str, Any]]:
    return {name: one for name, one in given.items() if isinstance(one, dict)} if isinstance(given, dict) else {}


def _limits(given: Any) -> Limits:
    caps = _budget(given)
    return Limits(caps.get("usd_micros"), caps.get("tokens"), caps.get("calls"))


def _budget(given: Any) -> dict[str, int | None]:
    known = given if isinstance(given, dict) else {}
    return {name: cap for name, cap in known.items() if cap is None or type(cap) is int}


def _texts(given: Any) -> tuple[str, ...]:
    return tuple(str(item) for item in given) if isinstance(given, list) else ()


def load(job_dir: Path) -> dict[str, Any]:
    """The whole record. Raises InvalidInput where it is missing, damaged, or not one that this version resumes."""
    path = job_dir / FILE_NAME
    raw = _parse(path)
    kinds = {"schema": str, "job": str, "tasks": list, "harbor": dict, "options": dict}
    lacking = [name for name, kind in kinds.items() if not isinstance(raw.get(name), kind)]
    if lacking or raw["schema"] != SCHEMA:
        what = f"has no {', '.join(lacking)}" if lacking else f"is of another version, {raw['schema']}"
        raise InvalidInput.of(str(path), what, MERGE_INSTEAD)
    return raw


MERGE_INSTEAD = "restore it, or run under another --job-name and put the two together with `inv report --job … --job …`"
"""What to do about a job that can't be resumed."""


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[Difference]:
    """In what two records differ, but for what may change.

    Harbor's configuration repeats most of the rest: it is told where nothing else differs.
    """
    found = [*_compare(_comparable(then), _comparable(now))]
    return [one for one in found if not one.field.startswith("harbor.")] or found


def options_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """The options that give this job again, as `bench.planning.options.Options` takes them."""
    from bench.planning.options import Options

    kinds = {spec.name: str(spec.type) for spec in fields(Options) if spec.name not in ANEW}
    return {name: _restored(kinds[name], value) for name, value in record["options"].items() if name in kinds}


def _parse(path: Path) -> dict[str, Any]:
    try:
        return jsonfile.read(path, fix=MERGE_INSTEAD)
    except FileNotFoundError:
        raise InvalidInput.of(str(path), "is missing", MERGE_INSTEAD) from None


def _script(plan: Plan, task_dir: Path) -> dict[str, str]:
    """The hash of a rehearsal's script, which is no part of what Harbor hashes."""
    if plan.rehearsal is None:
        return {}
    script = (task_dir / "rehearsal" / f"{plan.rehearsal}.yaml").read_bytes()
    return {"script_sha256": hashlib.sha256(script).hexdigest()}


def _options(options: Options, job: JobPlan) -> dict[str, Any]:
    """What was asked for, with what the plan chose for this job: its tasks by name, and its number of attempts."""
    kept = {spec.name: getattr(options, spec.name) for spec in fields(options) if spec.name not in ANEW}
    kept["attempts"] = job.attempts
    if job.tasks:
        chosen = tuple(glob.escape(task.directory.name) for task in job.tasks)
        kept |= {"include": chosen, "exclude": (), "n_tasks": None, "layer": None}
    return {name: _plain(value) for name, value in kept.items() if value not in (None, (), False)}


def _plain(value: Any) -> Any:
    match value:
        case Path():
            return str(value.absolute())
        case tuple():
            return [_plain(item) for item in value]
        case _:
            return value


def _restored(kind: str, value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    return Path(value) if kind.startswith("Path") else value


def _comparable(record: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in record.items() if name not in UNCOMPARED}
    harbor = record.get("harbor")
    if isinstance(harbor, dict):
        kept["harbor"] = {name: value for name, value in harbor.items() if name not in OF_ITS_PLACE}
    return kept


def _compare(then: Any, now: Any, path: str = "") -> Iterator[Difference]:
    then, now = _by_name(then), _by_name(now)
    if isinstance(then, dict) and isinstance(now, dict):
        for name in dict.fromkeys([*then, *now]):
            yield from _compare(then.get(name), now.get(name), f"{path}.{name}" if path else name)
    elif then != now:
        yield Difference(path, *(None if side is None else json.dumps(side, default=str) for side in (then, now)))


def _by_name(value: Any) -> Any:
    """A list of named objects as an object, so that one more or less is told by its name."""
    if isinstance(value, list) and value and all(isinstance(item, dict) and "name" in item for item in value):
        return {str(item["name"]): {k: v for k, v in item.items() if k != "name"} for item in value}
    return value


def _shown(value: str | None) -> str:
    if value is None or value == "{}":
        return "not there"
    return value if len(value) <= SHOWN_CHARACTERS else f"{value[: SHOWN_CHARACTERS - 2]} …"
