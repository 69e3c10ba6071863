"""`inv compare`: the command, what people read, and what programs are told."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bench.compare import compare, side
from bench.errors import InvalidInput
from bench.trial.journal import FILE_NAME, attempt_started

PLAN: dict[str, Any] = {
    "rehearsal": None,
    "condition": "solo",
    "condition_sha256": "ab" * 32,
    "stack": "embedded",
    "environment": "docker",
    "attempts": 1,
    "budget": {"timeout_seconds": 900, "usd_micros": None, "tokens": None, "calls": None},
    "roster": [{"name": "orch", "role": "lead", "model": "sonnet", "endpoint": "cloud"}],
    "harnesses": ["builtin"],
    "leaderboard": {"standing": "eligible", "reasons": []},
}
TEAM = {"condition": "pair", "condition_sha256": "cd" * 32}
SECONDS = {"started_at": "2026-11-30T10:00:00+00:00", "finished_at": "2026-11-30T10:00:30+00:00"}


def write(
    jobs_dir: Path,
    name: str,
    rewards: dict[str, float],
    plan: dict[str, Any] | None = None,
    *,
    cost: int = 0,
    digest: str = "1",
) -> None:
    """A finished job as it lies on disk: a trial a task, each with one model call."""
    job_dir = jobs_dir / name
    for task, reward in rewards.items():
        trial_dir = job_dir / f"{task}__{name}"
        trial_dir.mkdir(parents=True)
        result = {"task_name": f"org/{task}", "task_checksum": digest, "agent_execution": {"started_at": "x"}} | SECONDS
        (trial_dir / "result.json").write_text(
            json.dumps(result | {"verifier_result": {"rewards": {"reward": reward}}})
        )
        attempt_started(job_dir / FILE_NAME, trial=trial_dir.name, task=f"org/{task}", at=datetime.now(UTC))
        receipt = {"call_id": task, "trial": trial_dir.name, "outcome": "ok", "cost_usd_micros": cost}
        tokens = {"input_tokens": 1000, "cache_read_tokens": 200, "cache_write_tokens": 30, "output_tokens": 4}
        with (job_dir / "buzzbench-receipts.jsonl").open("a") as receipts:
            receipts.write(json.dumps(receipt | tokens) + "\n")
    tasks = [{"name": f"org/{task}", "directory": f"/{task}"} for task in rewards]
    (job_dir / "buzzbench-plan.json").write_text(json.dumps(PLAN | {"job": name, "tasks": tasks} | (plan or {})))


@pytest.fixture
def jobs_dir(tmp_path: Path) -> Path:
    """A solo that solves x and y, and a pair that solves x, at twice the price; each has one more task."""
    write(tmp_path, "solo", {"x": 1, "y": 1, "z": 0, "only-solo": 1}, cost=1_500_000)
    roster = [PLAN["roster"][0], {"name": "nav", "role": "navigator", "model": "sonnet", "endpoint": "cloud"}]
    write(tmp_path, "pair", {"x": 1, "y": 0, "z": 0, "only-pair": 1}, TEAM | {"roster": roster}, cost=3_000_000)
    return tmp_path


def test_people_read_what_differs_each_task_and_what_it_comes_to(
    jobs_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compare(jobs_dir, ["pair", "solo"], as_json=False)
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    order = [
        "A pair",
        "B solo",
        "what differs A B",
        "condition pair cdcdcdcdcdcd solo abababababab",
        "team lead + navigator lead",
        "task A passed A cost B passed B cost A - B",
        "org/x 1/1 $3.0000 1/1 $1.5000 0",
        "org/y 0/1 $3.0000 1/1 $1.5000 -100.0",
        "org/z 0/1 $3.0000 0/1 $1.5000 0",
        "org/only-pair: left out, only A has it",
        "org/only-solo: left out, only B has it",
        "all 3 tasks A B",
        "passed of scored trials 1/3 (33%, 6% to 79%) 2/3 (67%, 21% to 94%)",
        "cost $9.0000 $4.5000",
        "cost for each pass $9.0000 $2.2500",
        "calls 3 3",
        "tokens 3,702 3,702",
        "fresh input 3,000 3,000",
        "cache read 600 600",
        "median time of a scored trial 30.0 s 30.0 s",
        "A spent $3.0000 besides, on replaced attempts and tasks in no pair",
        "A - B, mean of 3 tasks, of scored trials: -33.3 points (-100.0 to +100.0); A better at 0, B at 1, equal at 2: "
        "sign test p = 1.0000",
    ]
    places = [lines.index(line) for line in order]
    assert places == sorted(places)
    assert not any(line.startswith(("not comparable", "mind")) for line in lines)


def test_two_that_do_the_same_show_no_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Case 52: no discordant pair."""
    write(tmp_path, "solo", {"x": 1, "y": 0})
    write(tmp_path, "pair", {"x": 1, "y": 0}, TEAM)
    compare(tmp_path, ["pair", "solo"], as_json=False)
    assert "A - B, mean of 2 tasks, of scored trials: no difference observable" in capsys.readouterr().out


