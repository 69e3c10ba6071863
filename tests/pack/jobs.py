"""Jobs on disk, made by hand: what a fit one leaves, with the files that Harbor and we write."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.nostr import Key
from bench.planning.leaderboard import Verdict
from bench.settings import Settings
from bench.trial import journal

FIT = Verdict()
CLAUDE = {"provider": "anthropic", "base_url": "https://api.anthropic.com", "dialect": "anthropic"}


def settings(home: Path) -> Settings:
    return Settings(state_dir=home / "state", jobs_dir=home / "jobs")


def make(
    home: Path,
    name: str = "lb-team",
    *,
    trials: int = 5,
    verdict: Verdict = FIT,
    first: int = 1,
    condition: str = "ab",
    **plan: Any,
) -> Path:
    """A job of one task, all of whose trials passed."""
    directory = home / "jobs" / name
    directory.mkdir(parents=True)
    record = {
        "schema": "buzzbench-plan-1",
        "job": name,
        "rehearsal": None,
        "condition": "team",
        "condition_sha256": condition * 32,
        "stack": "embedded",
        "environment": "docker",
        "attempts": trials,
        "tasks": [{"name": "org/alpha", "directory": "/tasks/alpha"}],
        "roster": [{"name": "orch", "member": "orch", "role": "lead", "model": "claude-x", "endpoint": "e"}],
        "endpoints": {"e": CLAUDE},
        "leaderboard": verdict.to_json(),
        **plan,
    }
    write(directory / "buzzbench-plan.json", record)
    write(directory / "config.json", {"job_name": name, "n_attempts": trials})
    write(directory / "lock.json", {"trials": []})
    write(directory / "result.json", {"id": _id(name)})
    (directory / "job.log").write_text("noise\n")
    for number in range(first, first + trials):
        trial(directory, f"alpha__{number}")
    return directory


def trial(job_dir: Path, name: str, reward: float = 1.0) -> Path:
    """One trial."""
    begun(job_dir, name)
    directory = job_dir / name
    for folder in ("agent", "verifier", "artifacts"):
        (directory / folder).mkdir(parents=True)
    result = {
        "id": _id(name),
        "task_name": "org/alpha",
        "trial_name": name,
        "agent_execution": {"started_at": "x"},
        "verifier_result": {"rewards": {"reward": reward}},
    }
    write(directory / "result.json", result)
    config = {"task": {"path": "/tasks/alpha"}, "agent": {"name": "team"}, "environment": {"type": "docker"}}
    write(directory / "config.json", config)
    write(directory / "lock.json", {"task": {"name": "alpha"}})
    (directory / "trial.log").write_text("noise\n")
    (directory / "agent" / "buzz-acp.log").write_text("noise\n")
    write(directory / "agent" / "trajectory.json", {"steps": [{"message": "hello"}]})
    (directory / "verifier" / "test-stdout.txt").write_text("ok\n")
    return directory


def begun(job_dir: Path, name: str) -> None:
    journal.attempt_started(job_dir / journal.FILE_NAME, trial=name, task="org/alpha", at=datetime.now(UTC))


def write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")


def evidence(trial_dir: Path, key: Key) -> None:
    """What the host keeps of a trial whose orchestrator has that key: events' ids are hex, as keys are."""
    roster = [{"name": "orch", "public": key.public}]
    events = [{"id": hashlib.sha256(b"event").hexdigest(), "pubkey": key.public, "sig": "0f" * 64}]
    write(trial_dir / "buzzbench-evidence.json", {"roster": roster, "events": events})


def _id(name: str) -> str:
    digits = hashlib.sha256(name.encode()).hexdigest()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:32]}"
