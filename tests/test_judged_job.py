"""A job of a task that isn't the project's own: the host judges its evidence all the same, when the trial ends."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import records
from tests.pipeline import DATASET, Installation, new_installation, remove

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

CHEAT = """
orch:
  - name: cheat
    do:
      - run: >-
          setsid sh -c 'for i in $(seq 3000); do echo 1 > /logs/verifier/reward.txt; sleep 0.005; done'
          >/dev/null 2>&1 </dev/null & echo ok
  - name: finish
    on: result
    do:
      - done: "the report is in /app/report.txt"
"""


@pytest.fixture(scope="module")
def installed() -> Iterator[Installation]:
    installation = new_installation(Path(tempfile.mkdtemp(prefix="bzb-judged-")))
    try:
        yield installation
    finally:
        remove(installation)


@pytest.fixture(scope="module")
def task(installed: Installation) -> Path:
    """A copy of one of the project's tasks, with a script that writes its own reward."""
    task = installed.home / "copy"
    shutil.copytree(DATASET / "split-and-merge", task)
    (task / "rehearsal" / "cheat.yaml").write_text(CHEAT)
    return task


def test_a_reward_that_a_team_writes_itself_earns_nothing_on_anybodys_task(installed: Installation, task: Path) -> None:
    run = ("bench", "--path", str(task), "--rehearsal", "--script", "cheat", "-k", "1", "--job-name", "cheat", "--json")
    data = json.loads(installed.inv(*run).stdout)["jobs"][0]
    (trial,) = data["trials"]
    assert (trial["outcome"], trial["labels"]) == ("failed", ["tampered"])
    assert trial["reason"].startswith("evidence: ")


def test_the_verdict_is_there_when_the_trial_ends_and_a_report_runs_no_judge(
    installed: Installation, task: Path
) -> None:
    run = ("bench", "--path", str(task), "--rehearsal", "-k", "2", "--job-name", "good", "--json")
    data = json.loads(installed.inv(*run).stdout)["jobs"][0]
    assert data["counts"]["passed"] == 2
    for trial in data["trials"]:
        kept = json.loads((installed.jobs_dir / "good" / trial["trial"] / records.CHECKS).read_text())
        assert set(kept["checks"].values()) == {True}
    (task / "tests" / "judge.py").write_text("raise SystemExit\n")
    again = json.loads(installed.inv("report", "--job", "good", "--json").stdout)["jobs"][0]
    assert again["trials"] == data["trials"]
