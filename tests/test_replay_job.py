"""`inv bench --record`, then `--replay`: a whole team again, without a model, to the same rewards."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench import records
from bench.gateway import cassette
from bench.reading import jsonl
from tests.pipeline import DATASET, Installation, new_installation, remove

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

WRONG = ("split-and-merge", "wrong-one-worker-does-both")
CLASSES = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")


@pytest.fixture(scope="module")
def installed() -> Iterator[Installation]:
    installation = new_installation(Path(tempfile.mkdtemp(prefix="bzb-replay-")))
    try:
        yield installation
    finally:
        remove(installation)


def run(installed: Installation, name: str, *arguments: str) -> tuple[int, dict[str, Any]]:
    done = installed.inv("bench", "--path", str(DATASET), "--json", "--job-name", name, *arguments)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)["jobs"][0]


@pytest.fixture(scope="module")
def recorded(installed: Installation) -> Path:
    """A rehearsal of all tasks, twice each, several at a time; the directory of its job."""
    code, job = run(installed, "recorded", "--rehearsal", "--record", "-k", "2", "-n", "4")
    assert code == 0, job
    return Path(job["directory"])


def told(job: dict[str, Any]) -> Counter[str]:
    """What a job's trials came to, whichever attempt was which: rewards, calls and tokens."""
    kept = ("task", "outcome", "reward", "labels", "calls", "unknown_calls", "tokens")
    return Counter(json.dumps({name: trial[name] for name in kept}) for trial in job["trials"])


def calls(job: Path) -> Counter[str]:
    """Each trial's calls, agent by agent in order."""
    latest = {r["call_id"]: r for r in jsonl.read(job / records.RECEIPTS, [])}
    made: dict[str, dict[str, list[Any]]] = {}
    for r in latest.values():
        line = (r["model"], r["outcome"], r["status"], *(r[name] for name in CLASSES))
        made.setdefault(r["trial"], {}).setdefault(r["agent"], []).append(line)
    return Counter(json.dumps([trial.rpartition("__")[0], agents], sort_keys=True) for trial, agents in made.items())


def test_a_recorded_job_plays_to_the_same_rewards_calls_and_tokens(installed: Installation, recorded: Path) -> None:
    tape = recorded / cassette.FILE_NAME
    code, job = run(installed, "replayed", "--replay", str(tape), "-n", "8")
    assert code == 0, job
    assert told(job) == told(installed_report(installed, "recorded"))
    directory = Path(job["directory"])
    assert calls(directory) == calls(recorded)
    assert job["replay"] == cassette.read(tape).sha256
    assert (job["rehearsal"], job["cost_usd_micros"]) == (False, 0)
    receipts = list(jsonl.read(directory / records.RECEIPTS, []))
    assert {receipt["provider"] for receipt in receipts} == {"replay"}
    assert {receipt["cassette_sha256"] for receipt in receipts} == {job["replay"]}


def installed_report(installed: Installation, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(installed.inv("report", "--job", name, "--json").stdout)["jobs"][0]
    return found


def test_everything_says_that_it_is_a_replay(installed: Installation, recorded: Path) -> None:
    tape = str(recorded / cassette.FILE_NAME)
    one = ("-i", "split-and-merge", "-k", "1")
    shown = installed.inv("bench", "--path", str(DATASET), "--replay", tape, "--job-name", "says", *one)
    digest = cassette.read(Path(tape)).sha256
    assert f"replay of the cassette {digest[:12]}: no model was asked" in shown.stdout
    (trial,) = (installed.jobs_dir / "says").glob("*/result.json")
    assert json.loads(trial.read_text())["agent_result"]["metadata"]["buzzbench"]["replay"] == digest
    spend = json.loads(installed.inv("spend", "--job", "says", "--json").stdout)
    assert (spend["replay"], spend["total"]["cost_usd_micros"]) == (digest, 0)
    assert spend["total"]["calls"] > 0
    plan = installed.inv("bench", "--path", str(DATASET), "--replay", recorded.name, "--dry-run", *one)
    assert f"none: replay of {tape}, sha256 {digest}" in plan.stdout
    again = installed.inv("bench", "--path", str(DATASET), "--replay", tape, "--job-name", "says", *one)
    assert again.returncode == 2
    assert "a replay doesn't go on" in again.stderr


def test_a_team_that_failed_fails_again(installed: Installation) -> None:
    task, script = WRONG
    code, job = run(installed, "failed", "--rehearsal", "--record", "--script", script, "-i", task, "-k", "1")
    assert (code, job["trials"][0]["reward"]) == (0, 0.0)
    tape = Path(job["directory"]) / cassette.FILE_NAME
    code, again = run(installed, "failed-again", "--replay", str(tape))
    assert code == 0
    assert told(again) == told(job)


def test_a_task_that_changed_is_unscored_and_the_first_difference_is_told(
    installed: Installation, recorded: Path, tmp_path: Path
) -> None:
    task = tmp_path / "split-and-merge"
    shutil.copytree(DATASET / task.name, task)
    instruction = (task / "instruction.md").read_text()
    (task / "instruction.md").write_text(f"Be quick. {instruction}")
    done = installed.inv(
        *("bench", "--path", str(task), "--replay", str(recorded / cassette.FILE_NAME)),
        *("--json", "-k", "1", "--job-name", "changed"),
    )
    assert done.returncode == 1, done.stderr
    (trial,) = json.loads(done.stdout)["jobs"][0]["trials"]
    assert trial["outcome"] == "unscored"
    assert "replay_miss" in trial["labels"]
    assert "differs first at messages[0].content[0].text" in trial["reason"]
    assert "now '" in trial["reason"]
    assert not (installed.jobs_dir / "changed" / trial["trial"] / "verifier" / "reward.txt").exists()


def test_a_cap_below_the_recording_ends_the_job_as_one_over_its_budget(installed: Installation, recorded: Path) -> None:
    tape, one = str(recorded / cassette.FILE_NAME), ("-i", "split-and-merge", "-k", "1")
    code, job = run(installed, "capped", "--replay", tape, "--budget-calls", "4", *one)
    assert code == 4
    (trial,) = job["trials"]
    assert (trial["outcome"], trial["calls"]) == ("unscored", 4), trial
    assert trial["reason"].startswith("job_budget: "), trial
