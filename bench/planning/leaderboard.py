"""Whether a job's figure may stand on a leaderboard: `eligible`, `not eligible` or `unknown`, with the reasons. Pure.

    verdict(job_config(plan, job))  ->  Verdict: not eligible: agent_timeout_multiplier: 2.0, and a board wants 1

It is told from the job's configuration in Harbor's terms, before the first call (public case 8): what is planned, or
the config.json that Harbor has written. The rules are those that Terminal-Bench's board checks submissions by (the
tasks' own times and resources, at least five attempts of each task), and those without which two figures don't compare:
the whole dataset, pinned by its digest, and nothing of the host's in the tasks' containers but the agents themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from bench.baseline import MODELLESS
from bench.harness.buzz.fixed import PLACE
from bench.planning.extras import MULTIPLIERS
from bench.settings import ROOT

type Standing = Literal["eligible", "not eligible", "unknown"]

LEAST_ATTEMPTS = 5
"""Of each task."""

OWN_OVERLAYS = tuple(str(ROOT / "compose" / name) for name in ("trial.yaml", "trial-host.yaml"))
"""They set labels, a short stop and the host's name: neither times nor resources."""

PINNED = re.compile(r"sha256:[0-9a-f]{64}")

ATTEMPTS = "n_attempts"
PART = frozenset({"datasets.task_names", "datasets.exclude_task_names", "datasets.n_tasks"})
"""The fields by which a job runs a part of a dataset."""

CHANGED: Mapping[str, tuple[str, ...]] = {
    "environment": (
        "override_cpus",
        "override_memory_mb",
        "override_storage_mb",
        "override_gpus",
        "override_tpu",
        "extra_allowed_hosts",
    ),
    "verifier": ("override_timeout_sec", "max_timeout_sec", "extra_allowed_hosts"),
    "agents": ("override_timeout_sec", "override_setup_timeout_sec", "max_timeout_sec", "extra_allowed_hosts"),
}
"""By section, what replaces a task's own times, resources or network."""

UNSURE: Mapping[str, tuple[str, ...]] = {
    "": ("extra_instructions", "extra_instruction_paths"),
    "environment": ("env", "kwargs", "force_build"),
    "verifier": ("env", "kwargs", "import_path"),
}
"""By section, what a board may see either way."""


@dataclass(frozen=True)
class Reason:
    """One thing that speaks against it: a field of Harbor's configuration, and why.

    Where it isn't `certain`, only a board can say.
    """

    field: str
    why: str
    certain: bool = True

    def __str__(self) -> str:
        return f"{self.field}: {self.why}"


@dataclass(frozen=True)
class Verdict:
    """What speaks against a job's figure on a leaderboard."""

    reasons: tuple[Reason, ...] = ()

    @property
    def standing(self) -> Standing:
        if not self.reasons:
            return "eligible"
        return "not eligible" if any(reason.certain for reason in self.reasons) else "unknown"

    @property
    def other_terms(self) -> tuple[str, ...]:
        """What of it replaced the tasks' own times, resources or network, in Harbor's fields."""
        besides = {*PLAYED, ATTEMPTS, "agents.name", "environment.import_path", "record"}
        reasons = (one for one in self.reasons if one.field not in besides)
        return tuple(str(one) for one in reasons if not one.field.startswith(("datasets", "tasks")))

    def __str__(self) -> str:
        listed = "; ".join(map(str, self.reasons))
        return f"{self.standing}: {listed}" if listed else self.standing

    @property
    def lines(self) -> list[str]:
        """The same for people: one line, or one for each of several reasons below the standing, indented."""
        if len(self.reasons) < 2:
            return [str(self)]
        return [f"{self.standing}:", *(f"  {reason}" for reason in self.reasons)]

    def to_json(self) -> dict[str, Any]:
        """`{"standing": …, "reasons": [{"field", "why", "certain"}]}`."""
        return {"standing": self.standing, "reasons": [asdict(reason) for reason in self.reasons]}


PLAYED = {
    "agents.kwargs.rehearsal": "a script answered in the models' place",
    "agents.kwargs.replay": "a cassette answered in the models' place",
}

UNSAID = Verdict((Reason("record", "the job's record says nothing of it", certain=False),))


def verdict(config: Mapping[str, Any]) -> Verdict:
    """The verdict on a JobConfig of Harbor, whether its defaults are filled in or left out."""
    agent = _first(config.get("agents"))
    if played := [*_unmeasured(agent)]:
        return Verdict(tuple(played))
    sections = {"": config, "agents": agent} | {name: _table(config, name) for name in ("environment", "verifier")}
    found = [*_changes(config, sections), *_environment(sections["environment"]), *_tasks(config)]
    attempts = config.get(ATTEMPTS) or 1
    if attempts < LEAST_ATTEMPTS:
        found.append(_too_few(attempts))
    return Verdict((*found, *_unsure(sections)))


