"""What killed runs left in the engine: containers, networks, volumes and images of trials that nobody runs any more.

Nothing of it goes away by itself: Harbor gives a repeated attempt another name (public case 55; HARBOR.md section 7.4).
A Compose project is such a left-over if its containers and networks carry our label and the process that started them
is gone, or if its name begins with that of a trial in a job's journal whose run is gone. Nothing else is ever touched.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from bench.docker.engine import DockerFailed, docker
from bench.docker.marks import PROCESS, PROJECT, STATE, Owner, project_name, state_label
from bench.records.claim import is_claimed
from bench.run import left
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


def find(state_dir: Path) -> list[Leftover]:
    """The left-overs of this installation, by name. Changes nothing. Raises DockerFailed."""
    things = _listed("containers", "networks")
    owners: dict[str, list[Owner | None]] = defaultdict(list)
    for thing in (*things["containers"], *things["networks"]):
        if thing.state == state_label(state_dir):
            owners[thing.project].append(Owner.parse(thing.process))
    gone = {project for project, known in owners.items() if all(owner and owner.is_gone for owner in known)}
    prefixes = tuple(f"{project_name(trial)}__" for trial in _dead_trials(state_dir))
    if not (gone or prefixes):
        return []
    things |= _listed("volumes", "images")
    known = {thing.project for kind in ("containers", "networks", "volumes") for thing in things[kind]}
    things["images"] = [replace(image, project=_project_of(image, known)) for image in things["images"]]
    projects = {thing.project for kind in things.values() for thing in kind}
    return [
        Leftover(name, **{kind: tuple(t.name for t in found if t.project == name) for kind, found in things.items()})
        for name in sorted(projects)
        if name in gone or name.startswith(prefixes)
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


@dataclass(frozen=True)
class _Thing:
    name: str
    project: str
    state: str = ""
    process: str = ""


def _listed(*kinds: str) -> dict[str, list[_Thing]]:
    """Everything of these kinds in the engine that belongs to a Compose project, by its kind.

    Of images, the one kind whose listing tells no labels, the project is the whole name.
    """
    labels = "\t".join(f'{{{{.Label "{label}"}}}}' for label in (PROJECT, STATE, PROCESS))
    listings = {
        "containers": ("container", "ls", "--all", "--no-trunc", "--format", f"{{{{.ID}}}}\t{labels}"),
        "networks": ("network", "ls", "--no-trunc", "--format", f"{{{{.ID}}}}\t{labels}"),
        "volumes": ("volume", "ls", "--format", f"{{{{.Name}}}}\t{labels}"),
        "images": ("image", "ls", "--format", "{{.Repository}}:{{.Tag}}\t{{.Repository}}"),
    }
    with ThreadPoolExecutor(len(kinds)) as pool:
        texts = pool.map(lambda kind: docker(*listings[kind], "--filter", f"label={PROJECT}"), kinds)
        return {
            kind: [_Thing(*line.split("\t")) for line in text.splitlines()]
            for kind, text in zip(kinds, texts, strict=True)
        }


def _project_of(image: _Thing, known: Collection[str]) -> str:
    """An image is called after its project and service."""
    repository = image.project
    return next((name for name in known if repository.startswith(f"{name}-")), repository.rpartition("-")[0])


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
