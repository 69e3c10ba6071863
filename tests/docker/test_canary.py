"""Providers' keys are in nothing that Docker knows: all that a whole job makes in the engine is inspected meanwhile."""

from __future__ import annotations

import json
import subprocess
import threading
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from bench import records
from bench.docker import marks
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
        command = ["docker", "events", "--since", f"{time.time():.3f}", "--format", "{{json .}}"]
        self._events = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self._mark = f"bzb-canary-{uuid.uuid4().hex}"
        self._has_seen_mark = threading.Event()
        self._created: list[dict[str, Any]] = []
        self.inspected: set[tuple[str, str]] = set()
        self.found: set[str] = set()

    def run(self) -> None:
        assert self._events.stdout
        for line in self._events.stdout:
            self._note("the engine's events", line)
            told = json.loads(line)
            if told["Type"] not in KINDS or told["Action"].startswith(("exec_", "health_status")):
                continue  # nothing of an object changes with these
            self._inspect(told["Type"], told["Actor"]["ID"])
            if told["Action"] == "create":
                self._created.append(told)
            if told["Action"] == "create" and told["Type"] == "container":
                # Of images that it builds the engine tells nothing.
                self._inspect("image", told["from"])
            if told["Actor"]["ID"] == self._mark:
                self._has_seen_mark.set()

    def end(self) -> None:
        """Return when all that the engine has told up to now was looked at."""
        for action in ("create", "rm"):
            subprocess.run(["docker", "volume", action, self._mark], check=True, capture_output=True)
        assert self._has_seen_mark.wait(120)
        self._events.terminate()
        self._events.wait()
        self.join()
        assert self._events.stdout
        self._events.stdout.close()

    def made(self, projects: Iterable[str]) -> set[tuple[str, str]]:
        """Every object of these Compose projects that was made meanwhile, as (kind, id)."""
        ours = [event for event in self._created if any(project in json.dumps(event) for project in projects)]
        return {(event["Type"], event["Actor"]["ID"]) for event in ours}

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
    (trial,) = records.read_job(ran.directory).trials
    made = inspector.made((installation.compose_project, marks.project_name(trial.trial)))
    assert (trial.outcome.outcome, trial.outcome.reason, model.refused) == ("passed", "", [])
    assert inspector.found == set()
    assert ran.watch.found == set()
    assert made <= inspector.inspected
    assert {kind for kind, _ in inspector.inspected} == set(KINDS)
    assert sum(kind == "container" for kind, _ in made) >= 6, "five of the stack, and the trial's"
