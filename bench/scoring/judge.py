"""The host's own run of a task's judge over the host's copy of the evidence (DESIGN decision 9).

What a verifier says was said in an environment that the team could reach. The judgement of evidence is a pure
function in the task's `tests/judge.py`, so the host runs the same source over what it kept itself: that of the
project's own tasks in this process, anybody else's in a sandbox without network, or not at all.
"""

from __future__ import annotations

import functools
import json
import re
import stat
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.errors import BuzzbenchError, MachineLacks, Problem
from bench.scoring import judgement

JUDGE = Path("tests", "judge.py")
"""Below a task's directory, or below that of a step, which comes first: Harbor lays a step's tests over the task's."""

BESIDE = ("verify.py", "files.py")
"""What the tests of our own form have beside their judge: Python of the task's, too."""

EVIDENCE_IN_A_TASK = b"relay_evidence.json"
_OURS = re.compile(rb"\bjudge\s*\(\s*evidence\b")
_LARGEST_TEST_BYTES = 1_000_000

PATIENCE_S = 20.0
MEMORY_BYTES = 2 << 30
ANSWER_BYTES = 1 << 20
"""What a judge in a sandbox may use, and its answer: a judge of this dataset needs a hundredth of it."""


class JudgeError(BuzzbenchError):
    """A task's judge can't be run, or gave no verdict. The message names the file and the reason."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(what, where=str(path), fix="correct the task's judge")
        self.path, self.what = path, what


class NoSandbox(BuzzbenchError):
    """A judge that isn't the project's own, and no sandbox here to run it in."""

    def __init__(self, path: Path, why: str) -> None:
        what = f"this judge runs in a sandbox only, and there is none ({why}): the verifier's word stands unchecked"
        super().__init__(what, where=str(path))


def find(task_dir: Path, step: str | None = None) -> Path | None:
    """The judge of the task, or of its step. A `judge.py` of another kind, such as one that asks a model, is none.

    Ours has a function `judge(evidence)`, or its neighbours name the file that a verifier finds the evidence in.
    """
    places = [task_dir, *([task_dir / "steps" / step] if step else [])]
    path = next((place / JUDGE for place in reversed(places) if (place / JUDGE).exists()), None)
    if path is None or _OURS.search(_read(path)):
        return path
    beside = (file for place in places for file in sorted((place / JUDGE).parent.glob("*")))
    return path if any(EVIDENCE_IN_A_TASK in _read(file) for file in beside) else None


def _read(path: Path) -> bytes:
    try:
        found = path.stat()
        return path.read_bytes() if stat.S_ISREG(found.st_mode) and found.st_size <= _LARGEST_TEST_BYTES else b""
    except OSError:
        return b""


def faults(task_dir: Path, shown: Path, step: str | None = None) -> Iterator[Problem]:
    """What can be said of a judge, and of what is beside it, without running it; `shown` is the task in messages."""
    judge = find(task_dir, step)
    for path in [judge, *(judge.with_name(name) for name in BESIDE)] if judge else ():
        source = _read(path)
        if path != judge and not source:
            continue
        line, what = None, ""
        try:
            if "judge" not in _names(source) and path == judge:
                what = "has no function judge(evidence)"
        except SyntaxError as error:
            line, what = error.lineno, f"not valid Python: {error.msg}"
        except (ValueError, RecursionError, MemoryError) as error:
            what = f"not valid Python: {error}"
        if what:
            where = str(shown / path.relative_to(task_dir))
            yield Problem(f"{where}:{line}" if line else where, what)


@functools.cache
def _names(source: bytes) -> tuple[str, ...]:
    """What a module names. Raises what `compile` does.

    Compiled once: what the tasks of a dataset have beside their judges is mostly one text.
    """
    with warnings.catch_warnings(action="ignore"):
        return compile(source, "judge", "exec", dont_inherit=True).co_names


def is_own(path: Path, own_tasks: Path) -> bool:
    """Whether a judge is of the project's own tasks, wherever the names on its way lead."""
    return path.resolve().is_relative_to(own_tasks.resolve())


def host_checks(path: Path, evidence: Mapping[str, Any], *, own_tasks: Path) -> dict[str, bool]:
    """What the judge says of the evidence: {check: holds}. Raises JudgeError and NoSandbox.

    Only those below `own_tasks`, the project's, are run in this process, with its rights.
    """
    if not path.is_file():
        raise JudgeError(path, "it is no file")
    try:
        source = path.read_bytes()
    except OSError as error:
        raise JudgeError(path, f"it can't be read ({error.strerror})") from None
    try:
        if is_own(path, own_tasks):
            return judgement.checks(source, str(path), dict(evidence))
        return _apart(path, source, evidence)
    except judgement.Misjudged as error:
        raise JudgeError(path, str(error)) from error


def _apart(path: Path, source: bytes, evidence: Mapping[str, Any]) -> dict[str, bool]:
    """The same in a sandbox of its own. Raises Misjudged and NoSandbox."""
    from bench.sandbox import once, probe
    from bench.sandbox.launch import LaunchError

    program = ("python3", "-I", "-B", "-c", Path(judgement.__file__).read_text(encoding="utf-8"))
    given = json.dumps({"source": source.decode("latin-1"), "evidence": evidence})
    limits = once.Limits(PATIENCE_S, MEMORY_BYTES, ANSWER_BYTES)
    try:
        ran = once.run(probe.tools(), program, given, limits)
    except MachineLacks as error:
        raise NoSandbox(path, error.problems[0].what) from None
    except (LaunchError, OSError) as error:
        raise NoSandbox(path, " ".join(str(error).split())) from None
    if ran.code is None:
        raise judgement.Misjudged(f"judge(evidence) gave no checks within {PATIENCE_S:g} seconds")
    try:
        answer = json.loads(ran.out)
        if isinstance(answer, dict) and "misjudged" in answer:
            raise judgement.Misjudged(" ".join(str(answer["misjudged"]).split()))
        return judgement.checked(answer["checks"])
    except (ValueError, KeyError, TypeError, RecursionError):
        last = ran.errors.decode(errors="replace").strip().rpartition("\n")[2]
        ended = f"it ended with code {ran.code} and gave no checks"
        raise judgement.Misjudged(f"{ended} ({last})" if last else ended) from None
