"""A PostgreSQL server on a data directory: made, started, adopted and stopped. Commits are durable.

The server outlives its starter. Whoever comes next knows it by postmaster.pid and adopts it. It listens on a
unix socket in a private directory and nowhere else, so it needs no port and no password. Facts: MEASURED.md
section 1.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from bench.errors import BuzzbenchError, MachineLacks
from bench.files import locked
from bench.processes import HAS_PROC, ProcessId, command_line, identify, wait_until
from bench.stack import pgprograms
from bench.stack.children import keep, new_lines, size_bytes
from bench.stack.process import environment

PORT = 5432
"""Only names the socket file."""
USER = "buzz"
MAX_CONNECTIONS = 100
FAST_STOP_S = 10.0
IMMEDIATE_STOP_S = 5.0
START_S = 300.0
"""Recovery after a crash may read much WAL; a server that dies meanwhile is noticed at once."""
WHY = re.compile(r"\b(?:FATAL|PANIC|ERROR|error): ")
"""The lines in which PostgreSQL's programs say what went wrong."""
SOCKET_LINE = 4
STATUS_LINE = 7
"""Of postmaster.pid, from 0: `starting`, `ready`, `stopping` or `standby` (what pg_ctl waits for)."""


@dataclass(frozen=True)
class Postgres:
    """One server, running or not."""

    programs: Path
    data_dir: Path
    socket_dir: Path
    log: Path
    mode: str = "plain"
    """See `pgprograms.launch_mode`."""
    die_with: int = 0
    """A pid whose death stops the server, 0 for none: for tests, so that no server is left behind."""

    @property
    def dsn(self) -> str:
        return f"host={self.socket_dir} port={PORT} user={USER} dbname=postgres"

    def process(self) -> ProcessId | None:
        """The postmaster of this data directory, if it lives."""
        named = self._named()
        return named if named and self._serves_us(named.pid) else None

    def socket_dir_in_use(self) -> Path | None:
        """Where the running server's socket is: its starter's environment may have named another place than ours."""
        lines = self._pid_file()
        return Path(lines[SOCKET_LINE]) if len(lines) > STATUS_LINE and self.process() else None

    def ensure(self) -> ProcessId:
        """Have it running and ready: adopt what runs, else start it; where there is no database, make it.

        Raises MachineLacks, or BuzzbenchError with the line that says why. Of two processes that call this at
        once, one starts the server and both get it.
        """
        with self._locked():
            running = self.process()
            if running is not None:
                if wait_until(lambda: self._status() != "starting" or not running.alive(), START_S) and self.accepts():
                    return running
                self._stop(running)
            self._check_version()
            if not (self.data_dir / "PG_VERSION").exists():
                self._make()
            return self._start()

    def accepts(self) -> bool:
        """Whether it takes connections on our socket."""
        program = str(self.programs / "pg_isready")
        asked = ["-q", "-t", "3", "-h", str(self.socket_dir), "-p", str(PORT), "-U", USER, "-d", "postgres"]
        return subprocess.run([program, *asked], env=environment(os.environ), check=False).returncode == 0

    def stop(self) -> bool:
        """Stop it without waiting for its clients, with all that was committed kept. Whether it ran."""
        with self._locked():
            running = self.process()
            return running is not None and self._stop(running)

    def remove(self) -> None:
        """Stop it and drop all of its data."""
        self.stop()
        with self._locked():
            if self.data_dir.exists():
                shutil.rmtree(self.data_dir)

    def _stop(self, running: ProcessId) -> bool:
        # SIGTERM would wait for the clients to leave; SIGQUIT stops at once, the next start recovers.
        return running.stop((signal.SIGINT, FAST_STOP_S), (signal.SIGQUIT, IMMEDIATE_STOP_S))

    def _make(self) -> None:
        """Make the database in a directory beside, renamed when whole: a kill leaves no half of one."""
        part = self.data_dir.with_name(self.data_dir.name + ".part")
        if part.exists():
            shutil.rmtree(part)
        part.mkdir(mode=0o700)
        self._give(part)
        options = ["-D", str(part), "-U", USER, "--auth=trust", "-E", "UTF8", f"--locale={_locale()}"]
        made = self._run([str(self.programs / "initdb"), *options])
        if made.returncode:
            shutil.rmtree(part)
            with contextlib.suppress(OSError), self.log.open("a", encoding="utf-8") as log:
                log.write(made.stdout)
            raise self._failure("PostgreSQL could not make its database", made.stdout)
        if self.data_dir.exists():
            self.data_dir.rmdir()
        part.rename(self.data_dir)

    def _start(self) -> ProcessId:
        self._drop_pid_file()
        self._give(self.socket_dir)
        options = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.socket_dir),
            "unix_socket_permissions": "0700",
            "max_connections": str(MAX_CONNECTIONS),
            "shared_buffers": "64MB",
            "fsync": "on",
            "synchronous_commit": "on",
        }
        program = [str(self.programs / "postgres"), "-D", str(self.data_dir), "-p", str(PORT)]
        for name, value in options.items():
            program += ["-c", f"{name}={value}"]
        before = size_bytes(self.log)
        with self.log.open("ab") as log:
            child = keep(
                subprocess.Popen(
                    pgprograms.command(self.mode, program, die_with=self.die_with),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=environment(os.environ),
                    cwd="/",
                    start_new_session=True,
                )
            )
        try:
            ready = wait_until(lambda: self._status() == "ready" or child.poll() is not None, START_S)
        except BaseException:
            child.send_signal(signal.SIGINT)
            raise
        started = identify(child.pid)
        if not ready or started is None:
            child.kill()
            raise self._failure("PostgreSQL did not start", new_lines(self.log, before))
        return started

    def _check_version(self) -> None:
        try:
            made_by = (self.data_dir / "PG_VERSION").read_text(encoding="ascii").strip()
        except FileNotFoundError:
            return
        ours = pgprograms.major_version(self.programs)
        if made_by != ours:
            raise MachineLacks.of(
                str(self.data_dir),
                f"made by PostgreSQL {made_by}, and the programs here are of {ours}",
                "drop its data with `inv up --fresh`, or keep it by setting BUZZBENCH_PG_BIN to the programs "
                f"of PostgreSQL {made_by} (pg_dump there moves it)",
            )

    def _named(self) -> ProcessId | None:
        """The living process that postmaster.pid names: the postmaster, or one that got its pid later."""
        lines = self._pid_file()
        return identify(int(lines[0])) if lines and lines[0].strip().isdecimal() else None

    def _serves_us(self, pid: int) -> bool:
        """Whether it is a postmaster of this directory, by whatever path: it works in it, and has it as an argument."""
        places = [f"/proc/{pid}/cwd"] if HAS_PROC else []
        return any(_same(place, self.data_dir) for place in [*places, *command_line(pid)])

    def _drop_pid_file(self) -> None:
        """Remove what a killed server left, since PostgreSQL takes any living process of that pid for the server.

        Not where that process can't be looked at: then PostgreSQL decides.
        """
        named = self._named()
        if named is None or command_line(named.pid):
            (self.data_dir / "postmaster.pid").unlink(missing_ok=True)

    def _pid_file(self) -> list[str]:
        try:
            return (self.data_dir / "postmaster.pid").read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []

    def _status(self) -> str:
        lines = self._pid_file()
        return lines[STATUS_LINE].strip() if len(lines) > STATUS_LINE else "starting"

    def _give(self, directory: Path) -> None:
        if self.mode.startswith("drop:"):
            uid = int(self.mode.removeprefix("drop:"))
            os.chown(directory, uid, uid)

    def _run(self, program: list[str]) -> subprocess.CompletedProcess[str]:
        full = pgprograms.command(self.mode, program, die_with=os.getpid() if sys.platform == "linux" else 0)
        return subprocess.run(
            full,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            env=environment(os.environ),
            cwd="/",
        )

    def _failure(self, what: str, output: str) -> BuzzbenchError:
        """The failure with the line that tells why; everything is in the log."""
        lines = [line.strip() for line in output.splitlines() if line.strip()] or ["it said nothing"]
        why = next((line[found.start() :] for line in reversed(lines) if (found := WHY.search(line))), lines[-1])
        return BuzzbenchError(f"{what}: {why}", fix=f"the rest is in {self.log}")

    def _locked(self) -> AbstractContextManager[None]:
        return locked(self.data_dir.with_name("pg.lock"))


def _same(place: str, directory: Path) -> bool:
    try:
        return directory.samefile(place)
    except OSError:
        return False


def _locale() -> str:
    """UTF-8 by code point, the same on every machine; macOS has no such locale by that name."""
    return "C.UTF-8" if sys.platform == "linux" else "C"
