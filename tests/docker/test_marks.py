"""Labels: whose a container is, and whether its process still lives."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from bench.docker import marks
from bench.docker.marks import Owner
from bench.processes import ProcessId, identify


def test_a_process_marks_what_it_starts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (marks.STATE_VARIABLE, marks.PROCESS_VARIABLE):
        monkeypatch.setenv(name, "")
    marks.mark_this_process(tmp_path)
    assert os.environ[marks.STATE_VARIABLE] == str(tmp_path)
    owner = Owner.parse(os.environ[marks.PROCESS_VARIABLE])
    assert owner == Owner(platform.node(), identify(os.getpid()))  # type: ignore[arg-type]
    assert not owner.is_gone


def test_an_owner_is_gone_when_its_process_is() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        process = identify(child.pid)
        assert process
        owner = Owner(platform.node(), process)
        assert not owner.is_gone
        child.kill()
    assert owner.is_gone


def test_nothing_is_known_of_another_hosts_process() -> None:
    assert not Owner("elsewhere", ProcessId(2**22 - 1, "1")).is_gone


@pytest.mark.parametrize("label", ["", "host", "host/12", "host/x/99"])
def test_a_label_that_names_no_process_has_no_owner(label: str) -> None:
    assert Owner.parse(label) is None


@pytest.mark.parametrize(
    ("session", "name"),
    [
        ("hello__AbC1234__env", "hello__abc1234__env"),
        ("Task.one__x__env", "task-one__x__env"),
        ("_odd__x__env", "0_odd__x__env"),
    ],
)
def test_a_sessions_compose_project_is_harbors(session: str, name: str) -> None:
    from harbor.environments.docker.docker import _sanitize_docker_compose_project_name

    assert marks.project_name(session) == name == _sanitize_docker_compose_project_name(session)
