"""The host's verdict on a trial's evidence, given once and kept beside it with the hashes of what it was given on.

A report reads it back, so that none needs to run anything again.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from bench.files import write_atomically
from bench.reading.jsonfile import object_in
from bench.scoring import judge

EVIDENCE, CHECKS = "buzzbench-evidence.json", "buzzbench-checks.json"
PACK = "buzzbench-pack.json"
"""The signed list of a pack: what lies below it stays as it was packed."""


def host(
    directory: Path, task_dir: Path | None, step: str | None, warnings: list[str], *, own_tasks: Path
) -> Mapping[str, bool] | None:
    """The host's verdict on the evidence in the directory of a trial, or of its step; None where there is no judge.

    `own_tasks` is where the project's are. Raises JudgeError, and NoSandbox where nobody has judged yet.
    """
    kept = object_in(directory / CHECKS)
    if kept is not None and isinstance(checks := kept.get("checks"), dict):
        if _sha256(directory / EVIDENCE) not in (None, kept.get("evidence_sha256")):
            warnings.append(f"{directory / EVIDENCE}: not the evidence that was judged; the verdict on that one stands")
        return {str(name): bool(held) for name, held in checks.items()}
    evidence = object_in(directory / EVIDENCE)
    path = judge.find(task_dir, step) if task_dir and evidence is not None else None
    if path is None or evidence is None:
        return None
    given = {"evidence_sha256": _sha256(directory / EVIDENCE), "judge_sha256": _sha256(path)}
    if kept is not None and kept == given | {"misjudged": kept.get("misjudged")}:
        raise judge.JudgeError(path, str(kept["misjudged"]))
    try:
        checks = judge.host_checks(path, evidence, own_tasks=own_tasks)
    except judge.JudgeError as error:
        _keep(directory, given | {"misjudged": error.what})
        raise
    _keep(directory, given | {"checks": checks})
    return checks


def _keep(directory: Path, verdict: Mapping[str, Any]) -> None:
    # In a pack, and on a full or a read-only disk, it is given anew each time.
    if any((above / PACK).exists() for above in directory.absolute().parents):
        return
    with contextlib.suppress(OSError):
        write_atomically(directory / CHECKS, json.dumps(verdict, indent=2) + "\n")


def _sha256(path: Path) -> str | None:
    try:
        return sha256(path.read_bytes()).hexdigest() if path.is_file() else None
    except OSError:
        return None
