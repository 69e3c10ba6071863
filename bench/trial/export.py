"""What a trial leaves: the evidence, on the host and in the environment, and the trajectory. Written after the end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from bench.condition import Condition
from bench.files import write_atomically
from bench.nostr import Event
from bench.trial import evidence, trajectory
from bench.trial.evidence import Part
from bench.trial.provision import USER, Cast
from bench.trial.trajectory import Played

HOST_COPY = "buzzbench-evidence.json"
"""Beside the trial's result.json; of a task with steps one in the trial's directory of each."""

IN_ENVIRONMENT = "/logs/artifacts/relay_evidence.json"
"""Harbor collects this directory for shared and separate verifiers (HARBOR.md section 2.4)."""

TRAJECTORY = "trajectory.json"


class Uploads(Protocol):
    """The part of Harbor's BaseEnvironment that evidence needs."""

    async def upload_file(self, source_path: Path | str, target_path: str) -> None: ...


class DanglingReference(ValueError):
    """A trajectory refers to a member's that it doesn't hold: Harbor's validator would let it pass."""


@dataclass(frozen=True)
class Story:
    """What the trajectory needs besides the evidence."""

    session: str
    version: str
    instruction: str
    played: Sequence[Played]


def build(cast: Cast, events: Sequence[Event], unexplained: Sequence[str], step: Part | None) -> dict[str, Any]:
    """The evidence, each signature verified."""
    return evidence.build(cast.subject, events, unexplained, step)


async def write_evidence(directory: Path, found: dict[str, Any]) -> str:
    """Write the host's own copy, durable, where nothing in the environment can reach it; return its SHA-256."""
    encoded = evidence.encode(found)

    def write() -> None:
        directory.mkdir(parents=True, exist_ok=True)
        write_atomically(directory / HOST_COPY, encoded.decode())

    await asyncio.to_thread(write)
    return evidence.sha256(encoded)


async def upload(environment: Uploads, directory: Path) -> None:
    """Give the verifier its copy of what the host has in that directory."""
    await environment.upload_file(directory / HOST_COPY, IN_ENVIRONMENT)


def write_trajectory(logs_dir: Path, condition: Condition, found: dict[str, Any], story: Story) -> None:
    """Write agent/trajectory.json: of a task's step what was done in it. Raises DanglingReference: a defect of ours."""
    since = found["step"]["since"] if found["step"] else 0
    built = trajectory.build(
        session=story.session,
        version=story.version,
        condition=condition,
        instruction=story.instruction,
        messages=[message for message in found["messages"] if message["seq"] >= since],
        user=USER,
        played=story.played,
    )
    if lost := trajectory.dangling(built):
        raise DanglingReference(f"no trajectory for {', '.join(lost)}")
    (logs_dir / TRAJECTORY).write_text(json.dumps(built, ensure_ascii=False), encoding="utf-8")
