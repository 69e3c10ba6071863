"""`python -m bench.gateway`: the gateway's process. Its configuration comes on standard input, its log on stderr."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys

import uvloop
from aiohttp import web

from bench.errors import BuzzbenchError
from bench.files import write_private
from bench.gateway import config, control, service, upstream
from bench.gateway.jobs import Registry

SHUTDOWN_S = 0.3
"""How long answers under way may take once every call is cut: the process ends within a second of SIGTERM."""

log = logging.getLogger("bench.gateway")


async def serve(given: config.Config) -> None:
    """Serve until SIGTERM or SIGINT; then cut and book what is under way."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    registry = Registry()
    client = upstream.session()
    runner = web.ServerRunner(service.server(registry, client), shutdown_timeout=SHUTDOWN_S)
    await runner.setup()
    try:
        site = web.TCPSite(runner, given.host, given.port)
        await site.start()
        port = runner.addresses[0][1]
        if given.bridge:
            await web.TCPSite(runner, given.bridge, port).start()
        leases = await control.serve(given.control, registry, f"http://{given.host}:{port}")
        write_private(given.ready_file, json.dumps({"port": port, "pid": os.getpid()}))
        log.info("serving on %s:%d", given.host, port)
        await stop.wait()
        leases.close()
        await registry.close()
        given.control.unlink(missing_ok=True)
    finally:
        await runner.cleanup()
        await client.close()
    log.info("stopped; %d calls came with no known token", registry.strangers)


def main() -> int:
    """Run the gateway; return the exit code."""
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    try:
        given = config.read(sys.stdin.read())
        uvloop.run(serve(given))
    except (BuzzbenchError, OSError) as error:
        print(error, file=sys.stderr)
        return error.exit_code if isinstance(error, BuzzbenchError) else 1
    return 0
