"""A task's `[[steps]]` as they stand in its task.toml: what is wrong with them, and what of the task they leave idle.

Harbor's own models say less, and later: what it passes over in silence would measure something else than was meant. A
contract test holds the rules that are Harbor's to its code.
"""

from __future__ import annotations

import functools
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.errors import InvalidInput, Problem
from bench.nearest import did_you_mean
from bench.reading import textfile, wording
from bench.reading.yamlfile import Document
from bench.trial.steps import DIRECTORY

FIELDS = ("name", "agent", "verifier", "min_reward", "healthcheck", "artifacts")
"""Harbor's `StepConfig`."""

TABLES = ("agent", "verifier", "healthcheck")
STRATEGY = "multi_step_reward_strategy"
STRATEGIES = ("mean", "final")
"""Harbor's `MultiStepRewardStrategy`."""

VERIFIER_S = 600.0
"""What a step's verifier has that says no `timeout_sec` of its own: Harbor never asks the task's."""

ALMOST = 0.8
"""difflib's ratio from which on an unknown field is one of Harbor's, mistyped."""

PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]{5,200}")
"""Of a step: of what is no such name Harbor is asked, whose import takes a while. Windows' devices are shorter."""

MOST_FILES = 1000
"""How many files are looked into for a reward's name; a task of more may have it in the others."""

IMAGES = ("Dockerfile", "docker-compose.yaml")
"""Below tests/: the verifier has an image of its own, which may write anything."""


