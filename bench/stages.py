"""Tasks that check before they run: the Task class and the Executor of this collection.

Invoke expands all calls of a command line, then executes them. `PlanExecutor` uses that moment:

1. every task's `check` runs, all of them, before any body, and their problems are reported together;
2. a task's `plan` gives its pre-tasks their arguments, or leaves one out by returning None;
3. a task named on the command line and implied by another runs once, with the arguments of both.

`invoke.yaml` names the executor, so it holds for `./inv` and for plain `inv`.
"""

from __future__ import annotations

import errno
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from invoke import Call, Collection, Config, Executor, Exit, Task
from invoke.parser import Argument
from invoke.parser.parser import ParseMachine

from bench import settings
from bench.errors import BuzzbenchError, Problem, Problems, raise_problems
from bench.nearest import did_you_mean

type Check = Callable[..., object]
type Plan = Callable[..., Mapping[str, Any] | None]


DISK = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space",
    errno.EROFS: "make it writable, or choose another place",
    errno.EACCES: "give this user the right, or choose another place",
    errno.EPERM: "give this user the right, or choose another place",
    errno.EIO: "the disk reports a fault",
    errno.EMFILE: "raise the limit of open files (`ulimit -n`)",
}
"""What a disk refuses whoever asks, and what to do. Any other failure of the system's is a fault of ours."""


