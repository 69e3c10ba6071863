"""Tasks on disk: which directories are tasks, what they say of themselves, what is wrong, and which are meant."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.errors import InvalidInput, Problem
from bench.nearest import did_you_mean, similar_path
from bench.planning import tasksteps
from bench.reading import textfile, tomlfile, wording
from bench.reading.wording import Described
from bench.reading.yamlfile import Document
from bench.scoring import judge

LAYERS = ("regression", "workflow")
"""`[metadata].evaluation_layer` of a task under `buzz-dataset/` (SEED.md row C3)."""

OWN_METADATA = {
    "evaluation_layer": Described(
        " or ".join(f"`{layer}`" for layer in LAYERS),
        "needed in `buzz-dataset/`",
        "Was the chat used right, or was a piece of work done together? `--layer` selects by it.",
    ),
    "needs_members": Described(
        "a list of names",
        "",
        "Whom the task calls on by name: a condition without them is refused. `[]` says that any team will do, one "
        "agent alone among them: then scripts may have parts for members whom a roster lacks.",
    ),
}
"""What Buzzbench reads of `[metadata]`, which is anybody's."""

ALMOST = 0.8
"""difflib's ratio from which on a field of `[metadata]` is one of ours, mistyped."""

TASK_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]*/[a-zA-Z0-9][a-zA-Z0-9._-]*")
"""What Harbor takes as `[task].name` (HARBOR.md section 2.2); it refuses any other name, and one with `..`."""

ABOVE_0 = (
    ("verifier", "timeout_sec"),
    ("environment", "build_timeout_sec"),
    ("environment", "cpus"),
    ("environment", "memory_mb"),
    ("environment", "storage_mb"),
)
VERIFIERS = ("test.sh", "test.bat", "Dockerfile", "docker-compose.yaml")
"""Any of which, below tests/, Harbor takes for a verifier: a script, or an image that brings its own."""

CANARY = re.compile(r"\s*(#|<!--).*canary", re.IGNORECASE)
"""A line of an instruction for those who train models, which Harbor keeps from agents."""


@dataclass(frozen=True)
class Step:
    """One of a task's `[[steps]]`. What it doesn't say itself is the task's; a timeout of None means no limit."""

    name: str
    agent_timeout_s: float | None = None
    agent_user: str | int | None = None


@dataclass(frozen=True)
class Task:
    """One task directory, resolved. `name` is `[task].name`, else the directory's name."""

    name: str
    directory: Path
    layer: str | None = None
    """Its evaluation layer; None outside `buzz-dataset/`."""
    needs_members: tuple[str, ...] = ()
    """`[metadata].needs_members`: whom of the team the task calls on by name."""
    for_any_team: bool = False
    """Whether that is said to be nobody: its scripts may have parts for several teams, one agent alone among them."""
    agent_timeout_s: float | None = None
    """`[agent].timeout_sec`; None means that the task sets no limit."""
    environment: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """`[environment]`, as it stands in task.toml."""
    verifier_environments: tuple[tuple[Path, Mapping[str, Any]], ...] = field(default=(), repr=False)
    """`[verifier.environment]` of the task and of its steps, each with the directory that is its build context."""
    network_modes: tuple[str | None, ...] = ()
    """What environment, agent and verifier declare as `network_mode`, and those of its steps; None where unsaid."""
    users: tuple[str | int | None, ...] = ()
    """The users that agent and verifier run as, and those of its steps; None where unsaid."""
    steps: tuple[Step, ...] = ()
    """Its `[[steps]]`, none for an ordinary task."""
    prior: str | None = None
    """The file, below its directory, with a conversation that an agent is to go on with; None where there is none."""
    has_solution: bool = False
    """Whether Harbor's oracle finds one: for the task, or for each of its steps."""
    named_at: str = ""
    """Where its name stands, as messages name the place."""
    problems: tuple[Problem, ...] = ()
    notes: tuple[Problem, ...] = ()
    """What it says or has without any effect; none are looked for where it has problems."""

    @property
    def step_users(self) -> tuple[str | int | None, ...]:
        """As whom the agent runs in each step."""
        return tuple(step.agent_user for step in self.steps)


