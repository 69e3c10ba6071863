"""The host's own run of a task's judge over the host's copy of the evidence (DESIGN decision 9).

What a verifier says was said in an environment that the team could reach. The judgement of evidence is a pure
function in the task's `tests/judge.py`, so the host runs the same source over what it kept itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.errors import BuzzbenchError

JUDGE = Path("tests", "judge.py")
"""Below a task's directory, or below that of a step, which comes first: Harbor lays a step's tests over the task's."""


class JudgeError(BuzzbenchError):
    """A task's judge can't be run, or gave no verdict. The message names the file and the reason."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(what, where=str(path), fix="correct the task's judge")
        self.path = path


def host_checks(task_dir: Path, evidence: dict[str, Any], step: str | None = None) -> Mapping[str, bool] | None:
    """What the judge of the task, or of its step, says of the evidence: {check: holds}; None where there is no judge.

    The source is compiled and run in a namespace of its own: no search path is changed, no bytecode written.
    It runs with the caller's rights, so call this only for tasks of the project's own `buzz-dataset/`.
    Raises JudgeError.
    """
    path = task_dir / JUDGE
    if step is not None and (of_step := task_dir / "steps" / step / JUDGE).is_file():
        path = of_step
    try:
        source = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise JudgeError(path, f"it can't be read ({error.strerror})") from None
    namespace: dict[str, Any] = {"__name__": "judge", "__file__": str(path)}
    try:
        exec(compile(source, str(path), "exec"), namespace)  # noqa: S102  # the task's own source, see above
    except Exception as error:
        raise JudgeError(path, f"it can't be loaded ({_described(error)})") from error
    judge = namespace.get("judge")
    if not callable(judge):
        raise JudgeError(path, "it has no function judge(evidence)")
    try:
        checks = judge(evidence)
    except Exception as error:
        raise JudgeError(path, f"judge(evidence) raised {_described(error)}") from error
    return _checked(path, checks)


def _checked(path: Path, checks: object) -> dict[str, bool]:
    if not isinstance(checks, dict) or not checks:
        raise JudgeError(path, "judge(evidence) gave no checks: it must return {name: bool} with at least one")
    for name, holds in checks.items():
        if not isinstance(name, str) or not isinstance(holds, bool):
            raise JudgeError(path, f"judge(evidence) gave {name!r}: {holds!r}, not a name and a bool")
    return checks


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
