"""Providers' keys are in nothing that Docker knows: all that a whole job makes in the engine is inspected meanwhile."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from bench import records
from tests import canary
from tests.canary import WANTED
from tests.docker.installation import DockerInstallation
from tests.hidden import search

pytestmark = [pytest.mark.docker, pytest.mark.timeout(300)]

KINDS = ("container", "network", "volume", "image")


class Inspector(threading.Thread):
    """Inspects each object of the engine whenever the engine tells of it, and searches what it tells, too."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._since = f"{time.time():.3f}"
        self._events = subprocess.Popen(self._command(), stdout=subprocess.PIPE, text=True)
        self.inspected: set[tuple[str, str]] = set()
        self.found: set[str] = set()

    def run(self) -> None:
        assert self._events.stdout
        for line in self._events.stdout:
            self._note("the engine's events", line)
            told = json.loads(line)
            if told["Type"] in KINDS:
                self._inspect(told["Type"], told["Actor"]["ID"])

    def end(self) -> None:
        self._events.terminate()
        self._events.wait()
        self.join()

    def made(self) -> set[tuple[str, str]]:
        """Every object that was made from the beginning to now, as (kind, id)."""
        command = [*self._command(), "--until", f"{time.time():.3f}", "--filter", "event=create"]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        return {(event["Type"], event["Actor"]["ID"]) for event in map(json.loads, told) if event["Type"] in KINDS}

    def _command(self) -> list[str]:
        return ["docker", "events", "--since", self._since, "--format", "{{json .}}"]

    def _inspect(self, kind: str, name: str) -> None:
        commands = [["docker", kind, "inspect", name]]
        if kind == "image":
            commands.append(["docker", "image", "history", "--no-trunc", name])
        for command in commands:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode == 0:  # else it is gone by now
                self.inspected.add((kind, name))
                self._note(f"{kind} {name}", done.stdout)

    def _note(self, place: str, text: str) -> None:
        self.found |= {f"{place}: {form}" for form in search(text.encode(), WANTED)}


@contextmanager
def inspecting() -> Iterator[Inspector]:
    inspector = Inspector()
    inspector.start()
    try:
        yield inspector
    finally:
        inspector.end()


def test_nothing_that_a_job_makes_in_the_engine_holds_a_key(project: DockerInstallation, task_image: str) -> None:
    installation = replace(project, more=project.with_stack)
    with canary.serving() as model, inspecting() as inspector:
        ran = canary.play(installation, model.url, "-e", "docker", "--stack", "compose")
        made = inspector.made()
    (trial,) = records.read_job(ran.directory).trials
    assert (trial.outcome.outcome, trial.outcome.reason, model.refused) == ("passed", "", [])
    assert inspector.found == set()
    assert ran.watch.found == set()
    assert made <= inspector.inspected
    assert {kind for kind, _ in inspector.inspected} == set(KINDS)
    assert sum(kind == "container" for kind, _ in made) >= 6, "five of the stack, and the trial's"
