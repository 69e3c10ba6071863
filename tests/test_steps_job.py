"""Jobs whose tasks have steps, by the command line: stopped in a later step, gone on with, put together, shown."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import records
from tests.pipeline import DATASET, Installation, new_installation, remove, stop, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

TASK = "change-asked-later"


@pytest.fixture(scope="module")
def installed() -> Iterator[Installation]:
    installation = new_installation(Path(tempfile.mkdtemp(prefix="bzb-steps-")))
    try:
        yield installation
    finally:
        remove(installation)


@pytest.fixture(scope="module")
def slow(installed: Installation) -> Path:
    """The task with a good script whose second step takes its time."""
    task = installed.home / TASK
    shutil.copytree(DATASET / TASK, task)
    script = task / "rehearsal" / "good.yaml"
    text = script.read_text()
    script.write_text(text.replace('expect: ["Wednesday"]\n', 'expect: ["Wednesday"]\n    think_s: [3, 3]\n'))
    return task


@pytest.fixture(scope="module")
def stopped(installed: Installation, slow: Path) -> Path:
    """The directory of a job that was stopped while its one trial was at the second step."""
    process = installed.start(*bench(slow, "stopped"))
    job = installed.jobs_dir / "stopped"
    wait_until(lambda: any(job.glob("*/steps/draft/verifier/reward.txt")))
    assert stop(process) == 130
    return job


def bench(task: Path, name: str) -> tuple[str, ...]:
    return ("bench", "--path", str(task), "--rehearsal", "-k", "1", "--job-name", name)


def test_a_trial_that_is_stopped_in_a_later_step_has_no_score_and_keeps_what_it_left(stopped: Path) -> None:
    (trial,) = records.read_job(stopped).trials
    assert (trial.outcome.outcome, trial.outcome.reason) == ("unscored", "cut off: cancelled")
    assert trial.steps[0].outcome.outcome == "passed"
    assert (stopped / trial.trial / "steps" / "draft" / records.EVIDENCE).exists()
    assert trial.spend.calls > 0


def test_it_goes_on_from_the_first_step_and_the_attempt_before_is_kept_and_counted(
    installed: Installation, stopped: Path
) -> None:
    before = records.read_job(stopped).trials[0]
    done = installed.inv("bench", "--resume", str(stopped), "--json")
    assert done.returncode == 0, done.stderr
    (job,) = json.loads(done.stdout)["jobs"]
    (trial,) = job["trials"]
    assert (trial["outcome"], [step["name"] for step in trial["steps"]]) == ("passed", ["draft", "change"])
    (replaced,) = job["replaced"]
    assert (replaced["trial"], replaced["calls"]) == (before.trial, before.spend.calls)
    archived = installed.state_dir / "archive" / "stopped" / "1" / before.trial
    assert (archived / "steps" / "draft" / records.EVIDENCE).exists()
    again = installed.inv("bench", "--resume", str(stopped))
    assert "has a score; nothing to run" in again.stderr


def test_trials_in_steps_are_put_together_with_those_of_another_job(
    installed: Installation, slow: Path, stopped: Path
) -> None:
    assert installed.inv(*bench(slow, "other")).returncode == 0
    shown = json.loads(installed.inv("report", "--job", "stopped", "--job", "other", "--json").stdout)
    (together,) = shown["merged"]
    assert together["counts"] == {"passed": 2, "failed": 0, "unscored": 0}
    assert [[step["outcome"] for step in trial["steps"]] for trial in together["trials"]] == [["passed", "passed"]] * 2


def test_a_report_says_how_each_step_ended(installed: Installation) -> None:
    task = DATASET / TASK
    done = installed.inv(*bench(task, "wrong"), "--script", "wrong-another-changes-it")
    assert done.returncode == 0, done.stderr
    assert "(steps: draft passed, change failed)" in done.stdout
    assert "failed: step change: evidence: " in done.stdout


def test_the_database_has_each_steps_calls_and_times(installed: Installation, stopped: Path) -> None:
    import psycopg

    from bench.stack import address

    stack = address(installed.state_dir)
    assert stack
    with psycopg.connect(stack.dsn) as connection:
        steps = connection.execute("SELECT DISTINCT step FROM benchmark.llm_receipts WHERE job = 'wrong'").fetchall()
        spans = connection.execute("SELECT name FROM benchmark.spans WHERE job = 'wrong'").fetchall()
    assert sorted(row[0] for row in steps) == ["change", "draft"]
    assert {"step.draft.agent.work", "step.change.agent.work", "step.change.verifier"} <= {row[0] for row in spans}
