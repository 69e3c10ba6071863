"""What a task's environment may ask for in a sandbox, known before anything starts: pure but for reading the directory.

Both functions return sentences that end a line such as `org/task: …`; the way on (`-e docker`) is the caller's to add.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from bench.sandbox import dockerfile
from bench.sandbox.context import copied
from bench.sandbox.dockerfile import Copy, Dockerfile
from bench.sandbox.layout import DEFAULT_WORKDIR, ENVIRON
from bench.sandbox.words import Unsupported

Network = Literal["none", "host"]
"""What a sandbox may get: nothing but its own loopback, or the host's network (for a scripted model only)."""

ROOT = (None, "root", "0", 0)
"""The users that there are in a sandbox, as Harbor may write them."""


def refusals(environment_dir: Path, environment: Mapping[str, Any]) -> list[str]:
    """Why the sandbox can't be this task's environment; empty where it can.

    `environment` is the task's `[environment]` (or `[verifier.environment]`) as in task.toml, `environment_dir` the
    directory that holds its Dockerfile. Of the network only what no run can give is looked at: see `network_refusal`.
    """
    found = []
    file = environment_dir / "Dockerfile"
    if (environment_dir / "docker-compose.yaml").exists():
        found.append("is a docker-compose task, and the sandbox has one place only")
    elif environment.get("docker_image") and not file.exists():
        found.append(f"needs the image {environment['docker_image']}, and the sandbox has no images")
    if (environment_dir / ".dockerignore").exists():
        found.append("has a .dockerignore, which the sandbox doesn't read")
    if str(environment.get("os") or "linux").lower() != "linux":
        found.append(f"needs {environment['os']}, and the sandbox is Linux")
    if environment.get("gpus") or environment.get("tpu"):
        found.append("needs an accelerator (gpus, tpu), and the sandbox has none")
    if environment.get("network_mode") == "allowlist":
        found.append("declares network_mode 'allowlist', and the sandbox can't tell hosts apart")
    plan = read(environment_dir)
    found += (f"Dockerfile {problem}" for problem in plan.problems)
    for step in plan.steps:
        if isinstance(step, Copy):
            try:
                copied(step, environment_dir)
            except Unsupported as error:
                found.append(f"Dockerfile {error}")
    return found


def network_refusal(modes: Iterable[str | None]) -> str | None:
    """Why an unscripted model can't do a task whose environment and phases declare these modes (None where unsaid)."""
    wanted = next((mode for mode in modes if mode not in (None, "no-network")), None)
    return f"declares network_mode {wanted!r}, which the sandbox gives no real model" if wanted else None


def user_refusal(users: Iterable[str | int | None]) -> str | None:
    """Why a task can't run in the sandbox as these users (of `[agent]` and `[verifier]`)."""
    wanted = next((user for user in users if user not in ROOT), None)
    return f"runs as user {wanted!r}, and the sandbox has only root" if wanted is not None else None


def read(environment_dir: Path) -> Dockerfile:
    """What the Dockerfile asks for. Without one, nothing but a directory to work in."""
    file = environment_dir / "Dockerfile"
    if not file.exists():
        return Dockerfile(workdir=DEFAULT_WORKDIR)
    return dockerfile.parse(file.read_text(encoding="utf-8"), ENVIRON)
