"""What a team talks through: relay, PostgreSQL and gateway. `address()` says where a running one is."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

from bench.errors import BuzzbenchError, InvalidInput, Problem, raise_problems
from bench.faults import shown
from bench.reading import jsonfile


@dataclass(frozen=True)
class StackAddress:
    """Where the services of a running stack are."""

    kind: str
    """`embedded` or `compose`."""
    relay_url: str
    """The relay's canonical address, such as `ws://localhost:3600`."""
    dsn: str
    """A libpq connection string."""
    gateway_url: str
    """The model gateway's base, such as `http://127.0.0.1:41234`."""
    gateway_control: str
    """The path of the gateway's control socket."""


@dataclass(frozen=True)
class ServiceStatus:
    """One service as it is now."""

    name: str
    state: str
    """`running`, `stopped`, or `foreign`: its port is held by a process that isn't ours."""
    pid: int | None = None
    port: int | None = None
    uptime_s: float | None = None
    holder: str = ""
    """Who holds the port, where foreign."""


@dataclass(frozen=True)
class StackStatus:
    """The stack's services, and the jobs that use it."""

    services: tuple[ServiceStatus, ...]
    jobs: tuple[str, ...]
    address: StackAddress | None


def kind_of(state_dir: Path) -> str | None:
    """The kind of stack that stack.json names; None where there is none, or it is damaged."""
    try:
        found = address(state_dir)
    except InvalidInput:
        return None
    return found.kind if found else None


def address(state_dir: Path) -> StackAddress | None:
    """The address that stack.json holds, or None where nothing runs. Raises InvalidInput if damaged."""
    path, fix = state_dir / "stack.json", "run `inv down`, then `inv up`"
    try:
        values = jsonfile.read(path, fix=fix)
    except FileNotFoundError:
        return None
    names = [field.name for field in fields(StackAddress)]
    wrong = [name for name in names if not isinstance(values.get(name), str)]
    raise_problems(Problem(jsonfile.place(path, name), "is missing, or no text", fix) for name in wrong)
    return StackAddress(**{name: values[name] for name in names})


def forget_address(state_dir: Path) -> None:
    """Remove stack.json: nothing runs, or what runs is changed. Raises BuzzbenchError where that can't be."""
    path = state_dir / "stack.json"
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise BuzzbenchError(f"can't be removed: {error.strerror}", where=shown(path), fix="remove it") from None
