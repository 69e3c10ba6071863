"""The stack as in production: Buzz's relay with PostgreSQL, Redis and S3 storage in Docker; our gateway on the host.

The same verbs as `embedded`. `up` may be called at any time: what runs and is sound is left alone.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from bench import env
from bench.docker import engine
from bench.docker.engine import DockerFailed
from bench.errors import MachineLacks, Problem, raise_problems
from bench.files import make_private_directory, write_private
from bench.keys import State
from bench.settings import ENVIRONMENT, Settings
from bench.stack import (
    ServiceStatus,
    StackAddress,
    StackStatus,
    address,
    bringup,
    forget_address,
    kind_of,
    paths,
    ports,
    probe,
    services,
)
from bench.stack.containers import Container, containers, publisher
from bench.stack.jobs import changing, refuse_while_running, running_jobs
from bench.stack.project import Kept, Project, anothers, keep, kept, name_for, own_name, remove
from bench.stack.services import LOOPBACK, Wanted

SHOWN = ("postgres", "redis", "minio", "relay")
"""The services of the status; the others do a thing and end, or aren't ours to start."""


def up(settings: Settings, state: State, *, fresh: bool = False) -> StackAddress:
    """Have the stack running, with a signed write read back through it. `fresh` drops its data first, never the keys.

    Raises MachineLacks (no engine or plugin, a port is taken, an image can't be had, the data are another's),
    InvalidInput and BuzzbenchError; after a failure nothing runs that this call started.
    """
    make_private_directory(settings.state_dir)
    make_private_directory(settings.state_dir / "logs")
    with changing(settings.state_dir):
        if fresh:
            refuse_while_running(settings.state_dir, "--fresh")
        elif found := _running(settings, state):
            return found
        raise_problems(filter(None, [engine.problem("--stack compose")]))
        env.env(settings, state)
        project = _project(settings, state)
        _check_owner(project)
        if fresh:
            services.gateway(settings).stop()
            remove(project.name, volumes=True)
        return _bring_up(project)


def down(settings: Settings) -> bool:
    """Remove the containers and stop the gateway; data and keys stay. Whether anything ran.

    Raises BuzzbenchError while a job runs, DockerFailed where the engine doesn't answer.
    """
    known = kept(settings.state_dir)
    # A damaged stack.json is no obstacle: this is the way out of it.
    if known is None or not (kind_of(settings.state_dir) == "compose" or has_containers(settings)):
        return False
    with changing(settings.state_dir):
        refuse_while_running(settings.state_dir, "inv down")
        # Asked before anything is stopped: without an engine the stack is left as it is.
        ours = bool(containers(known.name)) and anothers(known.name, settings.state_dir) is None
        ran = services.gateway(settings).stop()
        if ours:
            remove(known.name)
            ran = True
        _forget(settings)
        return ran


def has_containers(settings: Settings) -> bool:
    """Whether this installation has a stack in Docker. One that never had any is not asked about."""
    known = kept(settings.state_dir)
    try:
        return known is not None and bool(containers(known.name))
    except DockerFailed:
        return False  # without an engine there are no containers either


def status(settings: Settings) -> StackStatus:
    """What runs now. Changes nothing. Raises DockerFailed where the engine doesn't answer."""
    known = kept(settings.state_dir)
    found = containers(known.name) if known else {}
    shown = [_service(name, found.get(name)) for name in SHOWN]
    gateway = services.status(services.gateway(settings), settings.gateway_port)
    return StackStatus((*shown, gateway), tuple(running_jobs(settings.state_dir)), address(settings.state_dir))


def _running(settings: Settings, state: State) -> StackAddress | None:
    """The stack's address if all of it is as it should be, told by using it and without asking the engine."""
    known, found = kept(settings.state_dir), address(settings.state_dir)
    if known is None or found is None or found.kind != "compose":
        return None
    if settings.bridge not in (None, known.bridge) or settings.compose_project not in (None, known.name):
        return None
    project = Project(known.name, settings, state, known.bridge)
    gateway = services.wanted_gateway(settings, known.bridge)
    ready = gateway.service.running()
    if project.fingerprint != known.fingerprint or ready is None or ready.fingerprint != gateway.fingerprint:
        return None
    try:
        gateway.proof(ready)
        _use(settings, state)
    except probe.NotWorking:
        return None
    return found


