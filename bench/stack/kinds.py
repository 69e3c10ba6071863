"""The two kinds of stack behind the same verbs. An installation has one of them at a time."""

from __future__ import annotations

from bench.keys import State
from bench.settings import Settings
from bench.stack import StackAddress, StackStatus, address, compose, embedded


def up(settings: Settings, state: State, kind: str, *, fresh: bool = False) -> StackAddress:
    """Have the stack of that kind running, the other one stopped. See `embedded.up` and `compose.up`."""
    known = address(settings.state_dir)
    if kind == "compose":
        if known is None or known.kind != "compose":
            embedded.down(settings)
        return compose.up(settings, state, fresh=fresh)
    if (known and known.kind == "compose") or compose.has_containers(settings):
        compose.down(settings)
    return embedded.up(settings, state, fresh=fresh)


def down(settings: Settings) -> bool:
    """Stop whatever runs; data and keys stay. Whether anything ran. Raises BuzzbenchError while a job runs."""
    return any([compose.down(settings), embedded.down(settings)])


def status(settings: Settings) -> StackStatus:
    """What runs now. Changes nothing."""
    return compose.status(settings) if is_in_docker(settings) else embedded.status(settings)


def is_in_docker(settings: Settings) -> bool:
    """Whether the stack that there is, is the one in Docker, also where its engine is away."""
    known = address(settings.state_dir)
    return known.kind == "compose" if known else compose.has_containers(settings)
