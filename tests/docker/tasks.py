"""Small tasks for containers, each with a script for a lone orchestrator's part of a rehearsal."""

from __future__ import annotations

from pathlib import Path

SCRIPT = """
orch:
  - name: work
    expect: ["write the file"]
    do:
      - run: "echo done > result.txt"
  - name: finish
    on: result
    do:
      - done: "DONE: written"
"""

TEST = """#!/bin/bash
mkdir -p /logs/verifier
[ "$(cat result.txt)" = done ] && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt
"""


def write(
    folder: Path,
    name: str,
    *,
    dockerfile: str | None = None,
    compose: str | None = None,
    environment: str = "",
    script: str = SCRIPT,
) -> Path:
    """A task that passes where its container can do what every task's can."""
    task = folder / name
    (task / "environment").mkdir(parents=True)
    (task / "tests").mkdir()
    (task / "rehearsal").mkdir()
    if dockerfile is not None:
        (task / "environment" / "Dockerfile").write_text(dockerfile)
    if compose is not None:
        (task / "environment" / "docker-compose.yaml").write_text(compose)
    (task / "task.toml").write_text(
        f'schema_version = "1.4"\n[task]\nname = "faults/{name}"\n[agent]\ntimeout_sec = 120\n'
        f"[verifier]\ntimeout_sec = 60\n[environment]\nbuild_timeout_sec = 100\n{environment}\n"
    )
    (task / "instruction.md").write_text("write the file result.txt\n")
    (task / "tests" / "test.sh").write_text(TEST)
    (task / "tests" / "test.sh").chmod(0o755)
    (task / "rehearsal" / "good.yaml").write_text(script)
    return task
