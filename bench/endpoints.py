"""Where a team's models are reached: a file maps each endpoint's name to a provider and its key's variable.

The form is the reference's (SEED.md row K4): `{"claude-sonnet-4-6": {"provider": "anthropic", "api_key_env":
"ANTHROPIC_API_KEY"}}`, with an optional `base_url`. Without `api_key_env` no key is sent (a local server).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import urlsplit

from bench import faults
from bench.errors import Problem, raise_problems
from bench.nearest import did_you_mean
from bench.reading import wording, yamlfile
from bench.reading.wording import Described
from bench.reading.yamlfile import Document

type Dialect = Literal["anthropic", "openai"]
type Provider = Literal["anthropic", "openai", "scripted", "replay"]

BASE_URLS = {"anthropic": "https://api.anthropic.com", "openai": "https://api.openai.com/v1"}
"""As each provider's own clients take it: with `/v1` for OpenAI, without for Anthropic."""

BASE_URL_VARIABLES = {"anthropic": "ANTHROPIC_BASE_URL", "openai": "OPENAI_COMPAT_BASE_URL"}
"""How the reference's files say it, under `env` (BUZZ.md section 5)."""

CALLS = ("/chat/completions", "/responses", "/messages")
"""What is added to a base URL, and is in what people copy from a provider's documentation."""

SCRIPTED = "scripted"
"""The endpoint that every rehearsal has; no file names it."""

FIELDS = {
    "provider": Described(
        "`anthropic` or `openai`", "needed", "Whose API it speaks. A local server is mostly `openai`."
    ),
    "base_url": Described(
        "an http or https address",
        " or ".join(BASE_URLS.values()),
        "Where it is, in the form that the provider's own clients take: with `/v1` for OpenAI, without for Anthropic. "
        "What follows it in a call's address (`/chat/completions`) is no part of it.",
    ),
    "api_key_env": Described(
        "a variable's name", "", "Which variable of your environment holds the key. Without it no key is sent."
    ),
    "env": Described(
        "an object", "", f"Upstream's way to give the address: {' or '.join(BASE_URL_VARIABLES.values())} in it."
    ),
}
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Endpoint:
    """One place that answers model calls. `scripted` and `replay` have neither `base_url` nor `api_key_env`."""

    name: str
    provider: Provider
    dialect: Dialect
    base_url: str | None
    api_key_env: str | None = None
    rehearsed: bool = False
    """Of a replay: whether it was a script that was recorded."""

    @property
    def is_scripted(self) -> bool:
        """Whether a script answers, now or when it was recorded: it has no need of reminders, and takes no time."""
        return self.provider == "scripted" or self.rehearsed


def for_team(names: Collection[str], path: Path, *, rehearsal: bool) -> dict[str, Endpoint]:
    """The endpoints that a roster names, from an endpoint file. Raises InvalidInput with every fault.

    In a rehearsal each is replaced by a scripted one of the same dialect; a team that names only `scripted` needs
    no file.
    """
    if rehearsal and set(names) == {SCRIPTED}:
        return {SCRIPTED: _scripted(SCRIPTED, "anthropic")}
    known = load(path)
    if rehearsal:
        known = {name: _scripted(name, endpoint.dialect) for name, endpoint in known.items()}
        known[SCRIPTED] = _scripted(SCRIPTED, "anthropic")
    raise_problems(_unknown(name, known, path) for name in names if name not in known)
    return {name: known[name] for name in names}


def _scripted(name: str, dialect: Dialect) -> Endpoint:
    return Endpoint(name, "scripted", dialect, None)


def _unknown(name: str, known: Collection[str], path: Path) -> Problem:
    if name == SCRIPTED:
        return Problem("", "the endpoint scripted answers only in a rehearsal", "add --rehearsal")
    listed = ", ".join(sorted(known)) or "none"
    return Problem(
        faults.shown(path), f"no endpoint {name}, which the manifest names; it has {listed}", did_you_mean(name, known)
    )


def load(path: Path) -> dict[str, Endpoint]:
    """All endpoints of a file. Raises InvalidInput with every fault, each with its file and field."""
    document = yamlfile.read(path, what="endpoint file", parser=yamlfile.parse_json)
    raise_problems(problem for name, given in document.data.items() for problem in _faults(document, name, given))
    return {name: _endpoint(name, given) for name, given in document.data.items()}


def _faults(document: Document, name: str, given: Any) -> Iterator[Problem]:
    if not isinstance(given, dict):
        yield document.problem((name,), "an endpoint is an object with a provider")
        return
    for field in (field for field in given if field not in FIELDS):
        yield document.problem((name, field), "unknown field", did_you_mean(field, FIELDS))
    provider = given.get("provider")
    if not isinstance(provider, str) or provider not in BASE_URLS:
        what = "is missing" if provider is None else f"{wording.shown(provider)} is not supported"
        fix = "an OpenAI-compatible server is openai with its base_url"
        yield document.problem((name, "provider"), f"{what}; it is anthropic or openai", fix)
        return
    variable = given.get("api_key_env")
    if variable is not None and not (isinstance(variable, str) and VARIABLE.fullmatch(variable)):
        # The value is not shown: it may be the key itself.
        fix = "name the variable, not its value"
        yield document.problem((name, "api_key_env"), "is not a variable's name", fix)
    environment = given.get("env") or {}
    if not isinstance(environment, dict):
        yield document.problem((name, "env"), "is not an object of variables")
        return
    for other in environment.keys() - {BASE_URL_VARIABLES[provider]}:
        yield document.problem((name, "env", other), "has no effect here", "give base_url, or remove it")
    if fault := _url_fault(_base_url(provider, given)):
        yield document.problem((name, "base_url"), fault)


def _url_fault(url: Any) -> str | None:
    if not isinstance(url, str):
        return f"{wording.shown(url)} is no http or https address"
    try:
        parts = urlsplit(url)
        port_is_fine = parts.port is None or parts.port > 0
    except ValueError:
        return f"{wording.shown(url)} is no http or https address"
    if parts.scheme not in {"http", "https"} or not parts.hostname or not port_is_fine or parts.query:
        return f"{wording.shown(url)} is no http or https address"
    if parts.username or parts.password:
        return "holds a user or a password; keys are given by api_key_env alone"
    if call := next((call for call in CALLS if parts.path.rstrip("/").endswith(call)), None):
        return f"{wording.shown(url)} is where one kind of call goes; give what comes before {call}"
    return None


def _base_url(provider: str, given: Mapping[str, Any]) -> Any:
    named = (given.get("env") or {}).get(BASE_URL_VARIABLES[provider])
    return given.get("base_url") or named or BASE_URLS[provider]


def _endpoint(name: str, given: Mapping[str, Any]) -> Endpoint:
    provider = cast(Dialect, given["provider"])
    url = str(_base_url(provider, given)).rstrip("/")
    return Endpoint(name, provider, provider, url, given.get("api_key_env"))
