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
RECORDED = ("revision", "changes", "image", "image_id", "triple", "built_at")


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


def provenance(place: Path, sha256: Mapping[str, str]) -> dict[str, Any]:
    """For a trial's records: the programs that it got from that directory, by SHA-256, and from what they were built.

    Only the first where they aren't those of a stamp, as in a directory that a person made.
    """
    stamp = _read(place / STAMP)
    known = {name: program.sha256 for name, program in stamp.programs.items()} if stamp else {}
    if stamp is None or not sha256.items() <= known.items():
        return {"sha256": dict(sha256)}
    return {"sha256": dict(sha256)} | {name: getattr(stamp, name) for name in RECORDED}


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
