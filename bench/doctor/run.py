"""The doctor's round: every check in order, what people and programs read of it, and the exit code."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict

from bench.doctor import data, docker, machine, models, python, stack
from bench.doctor.check import Check, Context, Result, State, run
from bench.errors import MachineLacks

CHECKS: Sequence[Check] = (
    *python.CHECKS,
    *machine.CHECKS,
    *docker.CHECKS,
    *data.CHECKS,
    *models.CHECKS,
    *stack.CHECKS,
)
SIGNS: dict[State, str] = {"ok": "✓", "warn": "!", "fail": "✗", "skip": "–"}
COLOURS: dict[State, str] = {"ok": "32", "warn": "33", "fail": "31", "skip": "2"}


def doctor(context: Context, *, strict: bool, as_json: bool) -> int:
    """Print what the checks found: 0, or 3 where one failed; with `strict`, also where one warned or was skipped.

    Where `CI` is set nobody reads a warning, so that it is as strict (public case 50).
    """
    results = run(CHECKS, context)
    if as_json:
        print(json.dumps({"checks": [asdict(result) for result in results], "counts": counts(results)}, indent=2))
    else:
        colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        print("\n".join(lines(results, colour=colour)))
    return exit_code(results, strict=strict or bool(context.environ.get("CI")))


def exit_code(results: Sequence[Result], *, strict: bool) -> int:
    """3 where a check failed. A skipped one is no pass (public case 50): where strictness is asked for, it counts."""
    bad = {"fail", "warn", "skip"} if strict else {"fail"}
    return MachineLacks.exit_code if any(result.state in bad for result in results) else 0


def counts(results: Sequence[Result]) -> dict[State, int]:
    """How many checks ended in each state."""
    return {state: sum(result.state == state for result in results) for state in SIGNS}


def lines(results: Sequence[Result], *, colour: bool = False) -> list[str]:
    """A line for each check, one with its fix below where there is one, and how many there are of each kind."""
    width = max(len(result.name) for result in results)
    shown = []
    for result in results:
        sign = SIGNS[result.state]
        shown.append(f"{_painted(sign, result.state) if colour else sign} {result.name:<{width}}  {result.detail}")
        if result.fix and result.state != "ok":
            shown.append(f"  {'':<{width}}  → {result.fix}")
    shown.append(", ".join(f"{number} {state}" for state, number in counts(results).items() if number))
    return shown


def _painted(text: str, state: State) -> str:
    return f"\x1b[{COLOURS[state]}m{text}\x1b[0m"