class Stage(Task[Any]):
    """A task with `check(**arguments)`, `plan(pre_name, **arguments)` and short flags that never renumber.

    `kinds` convert an argument's text as it is parsed; their ValueError becomes a usage error.
    """

    def __init__(
        self,
        body: Callable[..., Any],
        *args: Any,
        check: Check | None = None,
        plan: Plan | None = None,
        kinds: Mapping[str, Callable[[str], Any]] | None = None,
        shorts: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        # Invoke's own short flags follow the order of parameters: one more parameter would rename them.
        super().__init__(body, *args, **(kwargs | {"auto_shortflags": False}))
        self.check = check
        self.plan = plan
        self.kinds = kinds or {}
        self.shorts = shorts or {}

    def get_arguments(self, ignore_unknown_help: bool | None = None) -> list[Argument]:
        arguments = super().get_arguments(ignore_unknown_help)
        for argument in arguments:
            name = argument.attr_name or argument.names[0]
            # Retagged instead of rebuilt: help texts show the kind that Invoke derived.
            argument.__class__ = CheckedArgument
            assert isinstance(argument, CheckedArgument)
            argument.convert = self.kinds.get(name)
            if name in self.shorts:
                argument.names = (*argument.names, self.shorts[name])
        return arguments

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The body, as the executor calls it; from elsewhere (public case 46) with all that comes before it, too."""
        if PlanExecutor.at_work:
            return super().__call__(*args, **kwargs)
        results = PlanExecutor(Collection(self), args[0].config).execute((self.name, kwargs))
        return results[self]


class CheckedArgument(Argument):
    """An argument whose bad value is a one-line usage error."""

    convert: Callable[[str], Any] | None = None

    def __repr__(self) -> str:
        # Invoke prints it within its own usage errors.
        return f"--{self.names[0]}"

    def set_value(self, value: Any, cast: bool = True) -> None:
        if cast and value == "" and self.takes_value:
            # Mostly a shell variable that is not set: what was meant is not what the default does.
            raise _usage(f"{self!r} is empty; give it a value, or leave it out")
        try:
            super().set_value(self.convert(value) if self.convert and cast else value, cast=cast and not self.convert)
        except ValueError as error:
            raise _usage(f"{self!r}: {error}") from None


def whole_number(text: str) -> int:
    """A whole number of at least 1, as `-k` and `-n` take it. Raises ValueError."""
    if not re.fullmatch(r"[0-9]{1,15}", text.strip()) or int(text) < 1:
        raise ValueError(f"{text!r} is no whole number of at least 1")
    return int(text)


class PlanExecutor(Executor):
    """Checks everything on the command line, then runs it; our exceptions become exit codes."""

    at_work: ClassVar[bool] = False
    """Whether some executor is running tasks now."""

    def execute(self, *tasks: Any) -> Any:
        if self.config.run.dry:
            raise _usage("--dry (-R) is Invoke's own and would run the tasks all the same; use `inv bench --dry-run`")
        PlanExecutor.at_work = True
        try:
            settings.configure(self.config.get("buzzbench", {}))
            return super().execute(*tasks)
        except BuzzbenchError as error:
            raise Exit(f"inv: {error}".replace("\n", "\ninv: "), code=error.exit_code) from error
        except KeyboardInterrupt:
            raise Exit("inv: interrupted", code=130) from None
        except OSError as error:
            if error.errno not in DISK:
                raise
            where = f"{error.filename}: " if error.filename else ""
            raise Exit(f"inv: {where}{error.strerror}; {DISK[error.errno]}", code=1) from error
        finally:
            PlanExecutor.at_work = False

    def expand_calls(self, calls: list[Any]) -> list[Call]:
        problems: list[Problem] = []
        expanded = self._expand(calls, problems)
        raise_problems(problems)
        return expanded

    def _expand(self, calls: Iterable[Any], problems: list[Problem]) -> list[Call]:
        named = [call if isinstance(call, Call) else Call(call) for call in calls]
        expanded: list[Call] = []
        for call in named:
            arguments = _bound(call)
            check, plan = getattr(call.task, "check", None), getattr(call.task, "plan", None)
            if check:
                try:
                    check(**arguments)
                except Problems as error:
                    problems += error.problems
                    continue
            pre = [before if isinstance(before, Call) else Call(before) for before in call.pre]
            if plan:
                planned = [(before.task, plan(before.task.name, **arguments)) for before in pre]
                pre = [Call(task, kwargs=dict(given)) for task, given in planned if given is not None]
            expanded += self._expand(pre, problems)
            expanded.append(call)
            expanded += self._expand(call.post, problems)
        return expanded

    def dedupe(self, calls: list[Call]) -> list[Call]:
        kept: dict[Task[Any], Call] = {}
        for call in calls:
            earlier = kept.get(call.task)
            if earlier is None:
                kept[call.task] = call
            else:
                earlier.kwargs = _merged(earlier, call)
        return list(kept.values())


def _merged(first: Call, second: Call) -> dict[str, Any]:
    """The arguments of two calls of one task: what only one of them sets holds, a contradiction is an error."""
    defaults = _defaults(first)
    merged = _bound(first)
    for name, value in _bound(second).items():
        if value in (defaults[name], merged[name]):
            continue
        if merged[name] != defaults[name]:
            raise _usage(
                f"{first.task.name}: --{name.replace('_', '-')} is both {merged[name]!r} and {value!r}; give it once"
            )
        merged[name] = value
    return merged


def _defaults(call: Call) -> dict[str, Any]:
    parameters = call.task.argspec(call.task.body).parameters
    found = {name: parameter.default for name, parameter in parameters.items()}
    assert inspect.Signature.empty not in found.values(), f"{call.task.name} has a positional argument"
    return {name: [] if default is None and name in call.task.iterable else default for name, default in found.items()}


def _bound(call: Call) -> dict[str, Any]:
    return _defaults(call) | call.kwargs


def _usage(message: str) -> Exit:
    return Exit(f"inv: {message}", code=2)


def _parse_error_as_usage(machine: ParseMachine, message: str) -> None:
    task = getattr(machine.context, "name", None)
    hint = f"inv --help {task}" if task else "inv --list"
    unknown = re.match(r"No idea what '(.*)' is!", message)
    raise _usage(f"{message.rstrip('.!')}{_why(machine, unknown[1]) if unknown else ''}; see `{hint}`")


def _why(machine: ParseMachine, unknown: str) -> str:
    """What a word that Invoke has no idea of may be meant for."""
    flags = getattr(machine.context, "flags", {})
    if unknown.startswith("-"):
        near = did_you_mean(unknown, flags)
        return near and f" ({near}?)"
    # A flag that has its value already takes no second one: Invoke then stumbles over the value.
    flag: Argument | None = machine.flag
    if flag and flag.got_value:
        return f" (is {flag!r} given twice?)" if flag.takes_value else f" ({flag!r} takes no value)"
    near = did_you_mean(unknown, machine.contexts)
    if near or not unknown:
        return near and f" ({near}?)"
    # What a task is about comes by an option, not as a word of its own.
    if "--job" in flags:
        return f" (did you mean --job {unknown}?)"
    return f" (did you mean --path {unknown}?)" if "--path" in flags and Path(unknown).exists() else ""


_load_project = Config.load_project


def _project_or_one_line(config: Config, merge: bool = True) -> None:
    """Invoke's own, but that a faulty invoke.yaml is one line."""
    try:
        _load_project(config, merge)
    except Exception as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        what = f"not valid YAML: {getattr(error, 'problem', '')}" if mark else "its sections are no mappings of fields"
        raise _usage(f"invoke.yaml{line}: {what}; `git checkout invoke.yaml` brings back Buzzbench's own") from None


# tests/conformance/test_invoke.py holds the assumption.
Config.load_project = _project_or_one_line  # type: ignore[method-assign,assignment]

# Invoke ends with 1 where the command line can't be parsed; the rest of the field, and we, with 2.
# tests/conformance/test_invoke.py holds the assumption.
ParseMachine.error = _parse_error_as_usage  # type: ignore[method-assign,assignment]
