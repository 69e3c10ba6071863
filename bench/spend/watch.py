"""Follows the spend of a job while it runs: a table that renews itself on a terminal, a line a change elsewhere.

It ends with the job, or with Ctrl-C; both are an ordinary end.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Protocol

from bench.spend.sums import Books, JobSpend
from bench.spend.text import headline, lines, to_json
from bench.stack.jobs import running_jobs

LOOK_S = 0.5
"""How often to look at the job's files."""

REST = 4
"""After a look that took long (a job of many calls), so many times as long nothing is done."""


class Screen(Protocol):
    """Where the spend is shown."""

    def show(self, job: JobSpend) -> None: ...

    def end(self, job: JobSpend) -> None: ...


def follow(state_dir: Path, directory: Path, *, as_json: bool) -> None:
    """Show the job's spend until it ends."""
    books = Books(directory)
    with _screen(as_json=as_json) as screen:
        last = _look(books, state_dir)
        try:
            screen.show(last)
            while last.running:
                began = time.monotonic()
                found = _look(books, state_dir)
                if found != last:
                    last = found
                    screen.show(found)
                time.sleep(max(LOOK_S, REST * (time.monotonic() - began)))
        except KeyboardInterrupt:
            pass
        screen.end(last)
    for warning in last.warnings:
        print(f"warning: {warning}", file=sys.stderr)


def _look(books: Books, state_dir: Path) -> JobSpend:
    # Asked first: what a job wrote before it ended is then read in the last look.
    running = books.directory.name in running_jobs(state_dir)
    return books.read(running=running)


@contextmanager
def _screen(*, as_json: bool) -> Iterator[Screen]:
    if as_json:
        yield _JsonLines()
    elif sys.stdout.isatty():
        from rich.live import Live
        from rich.text import Text

        with Live(auto_refresh=False) as live:
            yield _Renewed(lambda text: live.update(Text(text), refresh=True))
    else:
        yield _Lines()


class _Renewed:
    """The tables, each time in place of those before."""

    def __init__(self, draw: Callable[[str], None]) -> None:
        self._draw = draw

    def show(self, job: JobSpend) -> None:
        self._draw("\n".join(lines(job)))

    def end(self, job: JobSpend) -> None:
        self.show(job)


class _Lines:
    """A line for each change, and the tables at the end."""

    def show(self, job: JobSpend) -> None:
        print(f"{datetime.now().astimezone():%H:%M:%S}  {headline(job)}", flush=True)

    def end(self, job: JobSpend) -> None:
        print("\n".join(lines(job)), flush=True)


class _JsonLines:
    """One JSON object a line for each change: the last one is the end's."""

    def show(self, job: JobSpend) -> None:
        print(json.dumps(to_json(job)), flush=True)

    def end(self, job: JobSpend) -> None:
        """It was shown when it came."""
