"""The production stack and trials in Docker, side by side with Harbor's own agent `oracle` under the same overlay.

Needs a Docker engine and the images: of the stack (BUZZ_IMAGE and its like name others) and of the task.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from bench.docker import engine
from bench.perf import Figure
from bench.perf.pipeline import TASK, Bench, installation
from bench.perf.timing import oracle, wall_s
from bench.stack.project import kept, remove

RUNS = 5
BATCH_RUNS = 3
UP_RUNS = 9
REFERENCE_S = {1: 20.5, 4: 28.1, 8: 53.8}
"""The reference harness on a like task: wall seconds of 1, of 4 and of 8 trials (REFERENCE.md sections 1 and 4)."""


def measure() -> Iterator[Figure]:
    """What Docker costs. Without an engine it says so, and has no figures."""
    if problem := engine.problem("inv perf, stack"):
        print(problem, file=sys.stderr)
        return
    with installation() as bench:
        yield from _trials(bench)
        yield from _up(bench)


def _trials(bench: Bench) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as home:
        task = _solvable(Path(home))
        bench.rehearse(task, "-e", "docker", "-k", "1")
        wall_s(*oracle(task, Path(home), "warm"))
        ours: list[float] = []
        theirs: list[float] = []
        for number in range(RUNS):
            theirs.append(wall_s(*oracle(task, Path(home), f"o{number}")))
            ours.append(bench.rehearse(task, "-e", "docker", "-k", "1").wall_s)
        yield Figure("a rehearsal of one trial in Docker", median(ours), "s", 6.0, note=_reference(1))
        yield Figure("Harbor's oracle on the same task", median(theirs), "s")
        ratio = median(own / other for own, other in zip(ours, theirs, strict=True))
        yield Figure("ours against the oracle, pair by pair", ratio, "x", 1.5)
        for trials, target in ((4, 12.0), (8, 22.0)):
            runs = [bench.rehearse(task, "-e", "docker", "-k", str(trials), "-n", "4") for _ in range(BATCH_RUNS)]
            yield Figure(
                f"{trials} trials at -n 4", median(r.wall_s for r in runs), "s", target, note=_reference(trials)
            )


def _up(bench: Bench) -> Iterator[Figure]:
    try:
        began = time.perf_counter()
        bench.inv("up", "--stack", "compose")
        yield Figure("inv up --stack compose, images here, from nothing", time.perf_counter() - began, "s")
        walls = []
        for _ in range(UP_RUNS):
            began = time.perf_counter()
            bench.inv("up", "--stack", "compose")
            walls.append(time.perf_counter() - began)
        yield Figure("inv up --stack compose when it is up", median(walls), "s", 0.6)
    finally:
        if known := kept(bench.state_dir):
            remove(known.name, volumes=True)


def _solvable(home: Path) -> Path:
    """A copy of the task with a solution for the oracle to upload and run; it need not solve anything."""
    task = home / TASK.name
    shutil.copytree(TASK, task)
    (task / "solution").mkdir(exist_ok=True)
    (task / "solution" / "solve.sh").write_text("#!/bin/bash\ntrue\n", encoding="utf-8")
    return task


def _reference(trials: int) -> str:
    return f"the reference: {REFERENCE_S[trials]:g} s"
