"""What killed runs left in the engine: containers, networks, volumes and images of trials that nobody runs any more.

Nothing of it goes away by itself: Harbor gives a repeated attempt another name (public case 55; HARBOR.md section 7.4).
A Compose project is such a left-over if its containers carry our label and the process that started them is gone, or
if its name begins with that of a trial in a job's journal whose run is gone. Nothing else is ever touched.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.docker.engine import DockerFailed, docker, inspect
from bench.docker.marks import PROCESS, PROJECT, STATE, Owner, state_label
from bench.run import left
from bench.run.claim import is_claimed
from bench.trial import journal


@dataclass(frozen=True)
class Leftover:
    """One Compose project. Containers, networks, volumes and images are ids or names, as the engine has them."""

    project: str
    containers: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    volumes: tuple[str, ...] = ()
    images: tuple[str, ...] = ()

    def __str__(self) -> str:
        counts = [
            f"{len(things)} {kind}{'s' if len(things) > 1 else ''}"
            for kind, things in (
                ("container", self.containers),
                ("network", self.networks),
                ("volume", self.volumes),
                ("image", self.images),
            )
            if things
        ]
        return f"{self.project}: {', '.join(counts)}"


@dataclass
class _Project:
    things: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    owners: list[Owner | None] = field(default_factory=list)
    """Of containers with our label; None for one that names no process."""


def find(state_dir: Path) -> list[Leftover]:
    """The left-overs of this installation, by name. Changes nothing. Raises DockerFailed."""
    projects = _projects(state_label(state_dir))
    prefixes = tuple(f"{project_name(trial)}__" for trial in _dead_trials(state_dir))
    return [
        Leftover(name, **{kind: tuple(found) for kind, found in project.things.items()})
        for name, project in sorted(projects.items())
        if name.startswith(prefixes) or (project.owners and all(o is not None and o.is_gone for o in project.owners))
    ]


def remove(leftovers: Sequence[Leftover]) -> list[str]:
    """Remove them, and return a line for each that could not be removed whole."""
    failed = []
    for leftover in leftovers:
        steps = (
            ("container", ["rm", "--force", "--volumes"], leftover.containers),
            ("network", ["rm"], leftover.networks),
            ("volume", ["rm", "--force"], leftover.volumes),
            ("image", ["rm"], leftover.images),
        )
        for kind, command, things in steps:
            try:
                if things:
                    docker(kind, *command, *things, timeout_s=60)
            except DockerFailed as error:
                failed.append(f"{leftover.project}: {error}")
    return failed


def clear(state_dir: Path) -> None:
    """Find and remove what killed runs left, and say so in a line each. Nothing where there is no engine to ask."""
    if not shutil.which("docker") or not state_dir.is_dir():
        return
    try:
        found = find(state_dir)
    except DockerFailed:
        return  # without an engine there are no containers either
    for leftover in found:
        print(f"removing what a killed run left: {leftover}", file=sys.stderr)
    for line in remove(found):
        print(f"could not be removed: {line}", file=sys.stderr)


def project_name(session: str) -> str:
    """The Compose project of Harbor's environment of that session id (its Docker environment makes it so)."""
    lowered = session.lower()
    return re.sub(r"[^a-z0-9_-]", "-", lowered if re.match(r"[a-z0-9]", lowered) else f"0{lowered}")


def _projects(ours: str) -> dict[str, _Project]:
    """Every Compose project of the engine with its things."""
    projects: dict[str, _Project] = defaultdict(_Project)
    for container in inspect("container", _ids("container", "ls", "--all")):
        labels = container["Config"]["Labels"]
        project = projects[labels[PROJECT]]
        project.things["containers"].append(container["Id"])
        if labels.get(STATE) == ours:
            project.owners.append(Owner.parse(labels.get(PROCESS, "")))
    for kind, key in (("network", "Id"), ("volume", "Name")):
        for thing in inspect(kind, _ids(kind, "ls")):
            projects[thing["Labels"][PROJECT]].things[f"{kind}s"].append(thing[key])
    for image in inspect("image", _ids("image", "ls")):
        projects[image["Config"]["Labels"][PROJECT]].things["images"].extend(image["RepoTags"] or [image["Id"]])
    return projects


def _ids(kind: str, *command: str) -> list[str]:
    return list(dict.fromkeys(docker(kind, *command, "--quiet", "--filter", f"label={PROJECT}").split()))


def _dead_trials(state_dir: Path) -> Iterator[str]:
    """The attempts that began and have no end, of jobs of this installation that nobody works on (`bench.run.left`)."""
    for path in (state_dir / "run").glob(f"*/{left.FILE_NAME}"):
        try:
            job = Path(json.loads(path.read_text(encoding="utf-8"))["directory"])
        except (OSError, ValueError, LookupError, TypeError):
            continue  # cut off by the kill, or just removed: containers still have their labels
        if not is_claimed(job):
            for attempt in journal.read(job / journal.FILE_NAME).unfinished:
                yield attempt.trial
