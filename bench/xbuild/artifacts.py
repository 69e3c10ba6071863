"""The programs that were built, with the stamp that says from what (row X3). Who uploads them takes them from here."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.files import write_atomically
from bench.xbuild import forwarder

AGENTS = ("buzz-acp", "buzz-agent", "buzz-dev-mcp")
"""Buzz's own, each a package of its workspace. `buzz-dev-mcp` called `buzz` is the command line (BUZZ.md section 0)."""
NAMES = (*AGENTS, forwarder.NAME)
STAMP = "artifacts.json"
SCHEMA = "buzzbench-artifacts-1"


@dataclass(frozen=True)
class Program:
    """One program as it was when it was stamped."""

    sha256: str
    size_bytes: int

    @classmethod
    def of(cls, path: Path) -> Program:
        with path.open("rb") as file:
            return cls(hashlib.file_digest(file, "sha256").hexdigest(), path.stat().st_size)


@dataclass(frozen=True)
class Stamp:
    """From what the programs were built. Nothing in it tells of the machine: it may go into a job's records.

    `key` names all that went in; `revision` and `changes` are those of `bench.xbuild.source.Source`; `image_id` is the
    engine's name for the image's content.
    """

    key: str
    revision: str | None
    changes: str | None
    image: str
    image_id: str
    triple: str
    built_at: str
    programs: Mapping[str, Program]


@dataclass(frozen=True)
class Artifacts:
    """Programs on disk that are those of their stamp."""

    directory: Path
    stamp: Stamp

    @property
    def machine(self) -> str:
        """What they run on, as in a target triple: x86_64, aarch64."""
        return self.stamp.triple.partition("-")[0]

    def path(self, name: str) -> Path:
        """Where the program is: one of NAMES."""
        assert name in NAMES
        return self.directory / name

    def provenance(self) -> dict[str, Any]:
        """For a job's records: a JSON object of the stamp's fields."""
        return asdict(self.stamp)


def root(state_dir: Path) -> Path:
    """Where all of them are, and cargo's own files."""
    return state_dir / "linux-target"


def directory(state_dir: Path, triple: str) -> Path:
    """Where the programs for a target triple are."""
    return root(state_dir) / triple / "release"


def find(state_dir: Path, triple: str) -> Artifacts | None:
    """Those built for the triple; None if there are none, or if one of them isn't what was stamped."""
    place = directory(state_dir, triple)
    stamp = _read(place / STAMP)
    if stamp is None:
        return None
    try:
        sound = all(Program.of(place / name) == stamp.programs.get(name) for name in NAMES)
    except OSError:
        return None
    return Artifacts(place, stamp) if sound else None


def for_machine(state_dir: Path, machine: str) -> Artifacts | None:
    """The newest of those that run on the machine, such as x86_64."""
    found = [find(state_dir, path.parent.name) for path in root(state_dir).glob(f"{machine}-*/release")]
    return max(filter(None, found), key=lambda artifacts: artifacts.stamp.built_at, default=None)


def write(place: Path, stamp: Stamp) -> Artifacts:
    """Stamp what is in the directory."""
    write_atomically(place / STAMP, json.dumps({"schema": SCHEMA, **asdict(stamp)}, indent=2) + "\n")
    return Artifacts(place, stamp)


def _read(path: Path) -> Stamp | None:
    """The stamp; None where there is none that we can read: then it is built anew."""
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        if fields.pop("schema") != SCHEMA:
            return None
        programs = {name: Program(**program) for name, program in fields.pop("programs").items()}
        return Stamp(**fields, programs=programs)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None
