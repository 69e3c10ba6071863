"""`inv compare`: does this team solve more than that one, and at what cost? Reads records only.

`sides.py` pairs what both sides played, `terms.py` says in what they differ, `paired.py` has the statistics, `text.py`
shows it all.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.compare.sides import Side, compared
from bench.compare.text import lines, to_json
from bench.errors import InvalidInput
from bench.records.merge import measured, merged
from bench.report import directories_of, read_as_it_is

FORM = "give two: --job A --job B, and with commas where a side has several: --job A1,A2 --job B1,B2"

MOST_NAMED = 3


def compare(jobs_dir: Path, sides: Sequence[str], *, as_json: bool) -> None:
    """The task: print two sides' results side by side. Raises InvalidInput for what can't be paired."""
    if len(sides) != 2:
        raise InvalidInput.of("--job", f"two sides are compared, and {len(sides)} {_are(len(sides))} given", FORM)
    a, b = (side(jobs_dir, given) for given in sides)
    ours, theirs = ({(trial.task, trial.trial) for trial in one.record.trials} for one in (a, b))
    if same := ours & theirs:
        what = f"{len(same)} of its trials {_are(len(same))} A's, too: a side can't be held against itself"
        raise InvalidInput.of(f"--job {sides[1]}", what, FORM)
    found = compared(a, b)
    if not found.pairs:
        listed = ", ".join(f"{one.task} ({one.why})" for one in found.left_out[:MOST_NAMED])
        more = f" and {left} more" if (left := len(found.left_out) - MOST_NAMED) > 0 else ""
        what = f"no task can be paired: {listed or 'there is none'}{more}"
        raise InvalidInput.of("--job", what, "let both sides play the same tasks")
    for record in (*a.jobs, *b.jobs, *(one.record for one in (a, b) if len(one.jobs) > 1)):
        for warning in record.warnings:
            print(f"warning: {warning}", file=sys.stderr)
    print(json.dumps(to_json(found), indent=2) if as_json else "\n".join(lines(found)))


def side(jobs_dir: Path, given: str) -> Side:
    """The side that `--job` names: a job, or several with commas between them. Raises InvalidInput."""
    whole = Path(given).is_dir() or (jobs_dir / given).is_dir()
    names = [given] if whole else [name for name in given.split(",") if name]
    if not names:
        raise InvalidInput.of("--job", "a side without a job", FORM)
    jobs = tuple(read_as_it_is(directory) for directory in directories_of(jobs_dir, names))
    for job in jobs if len(jobs) > 1 else ():
        if not job.plan.known:
            raise InvalidInput.of(
                f"--job {given}", f"nobody can tell what {job.directory.name} measured", "leave it out"
            )
        if measured(job) != measured(jobs[0]):
            what = f"{job.directory.name} measured something else than {jobs[0].directory.name}"
            raise InvalidInput.of(
                f"--job {given}",
                what,
                "jobs of one side are of one condition, with the same upstreams, stack, environment and terms",
            )
    return Side(jobs, merged(jobs)[0] if len(jobs) > 1 else jobs[0])


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
