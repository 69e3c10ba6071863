"""Bringing the containers of a Compose project up: images, start, the one healing, proof, and what failed if one did.

Compose waits for healthy services with a patience that a crash loop deserves none of: the containers are watched
meanwhile, and the first that fails ends it, with its last lines.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import IO

from bench.docker.engine import ENGINE_AWAY, DockerFailed, docker, inspect, last_line
from bench.errors import BuzzbenchError, MachineLacks
from bench.settings import ENVIRONMENT
from bench.stack.containers import Container, containers
from bench.stack.probe import NotWorking
from bench.stack.project import Project, remove

START_S = 300.0
"""For all services to start: a database that recovers, the relay's migrations."""
PROVE_S = 120.0
"""For the relay to serve once it runs: Buzz's probe of its storage takes about 25 s (BUZZ.md section 0)."""
HEALTHY_S = 15.0
"""For a relay that calls itself healthy and doesn't work: it may still be finding its database."""
LOOK_S = 0.25
PULL_S = 1800.0

IMAGE_SETTINGS = {
    "relay": "buzz_image",
    "postgres": "postgres_image",
    "redis": "redis_image",
    "minio": "minio_image",
    "minio-init": "mc_image",
}


class StalePassword(Exception):
    """PostgreSQL runs on data that were made with another password."""


def fetch_images(project: Project) -> None:
    """Have the images of all services. Raises MachineLacks for each that can't be pulled."""
    wanted = project.images()
    for service, image in wanted.items():
        if inspect("image", [image]):
            continue
        print(f"pulling {image} for {service}", file=sys.stderr)
        try:
            docker("image", "pull", "--quiet", image, timeout_s=PULL_S)
        except DockerFailed as error:
            if ENGINE_AWAY.search(error.output):
                raise
            setting = ENVIRONMENT.get(IMAGE_SETTINGS.get(service, ""), "")
            fix = f"see to the network or `docker login`, or set {setting} to an image that is here" if setting else ""
            raise MachineLacks.of(
                f"the image {image} of {service}", f"it can't be pulled: {last_line(error.output)}", fix
            ) from None


def start_containers(project: Project, dsn: str) -> None:
    """Have every service started and the database ours. Data of another password are dropped, once (row U2).

    They are this installation's or nobody's: whose they are was asked before. Raises BuzzbenchError.
    """
    try:
        _start(project, dsn)
    except StalePassword:
        print(
            f"the database of {project.name} was made with another password: its data are dropped and made anew",
            file=sys.stderr,
        )
        remove(project.name, volumes=True)
        try:
            _start(project, dsn)
        except StalePassword:
            raise BuzzbenchError(
                "PostgreSQL refuses the password that it was made with", where=project.name, fix="see `inv logs`"
            ) from None


def prove(project: Project, use: Callable[[], None]) -> None:
    """Use the relay until it works. Raises BuzzbenchError with what is wrong if it doesn't in time."""
    end = time.monotonic() + PROVE_S
    while True:
        try:
            return use()
        except NotWorking as error:
            now = time.monotonic()
            if _check(project)["relay"].health == "healthy":
                end = min(end, now + HEALTHY_S)
            if now > end:
                raise BuzzbenchError(str(error), where=project.name, fix="see `inv logs`") from None
        time.sleep(LOOK_S)


def stop_containers(project: Project) -> None:
    """Stop what was started, so that nothing goes on in the background; what it said can still be read."""
    try:
        docker(*project.command("stop")[1:], environment=project.variables, timeout_s=60)
    except DockerFailed as error:
        print(f"{project.name} could not be stopped: {error}", file=sys.stderr)


def _start(project: Project, dsn: str) -> None:
    as_before = {container.id: container.started_at for container in containers(project.name).values()}
    with tempfile.TemporaryFile() as said:
        compose = project.begin("up", "--detach", "--remove-orphans", "relay", output=said.fileno())
        try:
            _watch(project, compose, dsn, as_before)
        finally:
            if compose.poll() is None:
                compose.terminate()
                compose.wait()
        if compose.returncode:
            _check(project)
            raise DockerFailed("docker compose up", _text(said))
    _await_database(project, dsn)


def _watch(project: Project, compose: subprocess.Popen[bytes], dsn: str, as_before: Mapping[str, str]) -> None:
    """Return when Compose is done. Raises BuzzbenchError for a failing service, StalePassword."""
    import psycopg

    end, asked = time.monotonic() + START_S, False
    while compose.poll() is None:
        found = _check(project, as_before)
        database = found.get("postgres")
        if database and database.health == "healthy" and not asked:
            # It may be the one that Compose is about to replace: only its answer to the password counts.
            with contextlib.suppress(psycopg.OperationalError):
                _connect(dsn)
                asked = True
        if time.monotonic() > end:
            slow = ", ".join(f"{c.service} {c.how}" for c in found.values() if c.health != "healthy")
            raise BuzzbenchError(f"not up after {START_S:.0f} s: {slow}", where=project.name, fix="see `inv logs`")
        time.sleep(LOOK_S)


def _check(project: Project, as_before: Mapping[str, str] | None = None) -> dict[str, Container]:
    """The containers. Raises BuzzbenchError with the last lines of one that has failed since it was as before."""
    found = containers(project.name)
    for container in found.values():
        if container.has_failed and (as_before or {}).get(container.id) != container.started_at:
            raise BuzzbenchError(
                f"the service {container.service} {container.how}; its last lines:\n{container.last_lines()}",
                where=project.name,
            )
    return found


def _await_database(project: Project, dsn: str) -> None:
    """Connect as soon as the server takes us. Raises StalePassword, BuzzbenchError if it can't be talked to at all."""
    import psycopg

    end = time.monotonic() + HEALTHY_S
    while True:
        try:
            return _connect(dsn)
        except psycopg.OperationalError as error:
            _check(project)
            if time.monotonic() > end:
                what = f"PostgreSQL can't be reached: {last_line(str(error))}"
                raise BuzzbenchError(what, where=project.name, fix="see `inv logs`") from None
        time.sleep(LOOK_S)


def _connect(dsn: str) -> None:
    """Raises StalePassword, psycopg.OperationalError."""
    import psycopg

    try:
        psycopg.connect(dsn, connect_timeout=10).close()
    except psycopg.OperationalError as error:
        if "password authentication failed" in str(error):
            raise StalePassword from None
        raise


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
