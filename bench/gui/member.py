"""The relay lets members in only: the benchmark user becomes one before the app opens."""

from __future__ import annotations

from bench.docker.engine import docker
from bench.errors import BuzzbenchError
from bench.keys import State
from bench.settings import Settings
from bench.stack.project import Project, kept

ADD_S = 60.0


def add(settings: Settings, state: State, public: str) -> None:
    """Make the key a member of the compose stack's relay; nothing changes if it is one (BUZZ.md section 7).

    Raises BuzzbenchError where there is no such stack, or where the relay's own tool fails.
    """
    known = kept(settings.state_dir)
    if known is None:
        raise BuzzbenchError("there is no Docker stack to add the user to", fix="run `inv up --stack compose`")
    project = Project(known.name, settings, state, known.bridge)
    command = project.command("exec", "-T", "relay", "buzz-admin", "add-member", "--pubkey", public)
    docker(*command[1:], environment=project.variables, timeout_s=ADD_S)
