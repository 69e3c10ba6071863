"""A long-lived service of ours: begun, configured, waited for, known again, and stopped.

Two steps, so that its interpreter loads while PostgreSQL starts: `begin` starts it, and it waits for its configuration
on standard input (ARCHITECTURE, "Services"); `configure` sends that. Who starts it may be killed between
any two lines: before `configure` the service ends with its starter, by the end of its input; after it, a record on disk
tells whoever comes next what runs.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.errors import BuzzbenchError
from bench.files import write_private
from bench.processes import ProcessId, command_line, identify, wait_until
from bench.settings import ROOT
from bench.stack.children import keep, new_lines, size_bytes

READY_S = 60.0
STOP_S = 5.0
SHOWN_LINES = 10
PASSED_ON = {"PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH"}
PASSED_ON_PREFIXES = ("LC_", "SSL_CERT_", "BUZZ_RATE_LIMIT_")
PROXIES = {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"}


@dataclass(frozen=True)
class Ready:
    """A service that serves."""

    process: ProcessId
    port: int
    fingerprint: str
    """Names the settings and code that it was started with."""


@dataclass(frozen=True)
class Service:
    """One of our services, running or not: `python -m <module>`."""

    name: str
    module: str
    home: Path
    """The directory of its record and ready file."""
    log: Path

    @property
    def ready_file(self) -> Path:
        return self.home / f"{self.name}.ready"

    @property
    def record(self) -> Path:
        return self.home / f"{self.name}.json"

    def process(self) -> ProcessId | None:
        """Its process, if it lives, whether it serves yet or not."""
        recorded = self._recorded()
        return None if recorded is None else recorded[0]

    def running(self) -> Ready | None:
        """What serves now, or None."""
        recorded = self._recorded()
        if recorded is None:
            return None
        process, fingerprint = recorded
        port = self.ready_port(process.pid)
        return None if port is None else Ready(process, port, fingerprint)

    def ready_port(self, pid: int) -> int | None:
        """The port that this process says it serves on, None as long as it doesn't."""
        try:
            said = json.loads(self.ready_file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError:
            return None  # not whole yet
        return int(said["port"]) if said.get("pid") == pid else None

    def begin(self, fingerprint: str) -> Starting:
        """Start its interpreter, detached and without the caller's secrets in its environment."""
        self.home.mkdir(mode=0o700, exist_ok=True)
        self.ready_file.unlink(missing_ok=True)
        before = size_bytes(self.log)
        with self.log.open("ab") as log:
            child = keep(
                subprocess.Popen(
                    [sys.executable, *self._words],
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    cwd=ROOT,
                    env=environment(os.environ),
                    start_new_session=True,
                )
            )
        process = identify(child.pid)
        if process is not None:
            record = {**asdict(process), "fingerprint": fingerprint}
            write_private(self.record, json.dumps(record))
        return Starting(self, child, process, before, fingerprint)

    def stop(self) -> bool:
        """End its process and forget it. Whether it lived."""
        process = self.process()
        stopped = process is not None and process.stop((signal.SIGTERM, STOP_S))
        self.record.unlink(missing_ok=True)
        self.ready_file.unlink(missing_ok=True)
        return stopped

    @property
    def _words(self) -> list[str]:
        """Its command line; the last word, which it has no use for, tells it from another installation's."""
        return ["-m", self.module, str(self.home)]

    def _recorded(self) -> tuple[ProcessId, str] | None:
        try:
            record = json.loads(self.record.read_text(encoding="utf-8"))
            process, fingerprint = ProcessId(record["pid"], record["started"]), str(record["fingerprint"])
        except (FileNotFoundError, ValueError, RecursionError, LookupError, TypeError):
            # Nobody's process may be left running because a file was lost: it is looked for, and counts as outdated.
            found = self._search()
            return None if found is None else (found, "")
        return (process, fingerprint) if process.alive() else None

    def _search(self) -> ProcessId | None:
        """Its process by its command line, on systems that show those under /proc."""
        pids = (int(entry.name) for entry in Path("/proc").glob("[0-9]*"))
        return next((identify(pid) for pid in pids if command_line(pid)[1:] == self._words), None)


@dataclass(frozen=True)
class Starting:
    """A service between its start and its serving."""

    service: Service
    child: subprocess.Popen[bytes]
    process: ProcessId | None
    log_before_bytes: int
    fingerprint: str

    def configure(self, config: Mapping[str, Any]) -> None:
        """Send its configuration and close its input."""
        assert self.child.stdin is not None
        try:
            with self.child.stdin as stdin:
                stdin.write(json.dumps(config).encode())
        except BrokenPipeError:
            raise self._failure() from None

    def wait(self) -> Ready:
        """What serves, as soon as it does. Raises BuzzbenchError with its log's last lines if it ends or is late."""
        pid = self.child.pid
        wait_until(lambda: self.service.ready_port(pid) is not None or self.child.poll() is not None, READY_S)
        port = self.service.ready_port(pid)
        if port is None or self.process is None or self.child.poll() is not None:
            raise self._failure()
        return Ready(self.process, port, self.fingerprint)

    def cancel(self) -> None:
        """End it, whatever it is at."""
        if self.child.stdin is not None and not self.child.stdin.closed:
            self.child.stdin.close()
        if self.process is not None:
            self.process.stop((signal.SIGTERM, STOP_S))
        self.service.stop()

    def _failure(self) -> BuzzbenchError:
        code = self.child.poll()
        how = f"does not answer after {READY_S:.0f} s" if code is None else f"ended with status {code}"
        said = new_lines(self.service.log, self.log_before_bytes).strip().splitlines()[-SHOWN_LINES:]
        shown = "\n".join(f"  {line}" for line in said)
        return BuzzbenchError(f"the {self.service.name} {how}; its last lines ({self.service.log}):\n{shown}")


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """What of the caller's environment a service gets: what it needs to run, and no key of any provider."""
    return {
        name: value
        for name, value in given.items()
        if name in PASSED_ON or name.startswith(PASSED_ON_PREFIXES) or name.upper() in PROXIES
    }
