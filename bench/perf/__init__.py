"""`inv perf`: speed, measured side by side in one run, with the target each figure has.

A figure that misses its target is shown as missed; the exit code stays 0: a busy machine is no defect of the code.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass

from bench.errors import InvalidInput


@dataclass(frozen=True)
class Figure:
    """One measured value. `target` is the most it may be, with `at_least` the least; None where there is none."""

    name: str
    value: float
    unit: str
    target: float | None = None
    at_least: bool = False
    note: str = ""

    @property
    def met(self) -> bool | None:
        if self.target is None:
            return None
        return self.value >= self.target if self.at_least else self.value <= self.target


def _benchmarks() -> dict[str, Callable[[], Iterable[Figure]]]:
    from bench.perf import forwarder, gateway, pipeline, realagents, relay, resume, stack, startup

    return {
        "startup": startup.measure,
        "cold": pipeline.cold,
        "trial": pipeline.trial,
        "batch": pipeline.batch,
        "done": pipeline.done,
        "realagents": realagents.measure,
        "resume": resume.measure,
        "relay": relay.measure,
        "forwarder": forwarder.measure,
        "stack": stack.measure,
        "gateway": gateway.measure,
    }


def perf(only: str, *, as_json: bool) -> None:
    """Run one benchmark or all, and print their figures as they come. Raises InvalidInput for an unknown name."""
    known = _benchmarks()
    if only and only not in known:
        raise InvalidInput.of("--only", f"no such benchmark: {only!r}", f"give one of {', '.join(known)}")
    figures: list[Figure] = []
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, load {os.getloadavg()[0]:.1f}", file=sys.stderr)
    for name, measure in known.items():
        if only in ("", name):
            for figure in measure():
                figures.append(figure)
                if not as_json:
                    print(f"{name:8} {_line(figure)}", flush=True)
    if as_json:
        print(json.dumps({"cores": os.cpu_count(), "figures": [asdict(f) | {"met": f.met} for f in figures]}, indent=2))


def _line(figure: Figure) -> str:
    verdict = {True: "met", False: "MISSED", None: ""}[figure.met]
    bound = "" if figure.target is None else f"{'>=' if figure.at_least else '<='} {figure.target:g} {figure.unit}"
    note = f"  ({figure.note})" if figure.note else ""
    return f"{figure.name:52} {figure.value:9.3f} {figure.unit:6} {bound:12} {verdict}{note}".rstrip()