def sound(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The steps whose name can be a directory's."""
    listed = values.get("steps")
    return [s for s in listed if isinstance(s, dict) and is_name(s.get("name"))] if isinstance(listed, list) else []


def is_above_0(number: Any) -> bool:
    """Whether it can be a number of seconds."""
    return isinstance(number, int | float) and not isinstance(number, bool) and 0 < number < math.inf


def is_name(value: Any) -> bool:
    """Whether Harbor takes it for a step's name: one directory's, on any system."""
    return isinstance(value, str) and (PLAIN_NAME.fullmatch(value) is not None or _is_harbors(value))


@functools.cache
def _is_harbors(name: str) -> bool:
    from harbor.models.task.step_name import validate_step_name

    try:
        validate_step_name(name)
    except ValueError:
        return False
    return True


def faults(document: Document, directory: Path) -> Iterator[Problem]:
    """What is wrong with the steps of the task in the directory, but for their instructions and tests."""
    yield from _strategy_faults(document)
    listed = document.data.get("steps")
    if listed is None or listed == []:
        return
    if not isinstance(listed, list):
        yield document.problem(("steps",), f"{wording.shown(listed)} is no list", "each step begins with [[steps]]")
        return
    names: dict[str, str] = {}
    for index, step in enumerate(listed):
        if not isinstance(step, dict):
            yield document.problem(("steps", index), f"{wording.shown(step)} is no table", "it begins with [[steps]]")
            continue
        yield from _name_faults(document, index, step.get("name"), directory, names)
        yield from _field_faults(document, index, step)
        yield from _threshold_faults(document, index, step, directory)


def _strategy_faults(document: Document) -> Iterator[Problem]:
    given = document.data.get(STRATEGY)
    if given is not None and given not in STRATEGIES:
        what = f"{wording.shown(given)} is not one of {' or '.join(STRATEGIES)}"
        yield document.problem((STRATEGY,), what, "final is the reward of the last step that was played")


def _name_faults(
    document: Document, index: int, name: Any, directory: Path, names: dict[str, str]
) -> Iterator[Problem]:
    """`names` are those before it, by what is left of them on a file system that knows no case."""
    field = ("steps", index, "name")
    if not is_name(name):
        what = "is missing" if name is None else f"{wording.shown(name)} is no name of a directory on every system"
        yield document.problem(field, what, f"it names the step's directory below {DIRECTORY}/")
        return
    key = unicodedata.normalize("NFC", name).casefold()
    if other := names.get(key):
        same = (
            "is an earlier step's name" if other == name else f"and {other} are one name to systems that know no case"
        )
        yield document.problem(field, f"{name} {same}", "give each step its own")
        return
    names[key] = name
    place = directory / DIRECTORY / name
    if not place.is_dir():
        below = directory / DIRECTORY
        there = [entry.name for entry in below.iterdir() if entry.is_dir()] if below.is_dir() else []
        yield document.problem(field, f"there is no directory {DIRECTORY}/{name}", did_you_mean(name, there))
    elif not all(path.resolve().is_relative_to(directory.resolve()) for path in (place, place / "instruction.md")):
        yield document.problem(field, f"{DIRECTORY}/{name} is a link that leaves the task", "copy it in")


def _field_faults(document: Document, index: int, step: Mapping[str, Any]) -> Iterator[Problem]:
    for field in step.keys() - set(FIELDS):
        if meant := did_you_mean(field, FIELDS, cutoff=ALMOST):
            yield document.problem(("steps", index, field), "unknown field", meant)
    for table in TABLES:
        given = step.get(table, {})
        if not isinstance(given, dict):
            what = f"{wording.shown(given)} is no table"
            yield document.problem(("steps", index, table), what, f"it begins with [steps.{table}]")
        elif "timeout_sec" in given and not is_above_0(given["timeout_sec"]):
            what = f"{wording.shown(given['timeout_sec'])} is no number of seconds above 0"
            yield document.problem(("steps", index, table, "timeout_sec"), what)


def _threshold_faults(document: Document, index: int, step: Mapping[str, Any], directory: Path) -> Iterator[Problem]:
    """Of `min_reward`, below which no further step is played: a number, or one for each of several rewards."""
    given = step.get("min_reward")
    if given is None:
        return
    field = ("steps", index, "min_reward")
    if given == {}:
        yield document.problem(field, "names no reward", "give a number, or such as {reward = 1.0}")
    parts = given.items() if isinstance(given, dict) else [("reward", given)]
    for name, least in parts:
        place = (*field, name) if isinstance(given, dict) else field
        if isinstance(least, bool) or not isinstance(least, int | float) or not math.isfinite(least):
            yield document.problem(place, f"{wording.shown(least)} is no finite number")
        elif name == "reward" and least > 1:
            what = f"{wording.shown(least)} is above 1, the most that a reward can be: no further step would be played"
            yield document.problem(place, what)
        elif name != "reward" and is_name(step.get("name")) and not _may_be_written(name, step, document, directory):
            what = "nothing of the task's tests or environment names such a reward: no further step would be played"
            yield document.problem(place, what, "mend the name; a comment in the tests that names it will do, too")


def _may_be_written(reward: str, step: Mapping[str, Any], document: Document, directory: Path) -> bool:
    """Whether the step's verifier may write a reward of that name, as far as the task's files tell."""
    tests = (directory / "tests", directory / DIRECTORY / step["name"] / "tests")
    images = [_of(part, "verifier", "environment", "docker_image") for part in (document.data, step)]
    if any(images) or any((place / name).is_file() for place in tests for name in IMAGES):
        return True
    files = (file for place in (*tests, directory / "environment") for file in place.rglob("*"))
    return any(number >= MOST_FILES or _names(file, reward) for number, file in enumerate(files))


def _names(file: Path, reward: str) -> bool:
    """Whether the file's name or content has the reward's name in it; what can't be read may have."""
    if reward in file.name:
        return True
    if not file.is_file():
        return False
    try:
        return reward.encode() in textfile.data(file, what="file")
    except InvalidInput:
        return True


def _of(values: Mapping[str, Any], *path: str) -> Any:
    found: Any = values
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def idle(document: Document, directory: Path, shown: Path) -> Iterator[Problem]:
    """What a task says or has that Harbor passes over in silence, with steps or for the want of them."""
    values = document.data
    for section, table in values.items():
        if isinstance(table, dict) and STRATEGY in table:
            what = f"has no effect in [{section}]"
            yield document.problem((section, STRATEGY), what, "write it above the first table")
    steps = sound(values)
    if not steps:
        if STRATEGY in values:
            yield document.problem((STRATEGY,), "has no effect, since the task has no steps")
        if not values.get("steps") and (directory / DIRECTORY).is_dir():
            yield Problem(str(shown / DIRECTORY), "has no effect, since task.toml has no [[steps]]")
        return
    yield from _idle_timeout(document, steps)
    last = len(steps) - 1
    if "min_reward" in steps[last]:
        what = "has no effect on the last step, after which none could be left out"
        yield document.problem(("steps", last, "min_reward"), what)
    yield from _idle_files(steps, directory, shown)


def _idle_timeout(document: Document, steps: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    given = _of(document.data, "verifier", "timeout_sec")
    without = [str(step["name"]) for step in steps if _of(step, "verifier", "timeout_sec") is None]
    if is_above_0(given) and given != VERIFIER_S and without:
        what = f"{given:g} s has no effect on the steps {', '.join(without)}, whose verifiers have {VERIFIER_S:g} s"
        yield document.problem(("verifier", "timeout_sec"), what, "say it in each step's [steps.verifier]")


def _idle_files(steps: Sequence[Mapping[str, Any]], directory: Path, shown: Path) -> Iterator[Problem]:
    names = [str(step["name"]) for step in steps]
    if (directory / "instruction.md").exists():
        yield Problem(str(shown / "instruction.md"), "has no effect: each of the task's steps has its own")
    for place in (Path(), *(Path(DIRECTORY, name) for name in names[1:])):
        if (directory / place / "trajectory.json").exists():
            what = "has no effect: a conversation to go on with is the first step's"
            yield Problem(str(shown / place / "trajectory.json"), what)
    for entry in sorted((directory / DIRECTORY).glob("*")):
        if entry.is_dir() and entry.name not in names:
            fix = did_you_mean(entry.name, names) or "add it to [[steps]]"
            yield Problem(str(shown / DIRECTORY / entry.name), "is no step of task.toml's", fix)
        elif (entry / "setup.sh").exists():
            place = shown / DIRECTORY / entry.name
            yield Problem(str(place / "setup.sh"), "has no effect there", "it belongs in the step's workdir/")
