"""Verdicts that are wrong are found: tasks are played to ends that are known."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bench.errors import InvalidInput
from bench.validate.run import Verdict, plan
from tests.pipeline import Installation, new_installation, remove
from tests.planning.kit import Project, project

FAIR = (
    '[ "$(cat /app/out.txt 2>/dev/null)" = right ] && reward=1 || reward=0\necho $reward > /logs/verifier/reward.txt\n'
)
GENEROUS = "echo 1 > /logs/verifier/reward.txt\n"
SILENT = 'echo "{}" > /logs/verifier/details.json\necho "the details are written"\n'


def task(home: Project, name: str, verifier: str, *, solution: str = "") -> Path:
    directory = home.task(name, None, folder="other", script=None)
    (directory / "tests/test.sh").write_text(f"#!/bin/bash\n{verifier}")
    (directory / "environment/Dockerfile").write_text("FROM scratch\nWORKDIR /app\n")
    if solution:
        (directory / "solution").mkdir()
        (directory / "solution/solve.sh").write_text(f"#!/bin/bash\n{solution}")
    return directory


@pytest.fixture
def home(tmp_path: Path) -> Project:
    return project(tmp_path)


def planned(home: Project) -> list[tuple[str, list[str], float]]:
    tries = plan(home.root / "other", manifest=None, environment="sandbox", n_concurrent=4, jobs_dir=home.root / "jobs")
    return [(one.end, [t.name for job in one.plan.jobs for t in job.tasks], one.expected) for one in tries.tries]


def test_a_dataset_without_scripts_is_played_by_nobody_and_by_its_solutions(home: Project) -> None:
    task(home, "a", FAIR, solution="true\n")
    task(home, "b", FAIR)
    assert planned(home) == [("nop", ["buzz/a", "buzz/b"], 0.0), ("oracle", ["buzz/a"], 1.0)]


def test_every_script_is_played_where_it_is(home: Project) -> None:
    for name in ("a", "b"):
        directory = home.task(name, None, folder="other")
        (directory / f"rehearsal/wrong-{name}.yaml").write_text((directory / "rehearsal/good.yaml").read_text())
    assert planned(home) == [
        ("good", ["buzz/a", "buzz/b"], 1.0),
        ("wrong-a", ["buzz/a"], 0.0),
        ("wrong-b", ["buzz/b"], 0.0),
        ("nop", ["buzz/a", "buzz/b"], 0.0),
    ]


def test_a_dataset_with_faults_is_not_played(home: Project) -> None:
    (task(home, "a", FAIR) / "tests/test.sh").unlink()
    with pytest.raises(InvalidInput, match=r"a: has no tests/test\.sh"):
        planned(home)


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        (Verdict("t", "nop", 0.0, 1.0), "t: doing nothing is rewarded 1, and 0 is right"),
        (Verdict("t", "good", 1.0, 0.0, "x", "files: f"), "t: good script is rewarded 0, and 1 is right (files: f)"),
        (Verdict("t", "wrong-a", 0.0, None, "x", "cut"), "t: the script wrong-a got no verdict: cut"),
    ],
)
def test_a_wrong_verdict_is_said_in_a_sentence(verdict: Verdict, said: str) -> None:
    assert (str(verdict), verdict.right) == (said, False)


@dataclass(frozen=True)
class Run:
    code: int
    data: dict[str, Any]
    shown: str
    jobs: list[str]
    kept: list[str]
    """What is left where results are, and where jobs of a validation are."""


@pytest.fixture(scope="module")
def ran() -> Iterator[Run]:
    """A dataset of one fair task and two that can't be measured with, played for real."""
    folder = Path(tempfile.mkdtemp(prefix="bzb-validate-"))
    installation: Installation = new_installation(folder)
    (folder / "project").mkdir()
    home = project(folder / "project")
    task(home, "fair", FAIR, solution="echo right > /app/out.txt\n")
    task(home, "generous", GENEROUS)
    task(home, "silent", SILENT)
    words = ("validate", "--run", "--path", str(home.root / "other"))
    try:
        as_json = installation.inv(*words, "--json")
        shown = installation.inv(*words).stdout
        jobs, kept = installation.jobs_dir, installation.state_dir / "validate"
        left = [sorted(path.name for path in place.glob("*")) for place in (jobs, kept)]
        yield Run(as_json.returncode, json.loads(as_json.stdout), shown, *left)
    finally:
        remove(installation)


@pytest.mark.slow
def test_wrong_verdicts_are_found_and_the_code_says_so(ran: Run) -> None:
    """Case 60: `nop` must get 0, and a solution 1."""
    found = {(row["task"], row["end"]): (row["reward"], row["right"]) for row in ran.data["verdicts"]}
    assert found == {
        ("buzz/fair", "nop"): (0.0, True),
        ("buzz/fair", "oracle"): (1.0, True),
        ("buzz/generous", "nop"): (1.0, False),
        ("buzz/silent", "nop"): (None, False),
    }
    assert ran.code == 1


@pytest.mark.slow
def test_a_verifier_that_writes_no_reward_is_shown_by_its_last_lines(ran: Run) -> None:
    """Case 60."""
    lines = ran.shown.splitlines()
    assert lines[:4] == [
        "task           good  wrong  nothing  solution",
        "buzz/fair      –     –      0        1",
        "buzz/generous  –     –      1!       –",
        "buzz/silent    –     –      ?!       –",
    ]
    assert lines[4] == "buzz/generous: doing nothing is rewarded 1, and 0 is right"
    assert lines[6].startswith("buzz/silent: doing nothing got no verdict: the verifier wrote no reward")
    assert "the details are written" in lines[6]
    assert lines[-1].endswith(": 3 tasks, no faults, 2 wrong verdicts")


@pytest.mark.slow
def test_only_what_shows_something_wrong_is_left_and_never_among_results(ran: Run) -> None:
    """`inv report` takes the newest job for the result."""
    assert ran.jobs == []
    assert [name.rpartition("-")[2] for name in ran.kept] == ["nop", "nop"]
    found = [Path(line.strip()) for line in ran.shown.splitlines() if line.startswith("  ")]
    assert [path.name.partition("__")[0] for path in found] == ["generous", "silent"]
    assert [path.parent.name for path in found] == [ran.kept[1]] * 2
    assert all(path.is_dir() for path in found)
    kept = {row["directory"] is not None for row in ran.data["verdicts"] if row["end"] == "oracle"}
    assert kept == {False}