@dataclass(frozen=True)
class Dataset:
    """The tasks under a path, by directory name. `single` means that the path is itself a task."""

    path: Path
    single: bool
    buzz: bool
    tasks: tuple[Task, ...]


def read(path: Path, buzz_root: Path) -> Dataset:
    """The tasks at a path: a task, or a folder of them (one level). Raises InvalidInput where there are none.

    Under `buzz_root` they are Buzz tasks, which say their name and layer. What is wrong with a task is in its
    `problems`; nothing of the path is imported, run or written.
    """
    shown, resolved = str(path), path.resolve()
    if not resolved.exists():
        raise InvalidInput.of(shown, "no such path", similar_path(path, buzz_root.parent, among=Path.is_dir))
    if not resolved.is_dir():
        raise InvalidInput.of(shown, "is a file; give a task's directory, or a folder of tasks")
    buzz = resolved.is_relative_to(buzz_root.resolve())
    single = (resolved / "task.toml").is_file()
    try:
        entries = [resolved] if single else sorted(resolved.iterdir())
    except OSError as error:
        raise InvalidInput.of(shown, f"can't be read: {error.strerror}") from None
    directories = [entry for entry in entries if (entry / "task.toml").is_file()]
    if not directories:
        below = next(iter(sorted(resolved.glob("*/*/task.toml"))), None)
        fix = f"tasks are looked for one level down: is it {path / below.parent.parent.name}" if below else ""
        raise InvalidInput.of(shown, "no tasks found: neither a task.toml in it nor in a directory of it", fix)
    tasks = tuple(_task(directory, path if single else path / directory.name, buzz) for directory in directories)
    return Dataset(resolved, single, buzz, tuple(_with_duplicates(tasks, path)))


def _task(directory: Path, shown: Path, buzz: bool) -> Task:
    file = f"{shown / 'task.toml'}"
    try:
        document = tomlfile.read(directory / "task.toml", shown=file)
        if not document.data:
            fix = 'begin it with [task] and its name, such as name = "buzz/hello"'
            raise InvalidInput.of(file, "is empty", fix)
    except InvalidInput as error:
        return Task(directory.name, directory, problems=error.problems)
    values = document.data
    steps = tasksteps.sound(values)
    phases = [_table(part, phase) for part in (values, *steps) for phase in ("agent", "verifier")]
    name, layer = _get(values, "task", "name"), _get(values, "metadata", "evaluation_layer")
    needs, timeout = _get(values, "metadata", "needs_members"), _get(values, "agent", "timeout_sec")
    problems = [*_name_faults(document, name, buzz), *_file_faults(directory, shown, values)]
    problems += [*_metadata_faults(document), *_layer_faults(document, layer, buzz), *_needs_faults(document, needs)]
    problems += [*_number_faults(document), *_user_faults(directory), *_judge_faults(directory, shown, steps)]
    if timeout is not None and not tasksteps.is_above_0(timeout):
        what = f"{wording.shown(timeout)} is no number of seconds above 0"
        problems.append(document.problem(("agent", "timeout_sec"), what))
        timeout = None
    problems += tasksteps.faults(document, directory)
    return Task(
        name=name if isinstance(name, str) and name else directory.name,
        directory=directory,
        layer=layer if buzz and layer in LAYERS else None,
        needs_members=_names(needs),
        for_any_team=needs == [],
        agent_timeout_s=timeout,
        environment=_table(values, "environment"),
        verifier_environments=tuple(_verifier_environments(directory, values, steps)),
        network_modes=(_network(values), *(phase.get("network_mode") for phase in phases)),
        users=tuple(phase.get("user") for phase in phases),
        steps=tuple(_step(step, timeout, _get(values, "agent", "user")) for step in steps),
        prior=next(_priors(directory, steps), None),
        has_solution=_has_solution(directory, values),
        named_at=document.problem(("task", "name"), "").where,
        problems=tuple(dict.fromkeys(problems)),
        notes=() if problems else tuple(tasksteps.idle(document, directory, shown)),
    )