def together(verdicts: Sequence[Verdict], attempts: int) -> Verdict:
    """The verdict on jobs that are merged: their attempts add up to at least so many of each task.

    One that ran the whole dataset is completed by others that ran a part of it.
    """
    whole = any(not any(reason.field in PART for reason in one.reasons) for one in verdicts)
    found = dict.fromkeys(reason for one in verdicts for reason in one.reasons if reason.field != ATTEMPTS)
    kept = [reason for reason in found if not (whole and reason.field in PART)]
    return Verdict((*kept, *([_too_few(attempts)] if attempts < LEAST_ATTEMPTS else ())))


def changes(config: Mapping[str, Any]) -> list[Reason]:
    """What replaces the tasks' own times, resources or network in a job's or a trial's configuration."""
    sections = {name: _table(config, name) for name in ("environment", "verifier")}
    return [*_changes(config, sections | {"agents": _first(config.get("agents")) or _table(config, "agent")})]


def read(raw: Any) -> Verdict:
    """The verdict in a record; UNSAID where there is none that can be read."""
    listed = raw.get("reasons") if isinstance(raw, dict) else None
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        return UNSAID
    return Verdict(
        tuple(Reason(str(one.get("field")), str(one.get("why")), bool(one.get("certain"))) for one in listed)
    )


def _unmeasured(agent: Mapping[str, Any]) -> Iterator[Reason]:
    if agent.get("name") in MODELLESS:
        yield Reason("agents.name", f"Harbor's {agent['name']} asks no model")
    kwargs = _table(agent, "kwargs")
    yield from (Reason(field, why) for field, why in PLAYED.items() if kwargs.get(field.rpartition(".")[2]))


def _changes(config: Mapping[str, Any], sections: Mapping[str, Mapping[str, Any]]) -> Iterator[Reason]:
    for name in MULTIPLIERS:
        factor = config.get(name)
        if factor is not None and factor != 1:
            yield Reason(name, f"{factor}, and a board wants 1")
    for section, names in CHANGED.items():
        for name in names:
            if value := _given(sections[section].get(name)):
                yield Reason(f"{section}.{name}", f"{value}, and a board wants the task's own")
    for name in ("cpu_enforcement_policy", "memory_enforcement_policy"):
        policy = sections["environment"].get(name)
        if policy not in (None, "auto"):
            yield Reason(f"environment.{name}", f"{policy}, and a board wants the limits kept as a task has them")
    if config.get("override_error_policy"):
        yield Reason("override_error_policy", "it changes what counts as a score")


def _environment(environment: Mapping[str, Any]) -> Iterator[Reason]:
    if place := environment.get("import_path"):
        what = "the sandbox has the host's userland and no limits" if "sandbox" in place else f"{place} is not Harbor's"
        yield Reason("environment.import_path", what)
    for mount in environment.get("mounts") or ():
        target = str(mount.get("target"))
        if not (mount.get("read_only") and target.startswith(f"{PLACE}/")):
            yield Reason("environment.mounts", f"{target} brings something of the host's into the tasks' containers")
    for path in environment.get("extra_docker_compose") or ():
        if str(path) not in OWN_OVERLAYS:
            yield Reason("environment.extra_docker_compose", f"{path} changes the tasks' containers")


def _tasks(config: Mapping[str, Any]) -> Iterator[Reason]:
    if tasks := config.get("tasks"):
        yield _local("tasks", _first(tasks).get("path"))
    for dataset in config.get("datasets") or ():
        yield from _dataset(dataset)


def _dataset(dataset: Mapping[str, Any]) -> Iterator[Reason]:
    if dataset.get("path"):
        yield _local("datasets.path", dataset["path"])
        return
    for field in sorted(PART):
        if value := _given(dataset.get(field.rpartition(".")[2])):
            yield Reason(field, f"{value} is a part of the dataset, and a board wants the whole")
    name, ref = dataset.get("name"), dataset.get("ref")
    if not ref:
        yield Reason("datasets.version", f"{name} is given without the digest of what is in it", certain=False)
    elif not PINNED.fullmatch(str(ref)):
        yield Reason("datasets.ref", f"{ref} may be something else tomorrow: pin it, as in -d {name}@sha256:DIGEST")


def _local(field: str, path: Any) -> Reason:
    return Reason(
        field, f"{path} is a local copy: a board takes its dataset by name and digest (-d NAME@sha256:DIGEST)"
    )


def _unsure(sections: Mapping[str, Mapping[str, Any]]) -> Iterator[Reason]:
    for section, names in UNSURE.items():
        for name in names:
            if _given(sections[section].get(name)) and not (name == "kwargs" and sections[section].get("import_path")):
                field = f"{section}.{name}" if section else name
                yield Reason(field, "whether a board takes that, only the board can say", certain=False)


def _too_few(attempts: int) -> Reason:
    return Reason(ATTEMPTS, f"{attempts} of each task, and a board wants at least {LEAST_ATTEMPTS}")


def _given(value: Any) -> Any:
    """The value, or None where it is a default that says nothing."""
    return None if value is None or value is False or value in ([], {}, ()) else value


def _first(listed: Any) -> Mapping[str, Any]:
    first = listed[0] if isinstance(listed, list) and listed else {}
    return first if isinstance(first, dict) else {}


def _table(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = config.get(name)
    return table if isinstance(table, dict) else {}
