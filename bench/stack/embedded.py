"""The stack without Docker: PostgreSQL from a wheel, and our relay and gateway.

`up` may be killed at any point and called again: what runs is known by records on disk and adopted if it is sound, else
replaced. One process at a time changes the stack, the others wait for it.
"""

from __future__ import annotations

import json
import shutil
import signal
import time
from dataclasses import asdict
from pathlib import Path

from bench.errors import BuzzbenchError, InvalidInput, Problem, raise_problems
from bench.files import make_private_directory, write_private
from bench.keys import State
from bench.processes import POLL_S, age_s
from bench.reading import jsonfile
from bench.settings import Settings
from bench.stack import ServiceStatus, StackAddress, StackStatus, address, forget_address, paths, ports, probe, services
from bench.stack.jobs import changing, refuse_while_running, running_jobs
from bench.stack.postgres import Postgres
from bench.stack.process import Ready, Starting
from bench.stack.services import LOOPBACK, Wanted

PROVE_S = 10.0
"""For a relay that has to find its database again."""


def up(settings: Settings, state: State, *, fresh: bool = False) -> StackAddress:
    """Have the stack running, with a signed write read back through it. `fresh` drops its data first, never the keys.

    Raises MachineLacks (a port is taken, PostgreSQL can't run), InvalidInput (the database is of other keys) and
    BuzzbenchError; after a failure nothing runs that this call started.
    """
    make_private_directory(settings.state_dir)
    make_private_directory(settings.state_dir / "logs")
    with changing(settings.state_dir):
        postgres = services.postgres(settings)
        if fresh:
            refuse_while_running(settings.state_dir, "--fresh")
            _stop(settings, postgres)
            postgres.remove()
        _claim_database(settings.state_dir, postgres, state)
        relay = services.wanted_relay(settings, state, postgres.dsn)
        return _bring_up(settings, postgres, relay, services.wanted_gateway(settings))


def down(settings: Settings) -> bool:
    """Stop every service; data and keys stay. Whether anything ran. Raises BuzzbenchError while a job runs."""
    if not settings.state_dir.is_dir():
        return False
    with changing(settings.state_dir):
        refuse_while_running(settings.state_dir, "inv down")
        return _stop(settings, services.postgres(settings))


def status(settings: Settings) -> StackStatus:
    """What runs now. Changes nothing, and asks no service."""
    if not settings.state_dir.is_dir():
        return StackStatus((), (), None)
    database = services.postgres(settings).process()
    shown = [
        ServiceStatus("postgres", "stopped")
        if database is None
        else ServiceStatus("postgres", "running", database.pid, None, age_s(database.pid))
    ]
    shown.append(services.status(services.relay(settings), settings.relay_port))
    shown.append(services.status(services.gateway(settings), settings.gateway_port))
    return StackStatus(tuple(shown), tuple(running_jobs(settings.state_dir)), address(settings.state_dir))


def _bring_up(settings: Settings, postgres: Postgres, relay: Wanted, gateway: Wanted) -> StackAddress:
    had_database = postgres.process() is not None
    sound: dict[str, Ready] = {}
    to_start: list[Wanted] = []
    for want in (relay, gateway):
        ready = want.service.running()
        if ready is not None and ready.fingerprint == want.fingerprint:
            sound[want.name] = ready
        else:
            to_start.append(want)
    _check_ports(to_start)
    if any(want.service.process() for want in to_start):
        refuse_while_running(settings.state_dir, "the running stack is of other settings or older code")
    _make_places(settings, postgres)
    started: list[tuple[Wanted, Starting]] = []
    try:
        # Their interpreters load while PostgreSQL starts.
        for want in to_start:
            started.append(_begin(settings, want))
        postgres.ensure()
        for want in (relay, gateway):
            if want.name in sound and not _proved(want, sound[want.name]):
                started.append(_begin(settings, want))
        for want, starting in started:
            starting.configure(want.config)
        for want, starting in started:
            sound[want.name] = starting.wait()
        for want, _ in started:
            _prove(want, sound[want.name])
    except BaseException:
        for _, starting in started:
            starting.cancel()
        if not had_database:
            postgres.stop()
        raise
    found = StackAddress(
        kind="embedded",
        relay_url=settings.relay_url,
        dsn=postgres.dsn,
        gateway_url=f"http://{LOOPBACK}:{sound['gateway'].port}",
        gateway_control=gateway.config["control"],
    )
    if address(settings.state_dir) != found:
        write_private(_address_path(settings), json.dumps(asdict(found), indent=2) + "\n")
    return found


