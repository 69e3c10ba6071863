"""The relay lets members in only: the benchmark user becomes one before the app opens."""

from __future__ import annotations

from pathlib import Path

from bench.docker.engine import docker
from bench.errors import BuzzbenchError
from bench.stack.project import kept

ADD_S = 60.0


def add(state_dir: Path, public: str) -> None:
    """Make the key a member of the compose stack's relay; nothing changes if it is one (BUZZ.md section 7).

    Raises BuzzbenchError where there is no such stack, or where the relay's own tool fails.
    """
    known = kept(state_dir)
    if known is None:
        raise BuzzbenchError("there is no Docker stack to add the user to", fix="run `inv up --stack compose`")
    # By the project's name alone: whichever files the stack was made from, it is the one that runs.
    command = ("exec", "-T", "relay", "buzz-admin", "add-member", "--pubkey", public)
    docker("compose", "--project-name", known.name, *command, timeout_s=ADD_S)
