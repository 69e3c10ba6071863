"""`inv logs`: what the stack's services said, the last lines of each."""

from __future__ import annotations

import contextlib
import subprocess

from bench.errors import InvalidInput
from bench.settings import Settings
from bench.stack import compose, kinds, paths
from bench.stack.project import kept

ON_HOST = ("postgres", "relay", "gateway")
"""What writes a log file in the embedded stack. In the compose stack that is the gateway alone."""


def logs(settings: Settings, service: str, *, lines: int, follow: bool) -> None:
    """Print the last lines of one service, or of all; with `follow` what comes after as well. Raises InvalidInput."""
    known = kept(settings.state_dir)
    in_docker = kinds.is_in_docker(settings)
    names = (*compose.SHOWN, "gateway") if in_docker else ON_HOST
    if service and service not in names:
        raise InvalidInput.of("--service", f"there is no {service!r} in this stack", f"it has {', '.join(names)}")
    commands = []
    if known and in_docker and service != "gateway":
        command = ["docker", "compose", "--project-name", known.name, "logs", "--tail", str(lines)]
        commands.append([*command, *(["--follow"] if follow else []), *([service] if service else [])])
    on_host = ("gateway",) if in_docker else ON_HOST
    files = [paths.log(settings.state_dir, name) for name in on_host if service in ("", name)]
    if found := [str(path) for path in files if path.exists()]:
        commands.append(["tail", "-n", str(lines), *(["-F"] if follow else []), *found])
    # Only one thing can be followed: of a stack in Docker that is its containers.
    for command in commands[:1] if follow else commands:
        with contextlib.suppress(KeyboardInterrupt):
            subprocess.run(command, cwd="/", check=False)
