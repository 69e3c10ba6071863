"""How instant the command line feels."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from bench.perf import Figure
from bench.perf.timing import in_turns
from bench.settings import ROOT

RUNS = 15


def measure() -> Iterator[Figure]:
    """`./inv --list` against importing Invoke, and a dry run against `./inv --list`."""
    inv = str(ROOT / "inv")
    taken = in_turns(
        {
            "import": [sys.executable, "-c", "import invoke"],
            "list": [inv, "--list"],
            "dry": [inv, "bench", "--path", "buzz-dataset", "--rehearsal", "--dry-run"],
        },
        runs=RUNS,
    )
    yield Figure(
        "./inv --list / python -c 'import invoke'",
        taken["list"] / taken["import"],
        "x",
        1.5,
        note=f"{taken['list'] * 1e3:.0f} ms",
    )
    yield Figure("dry run / ./inv --list", taken["dry"] / taken["list"], "x", 2.0, note=f"{taken['dry'] * 1e3:.0f} ms")
