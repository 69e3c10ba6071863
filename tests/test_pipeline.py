"""The main job, whole: `inv bench --rehearsal` with a real stack, Harbor, sandbox and signed events."""

from __future__ import annotations

import json
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from bench import records
from bench.nostr import verified
from bench.reading import jsonl
from bench.stack import address
from tests.pipeline import DATASET, Installation, contents, new_installation, remove, stop, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def installed() -> Iterator[Installation]:
    installation = new_installation(Path(tempfile.mkdtemp(prefix="bzb-pipeline-")))
    try:
        yield installation
    finally:
        remove(installation)


@pytest.fixture(scope="module")
def rehearsed(installed: Installation) -> Path:
    """The directory of one whole rehearsal."""
    code, job = installed.rehearse("-k", "1", "--job-name", "whole")
    assert code == 0, job
    return Path(job["directory"])


def test_every_task_passes_with_its_good_script(rehearsed: Path) -> None:
    job = records.read_job(rehearsed)
    assert {trial.task for trial in job.trials} == {f"buzz/{path.parent.name}" for path in DATASET.glob("*/task.toml")}
    assert [(trial.trial, trial.outcome.reason) for trial in job.trials if trial.outcome.outcome != "passed"] == []
    assert job.complete


def test_the_evidence_is_signed_and_complete(rehearsed: Path) -> None:
    for trial in records.read_job(rehearsed).trials:
        directory = rehearsed / trial.trial
        parts = [directory / "steps" / step.name for step in trial.steps] or [directory]
        for number, part in enumerate(parts, 1):
            evidence = json.loads((part / records.EVIDENCE).read_text())
            assert evidence["events"]
            assert all(verified(event) for event in evidence["events"])
            kinds = {event["kind"] for event in evidence["events"]}
            assert {9, 9007, 9000} <= kinds
            done = [m for m in evidence["messages"] if m["text"].startswith("DONE:") and m["author"] == "orch"]
            assert len(done) == number


def test_receipts_tokens_and_harbors_own_numbers_agree(rehearsed: Path) -> None:
    for trial in records.read_job(rehearsed).trials:
        result = json.loads((rehearsed / trial.trial / "result.json").read_text())
        told = [part["agent_result"] for part in (result["step_results"] or [result])]
        counted = {name: sum(part[f"n_{name}_tokens"] for part in told) for name in ("input", "cache", "output")}
        spend = trial.spend
        assert spend.calls > 0
        assert spend.unknown_calls == 0
        assert counted["input"] == spend.input_tokens + spend.cache_read_tokens + spend.cache_write_tokens
        assert counted["cache"] == spend.cache_read_tokens
        assert counted["output"] == spend.output_tokens


def test_trajectories_are_valid_and_hold_every_member(rehearsed: Path) -> None:
    from harbor.utils.trajectory_validator import TrajectoryValidator

    paths = [*rehearsed.glob("*/agent/trajectory.json"), *rehearsed.glob("*/steps/*/agent/trajectory.json")]
    assert len(paths) > len(records.read_job(rehearsed).trials)
    for path in paths:
        validator = TrajectoryValidator()
        assert validator.validate(path), validator.get_errors()
        assert json.loads(path.read_text())["subagent_trajectories"]


def test_postgres_holds_a_projection_of_the_records(installed: Installation, rehearsed: Path) -> None:
    stack = address(installed.state_dir)
    assert stack
    receipts = len(list(jsonl.read(rehearsed / records.RECEIPTS, [])))
    with psycopg.connect(stack.dsn) as connection:
        (rows,) = connection.execute("SELECT count(*) FROM benchmark.llm_receipts WHERE job = 'whole'").fetchone() or (
            0,
        )
        (trials,) = connection.execute(
            "SELECT count(*) FROM benchmark.trial_manifest WHERE job = 'whole'"
        ).fetchone() or (0,)
    assert rows == receipts
    assert trials == len(records.read_job(rehearsed).trials)


def test_a_job_that_is_done_is_shown_again_and_nothing_runs(installed: Installation, rehearsed: Path) -> None:
    before = contents(rehearsed)
    same = ("bench", "--path", str(DATASET), "--rehearsal", "-k", "1", "--job-name", "whole")
    for words in (same, ("bench", "--resume", "whole"), ("bench", "--resume", str(rehearsed), "-n", "2")):
        done = installed.inv(*words, "--json")
        assert done.returncode == 0, done.stderr
        assert "has a score; nothing to run" in done.stderr
        assert "stack" not in done.stderr
        assert json.loads(done.stdout)["jobs"][0]["name"] == "whole"
    assert contents(rehearsed) == before