def _begin(settings: Settings, want: Wanted) -> tuple[Wanted, Starting]:
    """Start it instead of what is left of it. Until all is proved, the stack has no address."""
    want.service.stop()
    forget_address(settings.state_dir)
    return want, want.service.begin(want.fingerprint)


def _prove(want: Wanted, ready: Ready) -> None:
    """Use the service until it works. Raises BuzzbenchError with its last answer if it doesn't in time."""
    end = time.monotonic() + PROVE_S
    while True:
        try:
            return want.proof(ready)
        except probe.NotWorking as error:
            if time.monotonic() > end or not ready.process.alive():
                raise BuzzbenchError(str(error), fix=f"its log is {want.service.log}") from None
        time.sleep(POLL_S)


def _proved(want: Wanted, ready: Ready) -> bool:
    try:
        _prove(want, ready)
    except BuzzbenchError:
        return False
    return True


def _check_ports(to_start: list[Wanted]) -> None:
    """Raise MachineLacks for each port that we need and that isn't ours, before anything is started."""
    problems = []
    for want in to_start:
        if not want.port or not ports.taken(want.port):
            continue
        holder, own = ports.holder(want.port), want.service.process()
        if own is None or own.pid != holder.pid:
            fix = f"stop it, or set {want.port_setting} to a free port"
            problems.append(Problem(f"port {want.port} of the {want.name}", f"{holder} holds it", fix, lacks=True))
    raise_problems(problems)


def _stop(settings: Settings, postgres: Postgres) -> bool:
    """Stop all, those that use the database first."""
    users = [services.relay(settings), services.gateway(settings)]
    for process in filter(None, (service.process() for service in users)):
        process.signal(signal.SIGTERM)
    ran = [service.stop() for service in users]
    ran.append(postgres.stop())
    sockets = paths.socket_dir(settings.state_dir)
    forget_address(settings.state_dir)
    shutil.rmtree(sockets, ignore_errors=True)  # there may be none
    return any(ran)


def _make_places(settings: Settings, postgres: Postgres) -> None:
    """The directories outside the state directory: of sockets, and of the data where root can't run PostgreSQL."""
    paths.make_own(paths.socket_dir(settings.state_dir))
    if postgres.mode.startswith("drop:"):
        paths.make_own(postgres.data_dir.parent, mode=0o711)
        postgres.socket_dir.mkdir(mode=0o700, exist_ok=True)


def _claim_database(state_dir: Path, postgres: Postgres, state: State) -> None:
    """Tie the database to the keys it is made for. Raises InvalidInput if it is of others (public case 37)."""
    path = state_dir / "database.json"
    ours = {"owner": state.owner.public, "relay": state.relay.public}
    if postgres.data_dir.exists() and path.exists():
        fix = "delete it if state.json is the one they were made with, or drop the data with `inv up --fresh`"
        theirs = jsonfile.read(path, fix=fix)
        if not theirs.keys() >= ours.keys():
            what = "is damaged (it should hold the public keys that the stack's data belong to)"
            raise InvalidInput.of(str(path), what, fix)
        if theirs != ours:
            raise InvalidInput.of(
                str(postgres.data_dir),
                "the stack's data were written with other keys than those in state.json",
                "restore that state.json, or drop the data with `inv up --fresh`",
            )
        return
    write_private(path, json.dumps(ours))


def _address_path(settings: Settings) -> Path:
    return settings.state_dir / "stack.json"
