"""`inv spend`: what a job's model calls cost, by agent, role, model and trial, and how near its caps are.

`sums.py` adds up a job's files, `text.py` shows it to people, `watch.py` follows a job that runs.
"""

from __future__ import annotations

import json
import sys

from bench.settings import Settings


def spend(settings: Settings, job: str, *, watch: bool, as_json: bool) -> None:
    """The task: print what the job cost, by default the newest. Raises InvalidInput for what is no job."""
    from bench.report import directories_of
    from bench.spend.sums import Books
    from bench.spend.text import lines, to_json
    from bench.stack.jobs import running_jobs

    (directory,) = directories_of(settings.jobs_dir, [job] if job else [])
    if watch:
        from bench.spend.watch import follow

        follow(settings.state_dir, directory, as_json=as_json)
        return
    found = Books(directory).read(running=directory.name in running_jobs(settings.state_dir))
    for warning in found.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    print(json.dumps(to_json(found), indent=2) if as_json else "\n".join(lines(found)))
