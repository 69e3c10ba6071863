"""What the parent makes of the ways that its Harbor child can end."""

from __future__ import annotations

import contextlib
import io
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.errors import BuzzbenchError
from bench.run import parent
from bench.run.keeper import Keeper
from bench.run.progress import Progress

CHILD = """#!{python}
import json, os, sys
order = json.loads(sys.stdin.readline())
assert "SECRET_KEY" not in os.environ and os.environ["BUZZBENCH_RUN_DIR"]
os.write(int(sys.argv[3]), {said!r})
sys.exit({code})
"""


class Absent(Keeper):
    """Keeps no handles: there is no PostgreSQL here."""

    def open(self) -> None:
        pass


def ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, *events: dict[str, Any], torn: str = "") -> Any:
    """How a job ends whose child says these events and then ends with this code."""
    said = "".join(json.dumps(event) + "\n" for event in events) + torn
    program = tmp_path / "child"
    program.write_text(CHILD.format(python=sys.executable, said=said.encode(), code=code))
    program.chmod(0o700)
    monkeypatch.setattr("sys.executable", str(program))
    monkeypatch.setenv("SECRET_KEY", "canary")
    order = {"config": {"jobs_dir": str(tmp_path), "job_name": "lb-team"}, "trials": 1, "kept": 0, "provider_keys": {}}
    with Progress("lb-team", 1, stream=io.StringIO()) as progress, (tmp_path / "claim").open("w") as claim:
        return parent._run_child(order, tmp_path, ("SECRET_KEY",), progress, claim.fileno(), Absent("", "lb-team"))


def test_a_child_that_is_done_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ended(tmp_path, monkeypatch, 0, {"event": "created", "trials": 1}, {"event": "done"}) is None


@pytest.mark.parametrize(("kind", "code"), [("stopped", 1), ("budget", 4), ("waiting", 75)])
def test_a_stop_of_the_job_has_its_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, code: int
) -> None:
    error = ended(tmp_path, monkeypatch, 1, {"event": "stopped", "kind": kind, "reason": "enough", "exit_code": code})
    assert isinstance(error, BuzzbenchError)
    assert (str(error), error.exit_code) == ("stopped: enough", code)


def test_what_the_child_says_of_its_failure_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = ended(tmp_path, monkeypatch, 1, {"event": "failed", "message": "no such task", "exit_code": 2})
    assert (str(error), error.exit_code) == ("no such task", 2)


@pytest.mark.parametrize("torn", ["", '{"event": "do'])
def test_a_child_that_ends_without_a_word_is_told_with_the_place_of_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, torn: str
) -> None:
    error = ended(tmp_path, monkeypatch, 7, {"event": "created", "trials": 1}, torn=torn)
    assert str(error) == f"Harbor's process ended with 7 before the job was done; see {tmp_path}/harbor.log"
    assert error.exit_code == 1


@pytest.mark.parametrize("number", parent.SIGNALS)
def test_each_signal_that_ends_a_command_stops_the_job_in_order(number: signal.Signals) -> None:
    with _waiting_child() as child:
        with parent._signals(child, lambda _: None) as received:
            signal.raise_signal(number)
        assert (received, child.wait(30)) == ([number], -signal.SIGTERM)


def test_a_hangup_that_nohup_has_ignored_stops_nothing() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with _waiting_child() as child, parent._signals(child, lambda _: None) as received:
            signal.raise_signal(signal.SIGHUP)
            assert (received, child.poll()) == ([], None)
    finally:
        signal.signal(signal.SIGHUP, before)


@contextlib.contextmanager
def _waiting_child() -> Iterator[subprocess.Popen[bytes]]:
    """A process that does nothing until it is ended."""
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    try:
        yield child
    finally:
        child.kill()
        child.communicate()
