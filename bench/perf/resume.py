"""How quickly a large job is read back: a thousand finished trials, copies of a real one."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from bench import records
from bench.perf import Figure
from bench.perf.pipeline import TASK, installation
from bench.reading import jsonl
from bench.records import planrecord
from bench.run import resume
from bench.scoring.outcome import classify, facts_from

TRIALS = 1000
RUNS = 5


def measure() -> Iterator[Figure]:
    """Outcomes from results, a whole job read back and planned, and the command that finds nothing to run."""
    with installation() as bench:
        whole = _copies(bench.rehearse(TASK, "-k", "1").directory, "whole", TRIALS)
        rest = _copies(whole, "rest", TRIALS - 1)
        results = [json.loads(path.read_bytes()) for path in whole.glob("*/result.json")]
        outcomes = _median_s(lambda: [classify(facts_from(result)) for result in results])
        reading = _median_s(lambda: records.read_job(whole))
        planning = _median_s(lambda: resume.plan(records.read_job(rest)))
        done = _median_s(lambda: bench.inv("bench", "--resume", whole.name))
        one_more = _median_s(lambda: bench.inv("bench", "--resume", rest.name, "--dry-run"))
    yield Figure(f"outcomes of {TRIALS} parsed results", outcomes, "s", 1.0)
    yield Figure(f"{TRIALS} trials read back from files, outcomes included", reading, "s", 1.0)
    yield Figure(f"a resume of {TRIALS - 1} finished trials planned", planning, "s", 2.0)
    yield Figure("the whole command, nothing to run", done, "s", 2.0)
    yield Figure("the whole dry run, one trial to run", one_more, "s", 2.0)


def _median_s(work: Callable[[], object]) -> float:
    taken = []
    for _ in range(RUNS):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return median(taken)


def _copies(job: Path, name: str, number: int) -> Path:
    """A job of TRIALS attempts beside this one, of which that many are done: copies of its first trial."""
    directory = job.with_name(name)
    directory.mkdir()
    first = records.trial_directories(job)[0]
    receipts = [*jsonl.read(job / records.RECEIPTS, [])]
    book = [*jsonl.read(job / records.JOURNAL, [])]
    lines: dict[str, list[dict[str, Any]]] = {records.RECEIPTS: [], records.JOURNAL: []}
    for index in range(number):
        trial = f"{TASK.name}__{index:07d}"
        shutil.copytree(first, directory / trial)
        own = json.loads((first / "result.json").read_bytes()) | {"trial_name": trial}
        (directory / trial / "result.json").write_text(json.dumps(own), encoding="utf-8")
        of_trial = {"trial": trial}
        lines[records.RECEIPTS] += [r | of_trial | {"call_id": f"{index}-{n}"} for n, r in enumerate(receipts)]
        lines[records.JOURNAL] += [entry | of_trial for entry in book[:2]]
    for file, objects in lines.items():
        (directory / file).write_text("".join(json.dumps(each) + "\n" for each in objects), encoding="utf-8")
    plan = json.loads((job / planrecord.FILE_NAME).read_bytes())
    plan |= {"job": name, "attempts": TRIALS}
    plan["harbor"] |= {"n_attempts": TRIALS, "job_name": name}
    plan["options"] |= {"attempts": TRIALS}
    (directory / planrecord.FILE_NAME).write_text(json.dumps(plan), encoding="utf-8")
    for file in ("config.json", "lock.json", "result.json"):
        shutil.copy(job / file, directory / file)
    return directory
