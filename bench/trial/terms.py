"""The agent's options and what they lead to: condition, endpoints, keys. Checked before any trial, and used in each."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from bench.errors import InvalidInput, Problem

if TYPE_CHECKING:
    from bench.condition import Condition
    from bench.endpoints import Endpoint


@dataclass(frozen=True)
class Terms:
    """The agent's options, as Harbor stores them: a pure function of what a person asked for.

    `record` makes a cassette of the job; `replay` is the cassette that is played in a model's place.
    """

    manifest: Path
    condition_sha256: str
    endpoints: Path | None
    rehearsal: str | None
    record: bool = False
    replay: Path | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Terms from Harbor's kwargs. Raises InvalidInput for a missing or unknown one."""
        needed = ("manifest", "condition_sha256")
        _check(given, {*needed, "endpoints", "rehearsal", "record", "replay"}, needed)
        endpoints, rehearsal, replay = (given.get(name) for name in ("endpoints", "rehearsal", "replay"))
        return cls(
            Path(given["manifest"]),
            str(given["condition_sha256"]),
            Path(endpoints) if endpoints else None,
            str(rehearsal) if rehearsal else None,
            bool(given.get("record")),
            Path(replay) if replay else None,
        )

    @property
    def replay_sha256(self) -> str | None:
        """The hash of the cassette's file. Raises InvalidInput."""
        return None if self.replay is None else _hash(self.replay)

    def condition(self) -> Condition:
        """The condition, which must be the one that was planned; read once. Raises InvalidInput."""
        return self._as_planned(_load_manifest(self.manifest))

    def _as_planned(self, condition: Condition) -> Condition:
        if condition.sha256 != self.condition_sha256:
            raise InvalidInput.of(
                str(self.manifest),
                f"the condition is not the one that was planned: its hash is {condition.sha256}, "
                f"planned was {self.condition_sha256}",
                "restore the manifest and its prompts, or start a new job",
            )
        return condition

    def team_endpoints(self, condition: Condition) -> dict[str, Endpoint]:
        """The endpoints that the condition's roster names. Raises InvalidInput."""
        from bench import endpoints

        if self.replay is not None:
            from bench.gateway import cassette

            return cassette.endpoints_of(condition.endpoints, self.replay)
        if self.endpoints is None and not self.rehearsal:
            raise InvalidInput.of("agent kwargs", "endpoints is missing", "only a rehearsal needs no endpoint file")
        return endpoints.for_team(
            condition.endpoints, self.endpoints or Path(os.devnull), rehearsal=bool(self.rehearsal)
        )


@dataclass(frozen=True)
class BaselineTerms(Terms):
    """Those of an agent of Harbor's in a team's place: which one, on which model, with which options of its own."""

    agent: str = ""
    model: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Terms from Harbor's kwargs. Raises InvalidInput for a missing or unknown one."""
        replay = given.get("replay")
        needed = ("agent", "model", "manifest", "condition_sha256", *(() if replay else ("endpoints",)))
        _check(given, {*needed, "endpoints", "options", "record", "replay"}, needed)
        return cls(
            manifest=Path(given["manifest"]),
            condition_sha256=str(given["condition_sha256"]),
            endpoints=Path(given["endpoints"]) if given.get("endpoints") else None,
            rehearsal=None,
            record=bool(given.get("record")),
            replay=Path(replay) if replay else None,
            agent=str(given["agent"]),
            model=str(given["model"]),
            options=dict(given.get("options") or {}),
        )

    def condition(self) -> Condition:
        """The condition, which must be the one that was planned. Raises InvalidInput."""
        from bench import baseline

        if not baseline.asks_model(self.agent):
            raise InvalidInput.of("agent kwargs", f"{self.agent} can't play through the gateway")
        found = baseline.on_terms_of(_load_manifest(self.manifest, alone=True), self.agent, self.options, self.model)
        if isinstance(found, Problem):
            raise InvalidInput((found,))
        return self._as_planned(found)


def _check(given: Mapping[str, Any], known: Collection[str], needed: Collection[str]) -> None:
    """Raise InvalidInput for Harbor's kwargs that are unknown, or lack one."""
    if unknown := sorted(set(given) - set(known)):
        raise InvalidInput.of("agent kwargs", f"unknown: {', '.join(unknown)}", f"known are {', '.join(sorted(known))}")
    for name in needed:
        if not given.get(name):
            raise InvalidInput.of("agent kwargs", f"{name} is missing", f"give it with --ak {name}=…")


@functools.cache
def _load_manifest(path: Path, *, alone: bool = False) -> Condition:
    from bench import manifest

    return manifest.load(path, alone=alone)


@functools.cache
def _hash(path: Path) -> str:
    from bench.gateway.cassette import read_bytes

    return hashlib.sha256(read_bytes(path)).hexdigest()


_provided: dict[str, str] = {}
"""API keys by the name of their variable: given by the parent on a pipe, never in this process's environment."""


def provide_keys(keys: Mapping[str, str]) -> None:
    """API keys for this process's jobs, by the name of their variable; they come before the environment's."""
    _provided.update(keys)


def api_key(endpoint: Endpoint) -> str:
    """The endpoint's key, empty where it wants none. Raises InvalidInput naming endpoint and variable."""
    if endpoint.api_key_env is None:
        return ""
    key = _provided.get(endpoint.api_key_env) or os.environ.get(endpoint.api_key_env)
    if not key:
        raise InvalidInput.of(
            f"endpoint {endpoint.name}", f"{endpoint.api_key_env} is not set", "set it in the environment"
        )
    return key