def _project(settings: Settings, state: State) -> Project:
    known = kept(settings.state_dir)
    name = name_for(settings, known.name if known else None)
    bridge = settings.bridge or engine.bridge_address()
    keep(settings.state_dir, Kept(name, bridge))
    return Project(name, settings, state, bridge)


def _check_owner(project: Project) -> None:
    """Raise MachineLacks if another installation's data are in a project of this name: they are never dropped."""
    if owner := anothers(project.name, project.settings.state_dir):
        raise MachineLacks.of(
            f"the Compose project {project.name}",
            f"its data are those of {owner}",
            f"use that one, or set {ENVIRONMENT['compose_project']}={own_name(project.settings.state_dir)}",
        )


def _bring_up(project: Project) -> StackAddress:
    settings, state = project.settings, project.state
    gateway = services.wanted_gateway(settings, project.bridge)
    serving = gateway.service.running()
    is_sound = serving is not None and serving.fingerprint == gateway.fingerprint
    before = containers(project.name)
    _check_ports(settings, before, gateway)
    if before and (kept_now := kept(settings.state_dir)) and kept_now.fingerprint != project.fingerprint:
        refuse_while_running(settings.state_dir, "the running stack is of other settings, or not whole")
    bringup.fetch_images(project)
    _forget(settings)
    paths.make_own(paths.socket_dir(settings.state_dir))
    if not is_sound:
        gateway.service.stop()
    starting = None if is_sound else gateway.service.begin(gateway.fingerprint)
    try:
        bringup.start_containers(project, dsn(project))
        if starting:
            starting.configure(gateway.config)
            serving = starting.wait()
        assert serving
        bringup.prove(project, lambda: _use(settings, state))
        gateway.proof(serving)
    except BaseException:
        if starting:
            starting.cancel()
        if not before:
            bringup.stop_containers(project)
        raise
    found = StackAddress(
        kind="compose",
        relay_url=settings.relay_url,
        dsn=dsn(project),
        gateway_url=f"http://{LOOPBACK}:{serving.port}",
        gateway_control=gateway.config["control"],
    )
    keep(settings.state_dir, Kept(project.name, project.bridge, project.fingerprint))
    write_private(_address_path(settings), json.dumps(asdict(found), indent=2) + "\n")
    return found


def dsn(project: Project) -> str:
    """The published PostgreSQL. A server that does not know our password is never talked to (public case 36)."""
    values = project.variables
    return (
        f"host={LOOPBACK} port={values['BUZZ_PG_HOST_PORT']} dbname={values['POSTGRES_DB']} "
        f"user={values['POSTGRES_USER']} password='{values['POSTGRES_PASSWORD']}' require_auth=scram-sha-256"
    )


def _use(settings: Settings, state: State) -> None:
    """Write to the relay and read it back. Raises probe.NotWorking."""
    probe.write_and_read_back(settings.relay_port, settings.relay_url.removeprefix("ws://"), state.owner)


def _check_ports(settings: Settings, before: dict[str, Container], gateway: Wanted) -> None:
    """Raise MachineLacks for each port that we need and somebody else holds, before anything is started."""
    own = {port for container in before.values() for port in container.ports}
    serving = gateway.service.running()
    own |= {serving.port} if serving else set()
    problems = []
    for name in ("relay_port", "postgres_port", "metrics_port", "gateway_port"):
        port = getattr(settings, name)
        if port and port not in own and ports.taken(port):
            holder = publisher(port) or str(ports.holder(port))
            fix = f"stop it, or set {ENVIRONMENT[name]} to a free port"
            where = f"port {port} of {name.removesuffix('_port')}"
            problems.append(Problem(where, f"{holder} holds it", fix, lacks=True))
    raise_problems(problems)


def _service(name: str, container: Container | None) -> ServiceStatus:
    if container is None or container.status != "running":
        return ServiceStatus(name, "stopped")
    port = min(container.ports, default=None)
    return ServiceStatus(name, "running", port=port, uptime_s=container.age_s)


def _forget(settings: Settings) -> None:
    """Until all is proved, the stack has no address."""
    forget_address(settings.state_dir)


def _address_path(settings: Settings) -> Path:
    return settings.state_dir / "stack.json"
