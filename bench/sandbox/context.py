"""What COPY takes from a task's environment directory, and what a start has to do in which order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.sandbox.dockerfile import Copy, Directory, Dockerfile, Run
from bench.sandbox.layout import Layout
from bench.sandbox.words import Unsupported


@dataclass(frozen=True)
class Member:
    """A file, a directory with all below it, or (`source` None) an empty directory, and its path inside."""

    source: Path | None
    target: str


def contents(directory: Path, target: str) -> list[Member]:
    """`target` as a directory that holds what is in `directory`; one that is there already keeps its own rights."""
    return [Member(None, target), *(Member(child, f"{target}/{child.name}") for child in sorted(directory.iterdir()))]


def leading_directories(plan: Dockerfile) -> tuple[str, ...]:
    """The directories that can be there from the start, because no RUN comes before them."""
    found = []
    for step in plan.steps:
        if isinstance(step, Run):
            break
        if isinstance(step, Directory):
            found.append(step.path)
    return tuple(dict.fromkeys(found))


def layers(plan: Dockerfile, directory: Path, layout: Layout) -> Iterator[list[Member] | Run]:
    """What is left to do after the layout, in order: members to bring in together, and commands to run.

    Raises Unsupported for a COPY of what isn't there, or lies outside `directory`.
    """
    waiting: list[Member] = []
    known: set[str] = set()
    for step in plan.steps:
        if isinstance(step, Run):
            if waiting:
                yield waiting
            yield step
            waiting = []
        elif isinstance(step, Copy):
            waiting += copied(step, directory, into=step.target in known or layout.is_directory(step.target))
        elif not layout.is_directory(step.path):
            waiting.append(Member(None, step.path))
        if isinstance(step, Directory):
            known.add(step.path)
    if waiting:
        yield waiting


def copied(step: Copy, directory: Path, *, into: bool = False) -> list[Member]:
    """What one COPY takes; `into` where its target is known to be a directory. Raises Unsupported as `layers` does."""
    root = directory.resolve()
    members = []
    for source in step.sources:
        found = sorted(directory.glob(source)) if any(c in source for c in "*?[") else [directory / source]
        for path in found:
            real = path.resolve()
            if not real.is_relative_to(root):
                raise Unsupported(f"COPY: {source} lies outside the task's environment directory")
            if not real.exists():
                found = []
            elif real.is_dir() or not (into or step.into or len(found) > 1):
                members.append(Member(real, step.target))
            else:
                members.append(Member(real, f"{step.target}/{path.name}"))
        if not found:
            raise Unsupported(f"COPY: there is no {source} in the task's environment directory")
    return members
