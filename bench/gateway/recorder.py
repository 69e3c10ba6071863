"""Records a job's model calls on a cassette: what each agent asked and got, in the order of its trial.

A line is written when a call ends, so that what a killed gateway leaves is a cassette of what was answered until then.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from bench.files import write_atomically
from bench.gateway import cassette, upkeep
from bench.gateway.cassette import Address, Header
from bench.gateway.normalise import Names
from bench.gateway.protocol import Issue
from bench.gateway.redaction import Redaction
from bench.gateway.tape import Run, Tape

log = logging.getLogger(__name__)


class Attempts:
    """Numbers the attempts at each task in the order in which they first come, after those that `counts` has."""

    def __init__(self, counts: Mapping[str, int] = MappingProxyType({})) -> None:
        self._numbers: dict[tuple[str, ...], int] = {}
        self._counts = dict(counts)

    def number(self, task: str, *key: str) -> int:
        """The attempt's number; `key` tells it from the task's others."""
        if (task, *key) not in self._numbers:
            self._counts[task] = self._counts.get(task, 0) + 1
            self._numbers[task, *key] = self._counts[task]
        return self._numbers[task, *key]


def run_of(issue: Issue) -> tuple[str, str]:
    """What tells one run of a trial from another: a trial that is run again has another channel."""
    return issue.trial, issue.context.channel if issue.context else ""


def names_of(issue: Issue) -> Names:
    """The names of what an agent is told from the start: its trial's channel and everybody's key."""
    context = issue.context
    if context is None:
        return Names({})
    return Names({context.channel: "channel", **{key: f"key {name}" for name, key in context.members.items()}})


class Recorder:
    """The cassette of one job, as it grows."""

    def __init__(self, path: Path, secrets: Iterable[str], attempts: Attempts) -> None:
        self._path, self._secrets, self._attempts = path, tuple(secrets), attempts
        self._file = path.open("ab", buffering=0)
        self._runs: dict[tuple[str, str], Run] = {}

    @classmethod
    def begin(cls, path: Path, header: Header, secrets: Iterable[str]) -> Recorder:
        """The cassette at `path`, from which `secrets` are kept out. Raises OSError.

        One that is there already, of a job that goes on, keeps the trials whose directories are still beside it.
        """
        counts: dict[str, int] = {}
        lines = cassette.header_line(header)
        if path.exists() and (before := path.read_bytes()):
            lines, counts = upkeep.reopened(before, lambda trial: (path.parent / trial).is_dir())
        write_atomically(path, lines.decode())
        return cls(path, secrets, Attempts(counts))

    def tape(self, issue: Issue, token: str) -> Tape:
        """Where the calls of an agent that gets a token go; one that gets another goes on where it was."""
        run = self._runs.setdefault(run_of(issue), Run(issue.trial))
        if issue.agent not in run.tapes:
            attempt = self._attempts.number(issue.task, *run_of(issue))
            redact = Redaction(self._secrets)
            run.tapes[issue.agent] = Tape(
                Address(issue.task, attempt, issue.agent, 0), run, names_of(issue), redact, self._write
            )
        run.tapes[issue.agent].redact.learn(token)
        return run.tapes[issue.agent]

    def close(self) -> None:
        """Finish the cassette, durable and in order. Where there is no room for that, it stays as it was written."""
        self._file.close()
        try:
            write_atomically(self._path, upkeep.tidied(self._path.read_bytes()).decode())
        except OSError as error:
            log.warning("%s stays unsorted: %s", self._path, error.strerror)

    def _write(self, lines: bytes) -> None:
        view = memoryview(lines)
        while view:
            view = view[self._file.write(view) :]
