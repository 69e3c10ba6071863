"""The dataset: whether its tasks are sound, and which one it is."""

from __future__ import annotations

import hashlib
from pathlib import Path

from bench.doctor.check import Check, Context, Found, of_problems
from bench.faults import shown
from bench.planning import dataset as datasets
from bench.planning import harbortask


def tasks(context: Context) -> Found:
    """All of them are sound; `inv validate` says more, and all of it."""
    found = datasets.read(context.dataset, context.root / "buzz-dataset")
    problems = [problem for task in found.tasks for problem in task.problems]
    problems += harbortask.problems(task for task in found.tasks if not task.problems)
    if problems:
        told = of_problems(problems)
        return Found("fail", told.detail, f"`inv validate --path {shown(context.dataset)}` names all faults")
    return Found("ok", f"{len(found.tasks)} sound in {shown(context.dataset)}")


def digest(context: Context) -> Found:
    """What names the dataset's content: two that have the same one are the same, wherever they are."""
    files = sorted(path for path in context.dataset.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return Found("ok", f"sha256 {content_sha256(context.dataset, files)}, {len(files)} files")


def content_sha256(root: Path, files: list[Path]) -> str:
    """The SHA-256 over a line for each file, in order: the SHA-256 of its content, and its path below the root."""
    whole = hashlib.sha256()
    for path in files:
        line = f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(root).as_posix()}\n"
        whole.update(line.encode())
    return whole.hexdigest()


CHECKS = (
    Check("dataset", tasks),
    Check("digest", digest, needs=("dataset",)),
)
