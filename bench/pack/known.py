"""The secrets of this machine that no pack may hold, and the public keys by which an agent's own is known for one.

Of trials that are over nobody has tokens and keys any more: a token is known by its shape, a key by its public one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from bench import endpoints
from bench.errors import InvalidInput
from bench.keys import KEY_FIELDS, SECRET_FIELDS, load, state_path
from bench.pack import signing
from bench.reading import jsonfile
from bench.records import EVIDENCE, planrecord
from bench.secretforms import is_weak
from bench.settings import ROOT, Settings

SENSITIVE = re.compile(r"KEYS?(?![A-Z])|SECRET|TOKEN|PASS|CREDENTIAL|PRIVATE|AUTH(?!OR)", re.I)
"""Names of variables that hold secrets."""

OF_A_VARIABLE = "the value of "
"""Before the variable's name: how messages call what is in it."""

SWITCH = r"\d{0,7}|true|false|yes|no|on|off|none|null"


def secrets(settings: Settings, environ: Mapping[str, str], job_dirs: Sequence[Path] = ()) -> dict[str, str]:
    """The values by their names in messages: of state.json (of which .env is made), and of the environment.

    Of the environment they are what is called like a secret, and what the endpoint files of these jobs name, but for
    what is too weak to look for (see `weak`).

    Raises InvalidInput where the state is damaged; where there is none it has no secrets.
    """
    found: dict[str, str] = {}
    if state_path(settings.state_dir).exists():
        state = load(settings.state_dir)
        for name in KEY_FIELDS:
            key = getattr(state, name)
            found |= {f"the {name}'s secret key": key.secret, f"the {name}'s secret key, as nsec": key.nsec}
        found |= {f"{name} of state.json": getattr(state, name) for name in SECRET_FIELDS}
    if seed := signing.seed(settings.state_dir):
        found["the key that packs are signed with"] = seed
    given = _given(environ, job_dirs)
    return found | {OF_A_VARIABLE + name: value for name, value in given.items() if not is_weak(value)}


def weak(environ: Mapping[str, str], job_dirs: Sequence[Path] = ()) -> list[str]:
    """The variables whose values should be secret and can't be looked for: these turn up by chance, such as `test`.

    Without those that are set to what is plainly no secret: a switch, or a small number.
    """
    given = _given(environ, job_dirs)
    return sorted(
        name for name, value in given.items() if is_weak(value) and not re.fullmatch(SWITCH, value.strip(), re.I)
    )


def _given(environ: Mapping[str, str], job_dirs: Sequence[Path]) -> dict[str, str]:
    """The variables that are called like a secret, or named by an endpoint file; not those that say where one is."""
    named = _named_by_endpoints(job_dirs)
    wanted = {name: value for name, value in environ.items() if name in named or SENSITIVE.search(name)}
    return {name: value for name, value in wanted.items() if not _is_there(value)}


def publics(settings: Settings, trial_dirs: Iterable[Path]) -> dict[str, str]:
    """Whose each public key is: those of this installation, and of the trials' members as their evidence names them."""
    found = {}
    for directory in trial_dirs:
        # Of a task in steps, each step has its own. What an agent has left below them isn't read as evidence.
        for evidence in (directory / EVIDENCE, *directory.glob(f"steps/*/{EVIDENCE}")):
            for member in _roster(evidence):
                found[str(member.get("public"))] = f"{member.get('name')} in {directory.name}"
    if state_path(settings.state_dir).exists():
        state = load(settings.state_dir)
        found |= {getattr(state, name).public: f"the {name}" for name in KEY_FIELDS}
    return found


def _roster(evidence: Path) -> list[Mapping[str, object]]:
    read = jsonfile.object_in(evidence) or {}
    roster = read.get("roster")
    listed = [*(roster if isinstance(roster, list) else ()), read.get("user")]
    return [member for member in listed if isinstance(member, dict)]


def _is_there(value: str) -> bool:
    """Whether a value is the whole path of something: where a secret is, and not the secret."""
    try:
        return Path(value).is_absolute() and Path(value).exists()
    except OSError:
        return False  # too long for one


def _named_by_endpoints(job_dirs: Sequence[Path]) -> set[str]:
    """The variables that endpoint files name: those that come with us, and those that the jobs were run with.

    A job's own file may be gone or another one by now: its record says what it named.
    """
    found = {name for directory in job_dirs for name in planrecord.key_variables(directory)}
    theirs = {path for directory in job_dirs for path in _endpoint_files(directory)}
    for path in sorted({*(ROOT / "manifests" / "endpoints").glob("*.json"), *theirs}):
        try:
            found |= {endpoint.api_key_env for endpoint in endpoints.load(path).values() if endpoint.api_key_env}
        except InvalidInput:
            continue  # Who runs with it is told.
    return found


def _endpoint_files(job_dir: Path) -> Iterator[Path]:
    """Those that a job's configuration names, and that are still there."""
    agents = (jsonfile.object_in(job_dir / "config.json") or {}).get("agents")
    for agent in agents if isinstance(agents, list) else ():
        given = agent.get("kwargs") if isinstance(agent, dict) else None
        path = given.get("endpoints") if isinstance(given, dict) else None
        if isinstance(path, str) and os.path.isfile(path):  # noqa: PTH113  (False for whatever is no path)
            yield Path(path)
