"""What a run needs that isn't there: keys in the environment, model servers, an engine, programs, a sandbox."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from bench.condition import RUNNABLE_HARNESSES, Condition
from bench.endpoints import Endpoint
from bench.errors import Problem
from bench.faults import shown
from bench.upload import problem as upload_problem

CONNECT_S = 1.5
"""For a connection to this machine itself."""

LOCAL = "a local model with --manifest manifests/builtin-{}-local.yaml --endpoint-config manifests/endpoints/local.json"
WAYS_ON = f"set it, or go on without a key: --rehearsal, or {LOCAL.format('lead-two-workers')}"
BASELINES_WAY_ON = f"set it, or go on without a key: {LOCAL.format('solo')}"


def key_problems(
    endpoints: Mapping[str, Endpoint], file: Path | None, environ: Mapping[str, str], *, baseline: bool
) -> Iterator[Problem]:
    """Variables of keys that are not set, with the endpoints that need them; a `baseline` can't be rehearsed."""
    ways_on = BASELINES_WAY_ON if baseline else WAYS_ON
    missing: dict[str, list[str]] = {}
    for endpoint in endpoints.values():
        if endpoint.api_key_env and not environ.get(endpoint.api_key_env, "").strip():
            missing.setdefault(endpoint.api_key_env, []).append(endpoint.name)
    for variable, names in missing.items():
        who = "endpoint" if len(names) == 1 else "endpoints"
        yield Problem(f"{who} {', '.join(names)} ({shown(file) if file else ''})", f"{variable} is not set", ways_on)


def listening_problems(endpoints: Mapping[str, Endpoint], file: Path | None) -> Iterator[Problem]:
    """Model servers of this machine that don't run. A connection is made and closed; those elsewhere are not asked."""
    silent: dict[str, list[str]] = {}
    for endpoint in endpoints.values():
        if endpoint.base_url and not _is_served(endpoint.base_url):
            silent.setdefault(endpoint.base_url, []).append(endpoint.name)
    for url, names in silent.items():
        who = "endpoint" if len(names) == 1 else "endpoints"
        where = f"{who} {', '.join(names)} ({shown(file) if file else ''})"
        fix = "start the model server there (such as `ollama serve`), or give its base_url"
        yield Problem(where, f"nobody listens at {url}", fix, lacks=True)


def _is_served(base_url: str) -> bool:
    """Whether the server may be there: False only where this machine itself refuses a connection to its own address."""
    parts = urlsplit(base_url)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    if host != "localhost" and not _is_loopback(host):
        return True
    try:
        socket.create_connection((host, port), timeout=CONNECT_S).close()
    except ConnectionRefusedError:
        return False
    except OSError:
        pass  # One that is slow to take it is there.
    return True


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def hide_keys(endpoints: Mapping[str, Endpoint]) -> None:
    """From here on the options alone have the providers' keys: no program that is started is given them.

    The first ones look at this machine.
    """
    for endpoint in endpoints.values():
        if endpoint.api_key_env:
            os.environ.pop(endpoint.api_key_env, None)


def machine_problems(
    condition: Condition | None, stack: str, environment: str, environ: Mapping[str, str], *, upload: bool, gui: bool
) -> Iterator[Problem]:
    """What a run needs and this machine, or this version, lacks (exit 3)."""
    if gui:
        from bench import settings
        from bench.gui import needs

        loaded = settings.load(environ=environ)
        yield from needs.problems("--gui", loaded, loaded.origins["buzz_source"], environ)
    if upload and (not_logged_in := upload_problem(environ)):
        yield not_logged_in
    if condition:
        missing = [harness for harness in condition.harnesses if harness not in RUNNABLE_HARNESSES]
        if missing:
            yield Problem(
                condition.name,
                f"agents of harness {', '.join(sorted(missing))} can't run yet, only be dry-run",
                "use harness: builtin, as manifests/builtin-lead-two-workers.yaml does",
                lacks=True,
            )
            return
        for name in condition.unenforced:
            fix = "leave it out" if ".generation." in name else "use max_tokens"
            yield Problem(condition.where, f"{name}: nobody holds to it yet", fix, lacks=True)
    purposes = [("--stack compose", "--stack embedded")] if stack == "compose" else []
    purposes += [("-e docker", "-e sandbox")] if environment == "docker" else []
    without_engine = None
    if purposes:
        from bench.docker import engine

        instead = " and ".join(other for _, other in purposes)
        without_engine = engine.problem(purposes[0][0], environ, instead=instead)
    if without_engine:
        yield without_engine
    if condition and condition.is_real:
        from bench import xbuild

        yield from xbuild.problems(environ, has_engine=not without_engine, forwarder=environment != "sandbox")
    if environment == "sandbox":
        from bench.sandbox import probe

        if found := probe.problem():
            yield found
