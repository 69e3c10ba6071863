"""What a cassette means for a plan: its tasks and attempts, its endpoints without keys, and what doesn't go with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench.baseline import asks_model
from bench.errors import InvalidInput, Problem
from bench.faults import Faults, no_effect, shown
from bench.planning.baselines import cassette_problems
from bench.planning.dataset import Task
from bench.planning.selection import as_harbor_matches

if TYPE_CHECKING:
    from bench.condition import Condition
    from bench.planning.options import Options
    from bench.planning.selection import Selection


@dataclass(frozen=True)
class Replay:
    """A cassette to be played. `attempts` is how many there are at each task, by name; `sha256` is the file's."""

    path: Path
    sha256: str
    condition: str
    condition_sha256: str
    rehearsal: str | None
    attempts: Mapping[str, int]


def read(options: Options, faults: Faults) -> Replay | None:
    """The cassette that `--replay` names; None where none is, or it can't be played, which is then told."""
    if options.replay is None:
        return None
    faults += _combinations(options)
    path = options.replay
    return faults.catch(lambda: _read(path))


def cassette_of(named: Path, jobs_dir: Path) -> Path:
    """The cassette that is meant: a file, or that of a job, by the job's directory or name."""
    from bench.gateway.cassette import FILE_NAME

    job = next((directory for directory in (jobs_dir / named, named) if directory.is_dir()), None)
    return job / FILE_NAME if job else named


def _read(path: Path) -> Replay:
    from bench.gateway import cassette

    found = cassette.read(path)
    if not found.calls:
        raise InvalidInput.of(shown(path), "there is no call on this cassette", "record another with --record")
    header = found.header
    return Replay(
        path.absolute(), found.sha256, header.condition, header.condition_sha256, header.rehearsal, found.attempts
    )


def _combinations(options: Options) -> Iterator[Problem]:
    """Options that have no place in a replay."""
    if options.uploads:
        yield Problem("--upload", "a replay measures nothing and can't be uploaded", "leave out one of the two")
    given = {
        "--record": options.record,
        "--rehearsal": options.rehearsal,
        "--endpoint-config": options.endpoint_config,
    }
    yield from no_effect("--replay", "the cassette answers", given)
    yield from cassette_problems("--replay", options.agent)


def narrowed(selection: Selection | None, found: Replay | None, options: Options, faults: Faults) -> Selection | None:
    """The selection without tasks that were not recorded; one that was asked for by name is a problem."""
    if selection is None or found is None:
        return selection
    where = shown(found.path)
    if selection.registry:
        if options.dataset is None:
            faults.append(Problem("--replay", "which dataset it is of isn't on a cassette", "give --path or --dataset"))
        names = tuple(as_harbor_matches(name, selection.registry) for name in found.attempts)
        return selection if options.include else replace(selection, include=names)
    missing = [task.name for task in selection.tasks if task.name not in found.attempts]
    tasks = tuple(task for task in selection.tasks if task.name in found.attempts)
    if options.include and missing:
        faults.append(Problem("--include-task", f"{', '.join(missing)} is not on the cassette {where}"))
    elif selection.tasks and not tasks:
        faults.append(
            Problem(where, "none of the selected tasks is on it", f"it has {', '.join(sorted(found.attempts))}")
        )
    return replace(selection, tasks=tasks)


def with_attempts(options: Options, tasks: tuple[Task, ...], found: Replay | None, faults: Faults) -> Options:
    """The options with the recorded number of attempts, by default the most that all tasks have."""
    if found is None:
        return options
    recorded = {name: number for name, number in found.attempts.items() if name in {t.name for t in tasks} or not tasks}
    if not recorded:
        return options
    fewest = min(recorded.values())
    wanted = faults.number("--attempts/-k", options.attempts)
    if wanted and wanted > fewest:
        short = ", ".join(f"{number} at {name}" for name, number in recorded.items() if number < wanted)
        faults.append(Problem("--attempts/-k", f"{wanted} attempts were not recorded: {short}", f"give -k {fewest}"))
    return replace(options, attempts=options.attempts or fewest)


def problems(condition: Condition, found: Replay) -> Iterator[Problem]:
    """Whether the condition is the one that was recorded."""
    if condition.sha256 != found.condition_sha256:
        what = f"was recorded with the condition {found.condition} ({found.condition_sha256[:12]}), and this is"
        same = " by the same name, changed since" if condition.name == found.condition else ""
        # Those of a baseline go by its name.
        fix = "give its --manifest"
        if asks_model(found.condition) and not condition.soloist:
            fix = f"give --agent {found.condition} and its --manifest"
        elif condition.soloist and not asks_model(found.condition):
            fix = "leave --agent out, and give its --manifest"
        yield Problem(shown(found.path), f"{what} {condition.name} ({condition.sha256[:12]}){same}", fix)
