"""`python -m bench.relay`: one JSON object on standard input (ARCHITECTURE, 'Services'), then serve until SIGTERM.

Exit codes: 0 stopped, 1 failed while serving, 2 a bad configuration, 3 the port is taken, the database away or in use.
"""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import signal
import socket
import sys
from dataclasses import dataclass, fields
from pathlib import Path

import psycopg
import uvloop
from aiohttp import web

from bench.files import write_private
from bench.nostr import Key
from bench.relay.http import application
from bench.relay.limits import Limits
from bench.relay.relay import Identity, Relay
from bench.relay.writer import DatabaseInUse

log = logging.getLogger("buzzbench.relay")


@dataclass(frozen=True)
class Config:
    """What the relay is told. A port of 0 lets the system choose; the port of `relay_url` is then that one."""

    host: str
    port: int
    relay_url: str
    dsn: str
    relay_private_key: str
    owner_public: str
    ready_file: str


def read_config(text: str) -> Config:
    """The configuration. Raises ValueError naming the field, never a secret."""
    given = json.loads(text)
    if not isinstance(given, dict):
        given = {}
    for field in fields(Config):
        wanted = int if field.name == "port" else str
        if type(given.get(field.name)) is not wanted:
            raise ValueError(f"{field.name} is missing or no {wanted.__name__}")
    if unknown := sorted(given.keys() - {field.name for field in fields(Config)}):
        raise ValueError(f"unknown: {', '.join(unknown)}")
    return Config(**given)


def listen(host: str, port: int) -> list[socket.socket]:
    """Listening sockets on the host; beside 127.0.0.1 on ::1, where the machine has it. Raises OSError."""
    sockets = [socket.create_server((host, port), backlog=512)]
    if host == "127.0.0.1":
        try:
            sockets.append(
                socket.create_server(("::1", sockets[0].getsockname()[1]), family=socket.AF_INET6, backlog=512)
            )
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                sockets[0].close()
                raise
    return sockets


async def serve(config: Config, sockets: list[socket.socket], limits: Limits) -> None:
    """Serve until SIGTERM or SIGINT. Raises psycopg.OperationalError or DatabaseInUse at the start."""
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    port = sockets[0].getsockname()[1]
    url = config.relay_url if config.port else config.relay_url.replace(":0", f":{port}")
    relay = Relay(Identity(url, Key.parse(config.relay_private_key), config.owner_public, config.dsn), limits)
    writing = await relay.start()
    runner = web.AppRunner(application(relay), access_log=None, handle_signals=False, shutdown_timeout=0.2)
    await runner.setup()
    try:
        for each in sockets:
            await web.SockSite(runner, each).start()
        write_private(Path(config.ready_file), json.dumps({"port": port, "pid": os.getpid()}))
        log.info("serving %s", url)
        until = asyncio.create_task(stopped.wait())
        await asyncio.wait((until, writing), return_when=asyncio.FIRST_COMPLETED)
        if writing.done():
            writing.result()
    finally:
        await relay.stop()
        await runner.cleanup()


def main() -> int:
    """Run it; the exit code."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    try:
        config = read_config(sys.stdin.read())
        limits = Limits.of(os.environ)
    except ValueError as error:
        log.error("configuration: %s", error)  # noqa: TRY400 (the message is whole)
        return 2
    try:
        sockets = listen(config.host, config.port)
        uvloop.run(serve(config, sockets, limits))
    except (OSError, psycopg.OperationalError, DatabaseInUse) as error:
        log.error("%s:%s: %s", config.host, config.port, error)  # noqa: TRY400
        return 3
    return 0