def test_no_interval_is_made_up_where_nothing_tells_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "pair", {"x": 1, "y": 1, "z": 1}, TEAM)
    write(tmp_path, "solo", {"x": 0, "y": 0, "z": 0})
    compare(tmp_path, ["pair", "solo"], as_json=False)
    shown = capsys.readouterr().out
    assert "+100.0 points (no interval: all tasks differ by the same); A better at 3, B at 0, equal at 0" in shown
    assert "cost for each pass $0.0000 –" in " ".join(shown.split())


def test_programs_get_integers_shares_and_null(jobs_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    compare(jobs_dir, ["pair", "solo"], as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert found["a"]["condition"] == "pair"
    assert (found["a"]["passed"], found["a"]["scored"], found["a"]["attempts"]) == (1, 3, 3)
    assert found["a"]["of_scored"]["low"] == pytest.approx(0.0615, abs=1e-4)
    assert (found["a"]["cost_usd_micros"], found["a"]["cost_usd_micros_a_pass"]) == (9_000_000, 9_000_000)
    assert found["b"]["tokens"] == {"input": 3000, "cache_read": 600, "cache_write": 90, "output": 12}
    assert found["difference"]["of_scored"]["mean"] == pytest.approx(-1 / 3)
    assert (found["difference"]["of_scored"]["better"], found["difference"]["of_scored"]["worse"]) == (0, 1)
    assert [one["name"] for one in found["differing"]] == ["condition", "team"]
    assert [one["task"] for one in found["left_out"]] == ["org/only-pair", "org/only-solo"]
    assert found["not_comparable"] == []


def test_a_side_of_several_jobs_is_one_side(jobs_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`inv bench --path buzz-dataset` makes two jobs."""
    write(jobs_dir, "solo-more", {"x": 0, "y": 1})
    compare(jobs_dir, ["pair", "solo,solo-more"], as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert [(task["b"]["passed"], task["b"]["attempts"]) for task in found["tasks"]] == [(1, 2), (2, 2), (0, 1)]


def test_a_jobs_own_name_may_have_a_comma(jobs_dir: Path) -> None:
    write(jobs_dir, "solo,again", {"x": 0})
    assert [job.plan.job for job in side(jobs_dir, "solo,again").jobs] == ["solo,again"]


def test_a_damaged_file_is_a_warning_beside_the_figures(jobs_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (jobs_dir / "solo" / "x__solo" / "result.json").write_text('{"task_na')
    compare(jobs_dir, ["pair", "solo"], as_json=False)
    shown = capsys.readouterr()
    assert "x__solo/result.json: not a JSON object" in shown.err
    assert "mind: 1 of B's trials are unscored: hold both figures side by side" in shown.out
    assert "A - B, mean of 3 tasks, unscored ones as failures: 0 points" in shown.out


@pytest.mark.parametrize(
    ("sides", "said"),
    [
        ([], "--job: two sides are compared, and 0 are given; give two: --job A --job B"),
        (["solo"], "--job: two sides are compared, and 1 is given"),
        (["solo", "pair", "solo"], "--job: two sides are compared, and 3 are given"),
        (["solo", "nope"], "--job nope: no such job"),
        (["solo", ","], "--job: a side without a job"),
        (["solo", "solo"], "--job solo: 4 of its trials are A's, too: a side can't be held against itself"),
        (["solo", "pair,solo"], "--job pair,solo: solo measured something else than pair"),
        (["solo", "other"], "org/x (its files were not the same in all trials), org/y (only A has it) and 1 more"),
    ],
)
def test_what_can_not_be_paired_is_refused(jobs_dir: Path, sides: list[str], said: str) -> None:
    write(jobs_dir, "other", {"x": 1}, TEAM, digest="2")
    with pytest.raises(InvalidInput) as raised:
        compare(jobs_dir, sides, as_json=False)
    assert said in str(raised.value)
