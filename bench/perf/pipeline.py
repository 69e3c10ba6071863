"""How long the main job takes, on a state, jobs directory and ports of its own: nothing of the person's is touched."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

from bench import records
from bench.errors import BuzzbenchError
from bench.perf import Figure
from bench.perf.timing import quantile
from bench.settings import ENVIRONMENT, ROOT
from bench.stack import address

TASK = ROOT / "buzz-dataset" / "split-and-merge"
ALONE_RUNS = 7
THINK_S = (0.15, 0.45)
"""Model time of one call in the paced benchmark, as in SPIKE.md section 1."""


@dataclass(frozen=True)
class Run:
    """One finished `inv bench`: wall seconds, its tree's CPU seconds, its largest process in bytes, and its job."""

    wall_s: float
    cpu_s: float
    max_rss_bytes: int
    began: float
    directory: Path

    def results(self) -> list[dict[str, Any]]:
        return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(self.directory.glob("*/result.json"))]


class Bench:
    """An installation in a temporary directory, on ports of its own."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.state_dir = home / "state"
        port, postgres_port, metrics_port = _free_ports(3)
        self.relay_url = f"ws://localhost:{port}"
        kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        self._environment = kept | {
            ENVIRONMENT["state_dir"]: str(self.state_dir),
            ENVIRONMENT["jobs_dir"]: str(home / "jobs"),
            ENVIRONMENT["relay_port"]: str(port),
            ENVIRONMENT["postgres_port"]: str(postgres_port),
            ENVIRONMENT["metrics_port"]: str(metrics_port),
        }
        self._jobs = 0

    def inv(self, *arguments: str) -> None:
        self._run([str(ROOT / "inv"), *arguments])

    def rehearse(self, path: Path, *arguments: str, watch: Callable[[int], object] | None = None) -> Run:
        """A rehearsal, timed from the command's start to its end. Raises BuzzbenchError unless every trial passed.

        `watch` is called with the command's pid, again and again until it ends.
        """
        self._jobs += 1
        name = f"perf-{self._jobs}"
        began = time.time()
        clock = time.perf_counter()
        cpu_s, rss = self._run(
            [str(ROOT / "inv"), "bench", "--path", str(path), "--rehearsal", "--job-name", name, *arguments], watch
        )
        run = Run(time.perf_counter() - clock, cpu_s, rss, began, self._home / "jobs" / name)
        job = records.read_job(run.directory)
        if not job.complete or job.counts["failed"]:
            raise BuzzbenchError(f"not every trial passed: {job.counts}, {job.missing} missing", where=name)
        return run

    def _run(self, command: list[str], watch: Callable[[int], object] | None = None) -> tuple[float, int]:
        """(CPU seconds of the command's tree, bytes of its largest process). Raises BuzzbenchError where it fails."""
        with tempfile.TemporaryFile() as said:
            process = subprocess.Popen(command, cwd=ROOT, env=self._environment, stdout=said, stderr=said)
            with _watched(process.pid, watch):
                _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                said.seek(0)
                raise BuzzbenchError(
                    f"ended with {process.returncode}:\n{said.read().decode(errors='replace')}", where=command[1]
                )
        return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


@contextmanager
def _watched(pid: int, watch: Callable[[int], object] | None) -> Iterator[None]:
    if watch is None:
        yield
        return
    over = threading.Event()

    def look() -> None:
        while not over.wait(1.0):
            watch(pid)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _free_ports(count: int) -> list[int]:
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


@contextmanager
def installation(*, up: bool = True) -> Iterator[Bench]:
    """An installation, its stack up and everything imported once; gone at the end."""
    home = Path(tempfile.mkdtemp(prefix="bzb-perf-"))
    bench = Bench(home)
    try:
        if up:
            bench.rehearse(TASK, "-k", "1")
        yield bench
    finally:
        bench.inv("down")
        shutil.rmtree(home)


def cold() -> Iterator[Figure]:
    """From nothing (no keys, no database, stack down) to the first trial's start."""
    waits = []
    for _ in range(3):
        with installation(up=False) as bench:
            run = bench.rehearse(TASK, "-k", "1")
            (result,) = run.results()
            waits.append(_time(result["started_at"]) - run.began)
    yield Figure("from nothing to the first trial's start", median(waits), "s", 4.0)


def trial() -> Iterator[Figure]:
    """One rehearsal trial alone, warm."""
    with installation() as bench:
        runs = [bench.rehearse(TASK, "-k", "1") for _ in range(ALONE_RUNS)]
        inside = [_own_seconds(result) for run in runs for result in run.results()]
    yield Figure("a trial inside Harbor, less environment and verifier", median(inside), "s", 0.2)
    yield Figure("the whole command", median(run.wall_s for run in runs), "s", 2.0)


def batch() -> Iterator[Figure]:
    """32 trials, eight at a time."""
    with installation() as bench:
        alone = bench.rehearse(TASK, "-k", "1", "-n", "8")
        many = bench.rehearse(TASK, "-k", "32", "-n", "8")
        fewer = bench.rehearse(TASK, "-k", "16", "-n", "8")
    each = (many.max_rss_bytes - alone.max_rss_bytes) / 8
    yield Figure("32 trials at -n 8, all passed", many.wall_s, "s", 8.0)
    yield Figure("driver's memory for each concurrent trial", each / 1e6, "MB", 2.0)
    yield Figure(
        "wall of a further trial, 16 to 32 against 1 to 16",
        ((many.wall_s - fewer.wall_s) / 16) / ((fewer.wall_s - alone.wall_s) / 15),
        "x",
    )


def done() -> Iterator[Figure]:
    """From the relay's acceptance of `DONE:` to the trial's knowing of it, eight trials at once, paced."""
    with installation() as bench, tempfile.TemporaryDirectory() as home:
        task = _paced_task(Path(home))
        runs = [bench.rehearse(task, "-k", "8", "-n", "8") for _ in range(4)]
        delays = [delay for run in runs for delay in done_delays_ms(bench, run)]
    name = "DONE: accepted -> seen, 8 trials at once"
    yield Figure(f"{name}, p50", quantile(delays, 0.50), "ms", 10.0, note=f"n={len(delays)}")
    yield Figure(f"{name}, p99", quantile(delays, 0.99), "ms", 50.0)


def _paced_task(home: Path) -> Path:
    """A copy of the task whose scripted model takes its time."""
    from bench.gateway.script import load_script

    task = home / TASK.name
    shutil.copytree(TASK, task)
    path = task / "rehearsal" / "good.yaml"
    script = load_script(path.read_text(encoding="utf-8"), str(path)).wire
    paced = {role: [step | {"think_s": list(THINK_S)} for step in steps] for role, steps in script.items()}
    path.write_text(json.dumps(paced), encoding="utf-8")
    return task


def done_delays_ms(bench: Bench, run: Run) -> list[float]:
    """Milliseconds from the relay's receiving of each trial's `DONE:` (before its commit) to the trial's seeing it."""
    import psycopg

    stack = address(bench.state_dir)
    assert stack
    seen = {}
    for result in run.results():
        facts = result["agent_result"]["metadata"]["buzzbench"]
        seen[facts["done"]["event"]] = facts["done"]["seen_at"]
    with psycopg.connect(stack.dsn) as connection:
        rows = connection.execute(
            "SELECT id, extract(epoch FROM received_at)::float8 FROM relay.events WHERE id = ANY(%s)", [list(seen)]
        ).fetchall()
    return [(seen[event] - received) * 1000 for event, received in rows]


def _own_seconds(result: dict[str, Any]) -> float:
    """The trial's time less the environment's start and the verifier; the team's commands count as ours."""
    environment = sum(_span(result[phase]) for phase in ("environment_setup", "verifier"))
    return _time(result["finished_at"]) - _time(result["started_at"]) - environment


def _span(phase: dict[str, str]) -> float:
    return _time(phase["finished_at"]) - _time(phase["started_at"])


def _time(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
