"""`inv xbuild`: the Linux agent binaries that a condition's real agents need."""

from __future__ import annotations

import sys
from pathlib import Path

from bench.errors import MachineLacks
from bench.manifest import RUNNABLE_HARNESSES, Condition, load
from bench.settings import ROOT

DEFAULT_MANIFEST = ROOT / "manifests" / "tb-cobol-sonnet-haiku.yaml"


def check(manifest: str) -> None:
    """Raise InvalidInput for a manifest that can't be read."""
    load(_path(manifest))


def xbuild(manifest: str) -> None:
    """Say that nothing is needed, or raise MachineLacks: there is no harness for real agents yet."""
    condition = load(_path(manifest))
    if not needed(condition):
        print(f"xbuild: the condition {condition.name} has no real agents, nothing to build", file=sys.stderr)
        return
    raise MachineLacks.of(
        f"xbuild: the condition {condition.name}",
        f"it has real agents ({', '.join(sorted(set(condition.harnesses) - RUNNABLE_HARNESSES))}), "
        "which this version can't build or run yet",
        "take a condition of builtin agents, such as --manifest manifests/builtin-lead-two-workers.yaml",
    )


def needed(condition: Condition) -> bool:
    """Whether any member runs as real processes in the task's environment."""
    return not set(condition.harnesses) <= RUNNABLE_HARNESSES


def _path(manifest: str) -> Path:
    return Path(manifest) if manifest else DEFAULT_MANIFEST
