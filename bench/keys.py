"""The identities and secrets of this project: made once, never silently made anew (rows K1, K2, K5)."""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.errors import InvalidInput, Problem, raise_problems
from bench.files import locked, make_private_directory, write_private
from bench.nostr import Key
from bench.reading import jsonfile

KEY_FIELDS = {"owner": "owner_secret_key", "user": "user_secret_key", "relay": "relay_private_key"}
SECRET_FIELDS: Mapping[str, Callable[[], str]] = {
    "postgres_password": lambda: secrets.token_urlsafe(24),
    "redis_password": lambda: secrets.token_urlsafe(24),
    "s3_access_key": lambda: secrets.token_hex(10),
    "s3_secret_key": lambda: secrets.token_hex(20),
    "git_hook_hmac_secret": lambda: secrets.token_hex(32),
}
"""Lengths as in row K1 of the reference."""


@dataclass(frozen=True)
class State:
    """What `state.json` holds. Public keys are derived, not stored."""

    owner: Key
    user: Key
    relay: Key
    postgres_password: str
    redis_password: str
    s3_access_key: str
    s3_secret_key: str
    git_hook_hmac_secret: str

    def __repr__(self) -> str:
        return f"State(owner={self.owner!r}, user={self.user!r}, relay={self.relay!r})"


def state_path(state_dir: Path) -> Path:
    return state_dir / "state.json"


def ensure(state_dir: Path) -> State:
    """The state, made if there is none; two processes at once get the same. Raises InvalidInput if it is damaged."""
    try:
        make_private_directory(state_dir)
    except OSError as error:
        what = f"the state directory can't be made: {error.strerror}"
        raise InvalidInput.of(str(state_dir), what, "set BUZZBENCH_STATE_DIR to a directory of yours") from None
    with locked(state_dir / "state.lock"):
        path = state_path(state_dir)
        if not path.exists():
            made = {field: Key.generate().secret for field in KEY_FIELDS.values()}
            made |= {field: make() for field, make in SECRET_FIELDS.items()}
            write_private(path, json.dumps(made, indent=2) + "\n")
        elif path.stat().st_mode & 0o077:
            path.chmod(0o600)
        return load(state_dir)


def load(state_dir: Path) -> State:
    """The state as it is on disk. Raises InvalidInput naming the file and every field that is wrong."""
    path = state_path(state_dir)
    fix = "restore it from a backup, or delete it to begin anew (keys and data are then lost: `inv up --fresh`)"
    try:
        values = jsonfile.read(path, fix=fix)
    except FileNotFoundError:
        raise InvalidInput.of(str(path), "there is no state yet", "run `inv keys`") from None
    problems: list[Problem] = []
    keys: dict[str, Key] = {}
    for name, field in KEY_FIELDS.items():
        try:
            keys[name] = Key.parse(_text(values, field))
        except ValueError as error:
            problems.append(Problem(jsonfile.place(path, field), str(error), fix))
    others: dict[str, str] = {}
    for field in SECRET_FIELDS:
        try:
            others[field] = _text(values, field)
        except ValueError as error:
            problems.append(Problem(jsonfile.place(path, field), str(error), fix))
    raise_problems(problems)
    return State(keys["owner"], keys["user"], keys["relay"], **others)


def _text(values: dict[str, Any], field: str) -> str:
    value = values.get(field)
    if not isinstance(value, str) or not value:
        raise ValueError("missing" if field not in values else "not a text")
    return value


def report(state: State, *, show: bool, interactive: bool) -> list[str]:
    """What `inv keys` prints: on a terminal, or on request, all that a person needs to log in as the benchmark user."""
    lines = [f"benchmark user: {state.user.npub}"]
    if show or interactive:
        lines.append(f"  log in with:  {state.user.nsec}")
    if show:
        lines += [
            f"  public, hex:  {state.user.public}",
            f"  secret, hex:  {state.user.secret}",
            f"owner:          {state.owner.npub} (hex {state.owner.public})",
            f"relay:          {state.relay.npub} (hex {state.relay.public})",
        ]
    elif not interactive:
        lines.append("  (its secret key: inv keys --show)")
    return lines


def keys(state_dir: Path, *, show: bool = False) -> State:
    """The task: ensure the state, print the user's key (on standard error), or on request all (on standard output)."""
    state = ensure(state_dir)
    interactive = sys.stderr.isatty() and not os.environ.get("CI")
    for line in report(state, show=show, interactive=interactive):
        print(line, file=sys.stdout if show else sys.stderr)
    return state
