"""The condition that a run would take, the places of its models, and what they cost."""

from __future__ import annotations

import socket
import ssl
import threading
import time
import urllib.request
from collections.abc import Mapping
from urllib.parse import urlsplit

from bench import endpoints, manifest
from bench.doctor.check import Check, Context, Found, of_problems
from bench.endpoints import Endpoint
from bench.errors import InvalidInput
from bench.faults import shown
from bench.nearest import nearest

CONNECT_S = 1.5
"""All endpoints are tried at once: so long does the check take at most."""


def conditions(context: Context) -> Found:
    """Every shipped manifest, and the one in use, is sound: its prompts are as pinned, every model has its price."""
    paths = dict.fromkeys([*sorted((context.root / "manifests").glob("*.yaml")), context.manifest])
    models = set()
    for path in paths:
        try:
            models |= set(manifest.load(path).prices)
        except InvalidInput as error:
            return of_problems(error.problems)
    return Found("ok", f"{len(paths)} sound, with prices for all of their {len(models)} models")


def known_endpoints(context: Context) -> Found:
    """The endpoint file has all that the condition names."""
    team = _team(context)
    return Found("ok", f"{', '.join(team) or 'none'} of {shown(context.endpoint_config)}")


def api_keys(context: Context) -> Found:
    """The variables that hold the keys are set. Their values are not looked at."""
    variables = {e.api_key_env for e in _team(context).values() if e.api_key_env}
    missing = sorted(name for name in variables if not context.environ.get(name, "").strip())
    if missing:
        fix = "set it for a run with real models; a rehearsal needs none"
        near = [name for name in nearest(missing[0], context.environ) if name.upper() != missing[0]]
        hint = f" (there is {near[0]})" if near and near[0].endswith("_KEY") else ""
        return Found("fail", f"{', '.join(missing)} not set{hint}", fix)
    return Found("ok", f"{', '.join(sorted(variables))} set" if variables else "none is needed")


def reachable(context: Context) -> Found:
    """A connection to each endpoint's host, with TLS where it has it; nothing is sent, no key at all."""
    places = {url: _place(url) for url in sorted({str(e.base_url) for e in _team(context).values()})}
    if not places:
        return Found("skip", "the condition names no endpoint")
    errors = connect_all(set(places.values()))
    failed = [f"{place[1]}:{place[2]} {errors[place]}" for place in dict.fromkeys(places.values()) if errors[place]]
    if failed:
        fix = "check network, proxy and base_url; a rehearsal needs no network"
        return Found("fail", f"no connection to {', '.join(failed)}", fix)
    return Found("ok", ", ".join(dict.fromkeys(f"{host}:{port}" for _, host, port in places.values())))


def connect_all(places: set[tuple[bool, str, int]]) -> Mapping[tuple[bool, str, int], str]:
    """What went wrong with a connection to each (with TLS, host, port); an empty text where nothing did."""
    errors = dict.fromkeys(places, f"gave no answer within {CONNECT_S:g} s")

    def attempt(place: tuple[bool, str, int]) -> None:
        errors[place] = _connect(*place)

    # Daemons: a look-up of a name can't be cut short, and must not hold up the end.
    threads = [threading.Thread(target=attempt, args=(place,), daemon=True) for place in places]
    for thread in threads:
        thread.start()
    end = time.monotonic() + CONNECT_S
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    return dict(errors)


def _connect(secure: bool, host: str, port: int) -> str:
    try:
        with socket.create_connection((host, port), timeout=CONNECT_S) as plain:
            if secure:
                ssl.create_default_context().wrap_socket(plain, server_hostname=host).close()
    except OSError as error:
        return f"({error.strerror or error})"
    return ""


def _place(url: str) -> tuple[bool, str, int]:
    """Where a connection goes: to the proxy that the environment names for the host, or else to the host itself."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    proxy = None if urllib.request.proxy_bypass(host) else urllib.request.getproxies().get(parts.scheme)
    if proxy:
        of_proxy = urlsplit(proxy)
        return False, of_proxy.hostname or "", of_proxy.port or 80
    secure = parts.scheme == "https"
    return secure, host, parts.port or (443 if secure else 80)


def _team(context: Context) -> Mapping[str, Endpoint]:
    names = manifest.load(context.manifest).endpoints
    if set(names) == {endpoints.SCRIPTED}:
        return {}
    return endpoints.for_team(names, context.endpoint_config, rehearsal=False)


CHECKS = (
    Check("conditions", conditions),
    Check("endpoints", known_endpoints, needs=("conditions",)),
    Check("api keys", api_keys, needs=("endpoints",), required=False),
    Check("reachable", reachable, needs=("endpoints",), required=False),
)
