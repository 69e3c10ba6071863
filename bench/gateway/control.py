"""The control socket: JSON lines over a 0600 unix socket; a connection is its job's lease."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import orjson
from pydantic import TypeAdapter, ValidationError

from bench.errors import BuzzbenchError
from bench.gateway import cassette
from bench.gateway.cassette import Cassette
from bench.gateway.jobs import Job, NotAllowed, Principal, Registry
from bench.gateway.protocol import VERSION, AgentUsage, Issue, JobNotice, Notice, Registration

LONGEST_LINE_BYTES = 16 * 1024 * 1024

log = logging.getLogger(__name__)


async def serve(path: Path, registry: Registry, base_url: str) -> asyncio.Server:
    """A server at `path`. Raises OSError where another gateway listens there."""
    await _clear(path)
    before = os.umask(0o177)
    try:
        return await asyncio.start_unix_server(
            lambda reader, writer: _Connection(registry, base_url, reader, writer).run(),
            path,
            limit=LONGEST_LINE_BYTES,
        )
    finally:
        os.umask(before)


async def _clear(path: Path) -> None:
    """Remove a dead gateway's socket."""
    try:
        _, writer = await asyncio.open_unix_connection(path)
    except FileNotFoundError:
        return
    except ConnectionRefusedError:
        await asyncio.to_thread(path.unlink)
        return
    writer.close()
    raise OSError(f"{path}: another gateway listens there")


class _Connection:
    """One client and its job."""

    def __init__(
        self, registry: Registry, base_url: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._registry = registry
        self._base_url = base_url
        self._reader = reader
        self._writer = writer
        self._job: Job | None = None
        self._working: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Serve until the client goes; then its job ends."""
        try:
            while line := await self._reader.readline():
                task = asyncio.create_task(self._serve(line))
                self._working.add(task)
                task.add_done_callback(self._working.discard)
        except (OSError, ValueError) as error:
            log.warning("control connection broke: %s", error)
        finally:
            # What was still asked for dies with the lease; a job that were registered now would never end.
            for task in self._working:
                task.cancel()
            await asyncio.gather(*self._working, return_exceptions=True)
            if self._job is not None:
                log.info("lease of job %s ended", self._job.registration.job)
                await self._registry.end(self._job)
            self._writer.close()

    async def _serve(self, line: bytes) -> None:
        number: Any = None
        try:
            request = orjson.loads(line)
            number = request.pop("id")
            reply = await self._do(request.pop("op"), request)
        except (NotAllowed, BuzzbenchError) as error:
            self._write({"id": number, "ok": False, "error": str(error)})
        except (ValidationError, ValueError, KeyError, TypeError, AttributeError) as error:
            self._write({"id": number, "ok": False, "error": _explained(error)})
        else:
            self._write({"id": number, "ok": True, **reply})

    async def _do(self, op: str, fields: dict[str, Any]) -> dict[str, Any]:
        match op:
            case "hello":
                return {"version": VERSION}
            case "register":
                if self._job is not None:
                    raise NotAllowed(f"this lease has job {self._job.registration.job} already")
                registration = _adapter(Registration).validate_python(fields)
                replayed = await _replayed(registration)
                await self._registry.ended(registration.job)
                self._job = self._registry.register(registration, self._notify, replayed)
                log.info("job %s registered", self._job.registration.job)
                return {}
            case "issue":
                issue = _adapter(Issue).validate_python(fields)
                token, principal = self._registry.issue(self._registered(), issue)
                turns = None if principal.part is None else principal.part.turns
                return {"token": token, "base_url": self._base_url, "turns": turns}
            case "revoke":
                ended = self._registered().of_trial(fields["trial"], fields["agent"])
                await asyncio.gather(*(p.end(float(fields.get("grace_s", 0))) for p in ended))
                return {"usage": await self._booked(ended)}
            case "step":
                self._registered().enter(fields["trial"], str(fields["step"]))
                return {}
            case "rest":
                grace_s, cut = float(fields["grace_s"]), bool(fields["cut"])
                return {"usage": await self._booked(await self._registered().rest(fields["trial"], grace_s, cut=cut))}
            case "usage":
                return {"agents": _usage(self._registered().of_trial(fields["trial"]))}
            case _:
                raise NotAllowed(f"there is no op {op!r}")

    async def _booked(self, principals: list[Principal]) -> dict[str, Any]:
        """What these have used, once the receipts of it are on disk."""
        try:
            await self._registered().journal.synced()
        except OSError as error:
            raise NotAllowed(f"the receipts can't be written: {error.strerror}") from error
        return _usage(principals)

    def _registered(self) -> Job:
        if self._job is None:
            raise NotAllowed("register a job first")
        return self._job

    def _notify(self, notice: Notice | JobNotice) -> None:
        self._write({"notice": "job" if isinstance(notice, JobNotice) else "fault", **asdict(notice)})

    def _write(self, message: Mapping[str, Any]) -> None:
        if not self._writer.is_closing():
            self._writer.write(orjson.dumps(message) + b"\n")


async def _replayed(registration: Registration) -> Cassette | None:
    """The cassette that a job plays, read where it keeps nobody waiting. Raises InvalidInput."""
    if registration.replay is None:
        return None
    return await asyncio.to_thread(cassette.read, Path(registration.replay))


@cache
def _adapter[T](kind: type[T]) -> TypeAdapter[T]:
    return TypeAdapter(kind)


def _usage(principals: list[Principal]) -> dict[str, Any]:
    found: dict[str, AgentUsage] = {p.issue.agent: p.tally.usage for p in principals}
    return {agent: asdict(usage) for agent, usage in found.items()}


def _explained(error: Exception) -> str:
    """What is wrong with a request, without its values: they may hold keys."""
    if isinstance(error, ValidationError):
        faults = error.errors(include_input=False, include_url=False)
        return "; ".join(f"{'.'.join(map(str, f['loc']))}: {f['msg']}" for f in faults)
    if isinstance(error, KeyError):
        return f"{error.args[0]!r} is missing"
    return f"no request: {type(error).__name__}"