def _table(values: dict[str, Any], section: str) -> dict[str, Any]:
    table = values.get(section)
    return table if isinstance(table, dict) else {}


def _get(values: dict[str, Any], section: str, key: str) -> Any:
    return _table(values, section).get(key)


def _step(step: dict[str, Any], timeout_s: float | None, user: str | int | None) -> Step:
    """The step; timeout and user are the task's."""
    own_s, own = _get(step, "agent", "timeout_sec"), _get(step, "agent", "user")
    return Step(str(step["name"]), own_s if tasksteps.is_above_0(own_s) else timeout_s, user if own is None else own)


def _verifier_environments(
    directory: Path, values: dict[str, Any], steps: Sequence[dict[str, Any]]
) -> Iterator[tuple[Path, dict[str, Any]]]:
    for part, place in ((values, directory), *((step, directory / "steps" / str(step["name"])) for step in steps)):
        if environment := _table(_table(part, "verifier"), "environment"):
            yield place / "tests", environment


def _priors(directory: Path, steps: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Where Harbor looks for a conversation to go on with: beside the first instruction."""
    file = Path("steps", str(steps[0]["name"]), "trajectory.json") if steps else Path("trajectory.json")
    if (directory / file).is_file():
        yield str(file)


def _name_faults(document: Document, name: Any, buzz: bool) -> Iterator[Problem]:
    if name is None:
        if buzz:
            yield document.problem(("task", "name"), "is missing", "give it a name such as buzz/hello")
    elif not isinstance(name, str) or not TASK_NAME.fullmatch(name) or ".." in name:
        fix = "its form is org/name, such as buzz/hello"
        yield document.problem(("task", "name"), f"{wording.shown(name)} is no task name", fix)


def _metadata_faults(document: Document) -> Iterator[Problem]:
    """Fields that only a slip of the pen keeps from being ours. The others are the task's own business."""
    metadata = document.data.get("metadata", {})
    if not isinstance(metadata, dict):
        yield document.problem(
            ("metadata",), f"{wording.shown(metadata)} is no table", "it begins with a line [metadata]"
        )
        return
    for name in metadata.keys() - set(OWN_METADATA):
        if meant := did_you_mean(name, OWN_METADATA, cutoff=ALMOST):
            yield document.problem(("metadata", name), "unknown field", meant)


def _layer_faults(document: Document, layer: Any, buzz: bool) -> Iterator[Problem]:
    if layer not in LAYERS and (buzz or layer is not None):
        what = "is missing" if layer is None else f"unknown layer {wording.shown(layer)}"
        yield document.problem(("metadata", "evaluation_layer"), f"{what}; it is {' or '.join(LAYERS)}")


def _needs_faults(document: Document, needs: Any) -> Iterator[Problem]:
    if needs not in (None, []) and not _names(needs):
        what = f"{wording.shown(needs)} is no list of names"
        yield document.problem(("metadata", "needs_members"), what, 'its form is ["worker-1"], or [] for any team')


def _names(value: Any) -> tuple[str, ...]:
    """The names in a list of nothing else, else none."""
    return tuple(value) if isinstance(value, list) and all(isinstance(name, str) and name for name in value) else ()


def _file_faults(directory: Path, shown: Path, values: dict[str, Any]) -> Iterator[Problem]:
    """What makes Harbor leave a directory out without a word (HARBOR.md section 2.1)."""
    if not (directory / "environment").is_dir() and not _get(values, "environment", "docker_image"):
        what = "has neither an environment/ directory nor [environment].docker_image"
        yield Problem(str(shown), what, "say in environment/Dockerfile what the team works in")
    own_image = _table(_table(values, "verifier"), "environment").get("docker_image")
    judged = own_image or any((directory / "tests" / name).is_file() for name in VERIFIERS)
    if values.get("steps"):
        for step in tasksteps.sound(values):
            yield from _step_file_faults(Path("steps", str(step["name"])), directory, shown, step, judged=bool(judged))
        return
    yield from _instruction_faults(Path(), directory, shown)
    if not judged:
        yield Problem(str(shown), "has no tests/test.sh", "it writes 1 or 0 into /logs/verifier/reward.txt")


def _step_file_faults(
    place: Path, directory: Path, shown: Path, step: dict[str, Any], *, judged: bool
) -> Iterator[Problem]:
    """The same of a step: it has its own instruction, and its own verifier or the task's."""
    if not (directory / place).is_dir():
        return  # `tasksteps.faults` says so.
    yield from _instruction_faults(place, directory, shown)
    own_image = _table(_table(step, "verifier"), "environment").get("docker_image")
    if not judged and not own_image and not any((directory / place / "tests" / name).is_file() for name in VERIFIERS):
        yield Problem(str(shown), f"has no {place}/tests/test.sh, nor a tests/test.sh for all steps")


def _instruction_faults(place: Path, directory: Path, shown: Path) -> Iterator[Problem]:
    file = directory / place / "instruction.md"
    if not file.is_file():
        yield Problem(str(shown), f"has no {place / file.name}", "say in it what is to be done")
        return
    where = str(shown / place / file.name)
    try:
        text = textfile.text(file, what="instruction", where=where)
    except InvalidInput as error:
        yield from error.problems
    else:
        if all(CANARY.match(line) or not line.strip() for line in text.splitlines()):
            yield Problem(where, "is empty", "say in it what is to be done")


def _judge_faults(directory: Path, shown: Path, steps: Sequence[dict[str, Any]]) -> tuple[Problem, ...]:
    """What is wrong with its judges, as far as that can be said without running them."""
    names = [None, *(str(step["name"]) for step in steps)]
    return tuple(dict.fromkeys(fault for name in names for fault in judge.faults(directory, shown, name)))


def _user_faults(directory: Path) -> tuple[Problem, ...]:
    """What is wrong with what the user of a task answers."""
    if not (directory / "user.yaml").exists():
        return ()
    from bench import useranswers

    try:
        useranswers.load(directory)
    except InvalidInput as error:
        return error.problems
    return ()


def _number_faults(document: Document) -> Iterator[Problem]:
    """Numbers that Harbor takes and nobody can mean. What is no number is Harbor's to say."""
    for section, key in ABOVE_0:
        number = _get(document.data, section, key)
        if isinstance(number, int | float) and not tasksteps.is_above_0(number):
            yield document.problem((section, key), f"{wording.shown(number)} is not above 0")


def _has_solution(directory: Path, values: dict[str, Any]) -> bool:
    places = [directory / "steps" / step["name"] for step in tasksteps.sound(values)]
    return any(
        folders and all((folder / "solution" / "solve.sh").is_file() for folder in folders)
        for folders in ([directory], places)
    )


def _network(values: dict[str, Any]) -> str | None:
    """The environment's mode; `allow_internet` is what older tasks say (HARBOR.md section 2.2)."""
    if mode := _get(values, "environment", "network_mode"):
        return str(mode)
    allowed = _get(values, "environment", "allow_internet")
    return None if allowed is None else "public" if allowed else "no-network"


def _with_duplicates(tasks: Sequence[Task], shown: Path) -> Iterator[Task]:
    first: dict[str, Task] = {}
    for task in tasks:
        other = first.setdefault(task.name, task)
        if other is task:
            yield task
            continue
        where = task.named_at or str(shown / task.directory.name / "task.toml")
        problem = Problem(where, f"[task].name: {task.name} is also the name of {other.directory.name}")
        yield replace(task, problems=(*task.problems, problem))