def test_an_existing_job_of_other_input_is_refused_field_by_field(installed: Installation, rehearsed: Path) -> None:
    before = contents(rehearsed)
    done = installed.inv("bench", "--path", str(DATASET), "--rehearsal", "-k", "2", "--job-name", "whole")
    assert done.returncode == 2
    assert done.stderr == (
        f"inv: {rehearsed}: attempts was 1 and is 2 now; a job goes on with the same input, but for -n: give that, or "
        "another --job-name\n"
    )
    assert contents(rehearsed) == before


def test_another_script_than_the_good_one_can_be_played(installed: Installation) -> None:
    chosen = ("--script", "wrong-root", "-i", "thread-reply-stays-in-thread")
    code, job = installed.rehearse("-k", "1", "--job-name", "wrong", *chosen)
    assert [(t["outcome"], t["reward"]) for t in job["trials"]] == [("failed", 0.0)]
    assert job["trials"][0]["reason"].startswith("evidence: the lead asks again in that thread")
    assert code == 0


def test_a_script_that_runs_out_is_unscored_and_the_verifier_does_not_run(
    installed: Installation, tmp_path: Path
) -> None:
    task = tmp_path / "short"
    shutil.copytree(DATASET / "split-and-merge", task)
    (task / "rehearsal" / "good.yaml").write_text(
        "orch:\n"
        "  - name: only step\n"
        "    do: [{send: {mention: [worker-1], text: please begin}}]\n"
        "worker:\n"
        "  - name: answer\n"
        "    do: [{send: {mention: [orch], text: what next}}]\n"
    )
    done = installed.inv("bench", "--path", str(task), "--rehearsal", "--json", "-k", "1", "--job-name", "short")
    assert done.returncode == 1, done.stderr
    (trial,) = json.loads(done.stdout)["jobs"][0]["trials"]
    assert trial["outcome"] == "unscored"
    assert "script_exhausted" in trial["reason"]
    assert "orch" in trial["reason"]
    assert not (installed.jobs_dir / "short" / trial["trial"] / "verifier" / "reward.txt").exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_stops_cleanly_and_keeps_what_was_scored(
    installed: Installation, number: signal.Signals, code: int
) -> None:
    name = f"stopped-{number.name.lower()}"
    running = installed.start("bench", "--path", str(DATASET), "--rehearsal", "-k", "8", "-n", "2", "--job-name", name)
    journal = installed.jobs_dir / name / records.JOURNAL
    wait_until(lambda: journal.exists() and "trial_ended" in journal.read_text())
    assert stop(running, number) == code
    job = records.read_job(installed.jobs_dir / name)
    assert job.counts["passed"] >= 1
    assert {t.outcome.reason for t in job.trials if t.outcome.outcome == "unscored"} <= {
        "cut off",
        "cut off: cancelled",
        "not begun when the job stopped",
    }
    assert [line for line in installed.processes() if "bench.run" in line or "bwrap" in line] == []


def test_after_kill_9_of_the_parent_nothing_of_the_job_lives_on(installed: Installation) -> None:
    running = installed.start(
        "bench", "--path", str(DATASET), "--rehearsal", "-k", "8", "-n", "4", "--job-name", "shot"
    )
    journal = installed.jobs_dir / "shot" / records.JOURNAL
    wait_until(lambda: journal.exists() and "attempt_started" in journal.read_text())
    running.kill()
    running.communicate()
    wait_until(lambda: not [line for line in installed.processes() if "bench.run" in line or "bwrap" in line])
    code, _ = installed.rehearse("-k", "1", "-i", "split-and-merge", "--job-name", "after-shot")
    assert code == 0


def test_a_dry_run_starts_and_writes_nothing(tmp_path: Path) -> None:
    fresh = new_installation(tmp_path)
    done = fresh.inv("bench", "--path", str(DATASET), "--rehearsal", "--dry-run", "--fresh")
    assert done.returncode == 0, done.stderr
    assert "harbor run" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_without_a_key_nothing_is_started_and_both_ways_on_are_named(tmp_path: Path) -> None:
    fresh = new_installation(tmp_path)
    done = fresh.inv("bench", "--path", str(DATASET))
    assert done.returncode == 2
    assert "ANTHROPIC_API_KEY" in done.stderr
    assert "claude-sonnet-4-6" in done.stderr
    assert "--rehearsal" in done.stderr
    assert "local.json" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_down_leaves_no_process_and_up_finds_the_data_again(installed: Installation, rehearsed: Path) -> None:
    assert installed.inv("down").returncode == 0
    wait_until(lambda: installed.processes() == [])
    assert installed.inv("up").returncode == 0
    stack = address(installed.state_dir)
    assert stack
    with psycopg.connect(stack.dsn) as connection:
        (events,) = connection.execute("SELECT count(*) FROM relay.events").fetchone() or (0,)
    assert events > 0
